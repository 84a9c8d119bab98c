"""How near to what the device can do are trainings of small networks, and to what a user would write instead?

Trainings a second (600 epochs of 1,000 samples in batches of 128, Adam) against the number of members, depth and width, all in
one run: `kernel` (equisep's CUDA kernel, by every build of it and by the one that `train_ensemble` takes), `graphs` (captured
passes), and what a user would write: `plain`, a loop over one network; `compiled`, the same with the network compiled; `vmap`,
`torch.func.vmap` over stacked parameters. Each is timed over whole epochs after a warm-up, without set-up, so that a training
is 600 such epochs. The grid of Fig. 1 is timed from process start, as in `ensemble.py`.

The floor is counted, not measured: operations of the products over the device's float32 rate, and bytes that weights, moments
and linear outputs must move over its bandwidth where they do not stay in a cache; the larger counts. Both ceilings are
measured first: a large product and a large copy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from _record import finish
from ensemble import from_process_start
from equisep.devices import precision
from equisep.training import Member, Recipe, Shape, Stage
from equisep.training.ensemble.kernel.choice import build_for
from equisep.training.ensemble.kernel.compile import launch
from equisep.training.ensemble.kernel.layout import Build
from equisep.training.ensemble.kernel.stage import KernelStepper
from equisep.training.ensemble.samples import Samples, draw_samples
from equisep.training.ensemble.stack import Stack
from equisep.training.ensemble.stepper import Stepper

SAMPLES, BATCH, EPOCHS = 1000, 128, 600
STEPS = -(-SAMPLES // BATCH)
MEMBERS = (1, 19, 57, 132, 264, 1056)
SHAPES = (Shape.deep(8), Shape.deep(4), Shape.deep(20), Shape.deep(8, width=50), Shape.deep(8, width=128))
DEVICE = torch.device("cuda")


def clouds(shape: Shape) -> tuple[Tensor, Tensor]:
    """Gaussian classes, which cost as much as any data."""
    generator = torch.Generator("cpu").manual_seed(0)
    y = torch.arange(SAMPLES) % shape.classes
    return torch.randn(SAMPLES, shape.inputs, generator=generator) + torch.eye(shape.classes, shape.inputs)[y], y


def members_of(shape: Shape, count: int) -> list[Member]:
    """So many members; ten seeds, so that drawing their orders takes no part."""
    return [Member(Recipe(rate=1e-3, seed=index % 10), shape) for index in range(count)]


def prepared(shape: Shape, count: int) -> tuple[Stack, Samples, list[Member]]:
    """A stack on the device."""
    members = members_of(shape, count)
    samples = draw_samples(members, *clouds(shape), per_class=None, sizes=None).on(DEVICE, torch.float32)
    states = {seed: shape.build(seed).state_dict() for seed in range(10)}
    stack = Stack.of([states[one.recipe.seed] for one in members], shape, device=DEVICE, dtype=torch.float32)
    return stack, samples, members


def clocked(run: Callable[[], Any]) -> float:
    """Seconds until the device is done."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - begun


def repeated(run: Callable[[], Any], times: int) -> None:
    """The same so many times."""
    for _ in range(times):
        run()


@torch.no_grad()
def by_kernel(shape: Shape, count: int, build: Build) -> float:
    """Seconds an epoch of all members by one build."""
    stack, samples, members = prepared(shape, count)
    stepper = KernelStepper(stack, samples, members, Stage(epochs=EPOCHS), build=build, launch=launch)
    epochs = 2 if count > 300 else 4
    arguments = stepper._arguments(0, epochs, STEPS) or []

    def run() -> None:
        launch(arguments, members=count, build=build, depth=shape.depth)

    clocked(run)
    return min(clocked(run) for _ in range(2)) / epochs


@torch.no_grad()
def by_graphs(shape: Shape, count: int) -> float:
    """Seconds an epoch of all members by captured passes."""
    stack, samples, members = prepared(shape, count)
    epochs = Stepper(stack, samples, members, Stage(epochs=8), captured=True).epochs()
    for _ in range(3):
        next(epochs)
    with precision(tf32=False):
        return clocked(lambda: [next(epochs) for _ in range(4)]) / 4


def by_loop(shape: Shape, *, compiled: bool) -> float:
    """Seconds an epoch of one network, trained as a careful user would write it."""
    x, y = (part.to(DEVICE) for part in clouds(shape))
    network: Any = shape.build(0).to(DEVICE).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=5e-4, fused=True)
    model = torch.compile(network) if compiled else network

    def epoch() -> None:
        for batch in torch.randperm(SAMPLES).to(DEVICE).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()

    for _ in range(2):
        epoch()
    return clocked(lambda: repeated(epoch, 5)) / 5


