"""What `limit.py` counts and what it measures on any device: floors, ceilings, and what a user would write instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from equisep.devices import precision
from equisep.training import Member, Recipe, Shape
from equisep.training.ensemble.kernel.layout import BATCH as PLACES
from equisep.training.ensemble.kernel.layout import Build, Layout

SAMPLES, BATCH, EPOCHS = 1000, 128, 600
STEPS = -(-SAMPLES // BATCH)
NUMBER = 4  # bytes of a float32


def counts(shape: Shape) -> dict[str, float]:
    """Operations and bytes of one member in one epoch with Adam, by what they are for; nothing here is measured.

    Products take two operations per weight and sample forward and four backward, but for the gradient of the samples, which
    nobody needs. The least traffic: weights and both moments are read and written in every step and read once more by each
    pass, linear outputs are written once and read by BatchNorm, by the layer above and by the backward pass. What the kernel
    moves through device memory or its cache beyond that: it reads linear outputs once more, and blocks exchange slopes.
    """
    weights = [inputs * outputs for inputs, outputs in shape.layers]
    matrices, vectors, units = sum(weights), shape.parameters - sum(weights), sum(shape.widths)
    sweep = STEPS * 6 * NUMBER * shape.parameters  # weight and moments, read and written
    passes = STEPS * 2 * NUMBER * matrices
    linear = SAMPLES * NUMBER * units
    return {
        "operations": 2 * SAMPLES * (3 * matrices - weights[0]),
        "parameters": shape.parameters,
        "vectors": vectors,
        "state_bytes": 3 * NUMBER * shape.parameters,
        "optimizer_bytes": sweep,
        "weights_for_products_bytes": passes,
        "linear_outputs_bytes": 4 * linear,
        "least_bytes": sweep + passes + 4 * linear,
        "kernel_bytes": sweep + passes + STEPS * PLACES * NUMBER * units * (1 + 3 + 2),
        "kernel_block_shared_bytes": Build.of(shape).shared_bytes(shape.depth),
        "kernel_member_bytes": NUMBER
        * (3 * Layout(shape, Build.of(shape)).length + Layout(shape, Build.of(shape)).scratch),
    }


def floor(shape: Shape, rates: dict[str, float]) -> dict[str, float]:
    """The least seconds of one training on a full device, by operations and by bytes."""
    counted = counts(shape)
    return {
        "operations": EPOCHS * counted["operations"] / rates["operations"],
        "bytes": EPOCHS * counted["least_bytes"] / rates["bytes"],
    }


def clouds(shape: Shape) -> tuple[Tensor, Tensor]:
    """Gaussian classes, which cost as much as any data."""
    generator = torch.Generator("cpu").manual_seed(0)
    y = torch.arange(SAMPLES) % shape.classes
    return torch.randn(SAMPLES, shape.inputs, generator=generator) + torch.eye(shape.classes, shape.inputs)[y], y


def members_of(shape: Shape, count: int, *, epochs: int = EPOCHS) -> list[Member]:
    """So many members; ten seeds, so that drawing their orders takes no part."""
    return [Member(Recipe(rate=1e-3, seed=index % 10, epochs=epochs), shape) for index in range(count)]


def clocked(run: Callable[[], Any], device: torch.device) -> float:
    """Seconds until the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    begun = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def least(run: Callable[[], Any], device: torch.device, *, times: int = 3) -> float:
    """The fewest seconds of several runs after one that warms up."""
    run()
    return min(clocked(run, device) for _ in range(times))


@contextmanager
def on_threads(threads: int) -> Iterator[None]:
    """Under a number of torch's threads, which is then given back."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def ceilings(device: torch.device, *, tf32: bool = False) -> dict[str, float]:
    """Operations and bytes a second that this device reaches on large problems."""
    size, numbers = (8192, 2**28) if device.type == "cuda" else (2048, 2**25)
    a = torch.randn(size, size, device=device)
    with precision(tf32=tf32):
        product = least(lambda: a @ a, device)
    big = torch.ones(numbers, device=device)
    other = torch.empty_like(big)
    copy = least(lambda: other.copy_(big), device)
    return {"operations": 2 * size**3 / product, "bytes": 2 * NUMBER * numbers / copy}


def loop(shape: Shape, device: torch.device, *, compiled: bool) -> Callable[[], None]:
    """An epoch of one network, trained as a careful user would write it."""
    x, y = (part.to(device) for part in clouds(shape))
    network: Any = shape.build(0).to(device).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=5e-4, fused=True)
    model = torch.compile(network, dynamic=False) if compiled else network

    def epoch() -> None:
        for batch in torch.randperm(SAMPLES).to(device).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()

    return epoch


def vmapped(shape: Shape, count: int, device: torch.device) -> Callable[[], None]:
    """An epoch of all members as `torch.func` has it: stacked parameters, one optimizer, no running statistics."""
    x, y = (part.to(device) for part in clouds(shape))
    networks = [shape.build(index % 10).to(device) for index in range(count)]
    for network in networks:
        torch.func.replace_all_batch_norm_modules_(network)
    parameters, buffers = torch.func.stack_module_state(networks)
    stacked = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    optimizer = torch.optim.Adam(stacked.values(), lr=1e-3, weight_decay=5e-4, fused=True)
    skeleton = networks[0]

    def loss(own: dict[str, Tensor], kept: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(torch.func.functional_call(skeleton, (own, kept), (x,)), y)

    slopes = torch.func.vmap(torch.func.grad(loss))

    def epoch() -> None:
        orders = torch.stack([torch.randperm(SAMPLES) for _ in range(10)]).to(device)[torch.arange(count) % 10]
        for batch in orders.split(BATCH, dim=1):
            for name, slope in slopes(stacked, buffers, x[batch], y[batch]).items():
                stacked[name].grad = slope
            optimizer.step()

    return epoch