def by_vmap(shape: Shape, count: int) -> float:
    """Seconds an epoch of all members as `torch.func` has it: stacked parameters, one optimizer, no running statistics."""
    x, y = (part.to(DEVICE) for part in clouds(shape))
    networks = [shape.build(index % 10).to(DEVICE) for index in range(count)]
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
        orders = torch.stack([torch.randperm(SAMPLES) for _ in range(10)]).to(DEVICE)[torch.arange(count) % 10]
        for batch in orders.split(BATCH, dim=1):
            for name, slope in slopes(stacked, buffers, x[batch], y[batch]).items():
                stacked[name].grad = slope
            optimizer.step()

    epoch()
    return clocked(lambda: repeated(epoch, 2)) / 2


def ceilings() -> dict[str, float]:
    """Floating-point operations and bytes a second that this device reaches on large problems."""
    a = torch.randn(8192, 8192, device=DEVICE)
    with precision(tf32=False):
        clocked(lambda: a @ a)
        product = min(clocked(lambda: a @ a) for _ in range(3))
    big = torch.empty(2**28, device=DEVICE)
    other = torch.empty_like(big)
    clocked(lambda: other.copy_(big))
    copy = min(clocked(lambda: other.copy_(big)) for _ in range(3))
    return {"operations": 2 * 8192**3 / product, "bytes": 2 * 4 * 2**28 / copy}


def floor(shape: Shape, rates: dict[str, float]) -> dict[str, float]:
    """The least seconds of one training on a full device, by operations and by bytes."""
    weights = [inputs * outputs for inputs, outputs in shape.layers]
    operations = 2 * SAMPLES * (3 * sum(weights) - weights[0])  # nobody needs the gradient of the samples
    # weights and both moments read and written, weights once more for each pass; linear outputs written, read three times
    moved = STEPS * 4 * 8 * shape.parameters + SAMPLES * 4 * 4 * sum(shape.widths)
    return {"operations": EPOCHS * operations / rates["operations"], "bytes": EPOCHS * moved / rates["bytes"]}


def row(shape: Shape, count: int, rates: dict[str, float]) -> dict[str, Any]:
    """Every build of the kernel and the passes for one shape and number of members."""
    taken, processors = (
        build_for(shape, members=count, device=DEVICE),
        torch.cuda.get_device_properties(0).multi_processor_count,
    )
    builds = {}
    for cluster, resident in ((1, 1), (1, 2), (2, 1), (4, 1)):
        build = Build.of(shape, cluster=cluster, resident=resident)
        if cluster == 1 or count <= processors:
            builds[name_of(build)] = count / (EPOCHS * by_kernel(shape, count, build))
    chosen = builds[name_of(taken)]
    return {
        "depth": shape.depth,
        "width": shape.widths[0],
        "members": count,
        "builds": builds,
        "build": name_of(taken),
        "kernel_trainings_per_second": chosen,
        "kernel_share_of_floor": chosen * max(floor(shape, rates).values()),
        "graphs_trainings_per_second": count / (EPOCHS * by_graphs(shape, count)),
    }


def name_of(build: Build) -> str:
    """A build by what differs among those of one shape."""
    return f"cluster {build.cluster}, resident {build.resident}"


def users(shape: Shape) -> dict[str, Any]:
    """What a user would write instead, trainings a second."""
    result: dict[str, Any] = {"depth": shape.depth, "width": shape.widths[0]}
    contestants: dict[str, Callable[[], float]] = {
        "plain": lambda: 1 / by_loop(shape, compiled=False),
        "compiled": lambda: 1 / by_loop(shape, compiled=True),
        "vmap_57": lambda: 57 / by_vmap(shape, 57),
        "vmap_264": lambda: 264 / by_vmap(shape, 264),
    }
    for name, run in contestants.items():
        try:
            result[f"{name}_trainings_per_second"] = run() / EPOCHS
        except Exception as error:  # no compiler here, or no memory: then it is no contestant
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            result[f"{name}_trainings_per_second"] = None
    return result


def main() -> None:
    """All shapes with few and many members; the first with every number of them, and beside it what a user would write."""
    if not torch.cuda.is_available():
        print("equisep: benchmarks/limit.py needs a CUDA device; nothing was measured.", file=sys.stderr)
        return
    rates = ceilings()
    rows = [row(SHAPES[0], count, rates) for count in MEMBERS]
    rows += [row(shape, count, rates) for shape in SHAPES[1:] for count in (19, 264)]
    fastest = max(one["kernel_trainings_per_second"] for one in rows[: len(MEMBERS)])
    finish(
        "limit",
        {
            **{f"fig1_grid_{seeds}_seeds": from_process_start(seeds) for seeds in (1, 10)},
            "rows": rows,
            "seconds_of_100000_trainings_of_depth_8": 1e5 / fastest,
            "ceilings_per_second": rates,
            "floor_seconds_of_one_training": {str(shape): floor(shape, rates) for shape in SHAPES},
            "users": users(SHAPES[0]),
        },
        device=torch.cuda.get_device_name(),
    )


if __name__ == "__main__":
    main()
