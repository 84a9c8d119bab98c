"""Trainings whose ranks hold one model together: FSDP2, tensor parallelism, and both on a 2 × 2 mesh; tracked or not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # which `fully_shard` loads at its first forward pass: once here, not in every forked process
import torch.distributed as dist
import torch.distributed.checkpoint as saved
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from equisep import Tracker
from equisep.taps import full_tensor, is_spread
from measuring.distributed.one_process import data, network

TRAIN, TEST = data((70, 50, 20, 16)), data((30, 20, 20, 11), seed=2)
OPTIONS: dict[str, Any] = {"test": TEST, "per_class": 9}
EPOCHS, SAVED = 3, 2  # epochs of a training, and after which there is a checkpoint
KEPT = ("model", "optimizer")

Divided = tuple[nn.Module, int, int]  # a model, and which part of how many its data are


def _columns(mesh: Any, *, norm: bool = False) -> nn.Module:
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel(), "4": ColwiseParallel(output_layouts=Replicate())}
    return parallelize_module(network(norm=norm), mesh, plan)


def _sharded(model: nn.Module, mesh: Any) -> nn.Module:
    for layer in model.children():
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def by_shards(*, norm: bool = False) -> Divided:
    """FSDP2; BatchNorm's statistics then are each rank's own."""
    world = dist.get_world_size()
    return _sharded(network(norm=norm), init_device_mesh("cpu", (world,))), dist.get_rank(), world


def by_features() -> Divided:
    """Tensor parallelism: all ranks have the same data."""
    return _columns(init_device_mesh("cpu", (dist.get_world_size(),))), 0, 1


def by_both() -> Divided:
    """Two models of two ranks each, whose parts FSDP2 divides again."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    return _sharded(_columns(mesh["tp"]), mesh["dp"]), mesh["dp"].get_local_rank(), 2


WAYS: dict[str, Callable[[], Divided]] = {
    "fully_shard": lambda: by_shards(norm=True),
    "tensor parallelism": by_features,
    "both": by_both,
}


def trained(
    way: str, *, tracked: bool, history: Path | None = None, checkpoint: Path | None = None, dies: int = 0
) -> dict[str, Any]:
    """A training as users have it, from its checkpoint on where there is one; where it `dies`, between that and the reading.

    A reading before the first step of the optimizer is number 0: the next batch must run what the step then makes.
    """
    model, part, parts = WAYS[way]()
    torch.manual_seed(7 + part)
    sampler = DistributedSampler(TensorDataset(*TRAIN), num_replicas=parts, rank=part)
    batches = DataLoader(sampler.dataset, batch_size=40, sampler=sampler)
    tracker = Tracker(model, batches, ranks="all", history=history, **OPTIONS) if tracked else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    done, order, weights = 0, list[list[int]](), list[dict[str, Tensor]]()
    if checkpoint is not None and checkpoint.exists():
        state = dict(zip(KEPT, get_state_dict(model, optimizer), strict=True))
        saved.load(state, checkpoint_id=checkpoint)
        set_state_dict(model, optimizer, model_state_dict=state[KEPT[0]], optim_state_dict=state[KEPT[1]])
        done = SAVED
        assert tracker is not None
        tracker.resume(done)
    for epoch in range(done + 1, EPOCHS + 1):
        sampler.set_epoch(epoch)
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
            if not order and not done:
                weights.append(whole(model))
                assert tracker is None or tracker.read() is not None, tracker.history.last
            optimizer.step()
            order.append(y.tolist())
        weights.append(whole(model))
        if checkpoint is not None and epoch == SAVED:
            saved.save(dict(zip(KEPT, get_state_dict(model, optimizer), strict=True)), checkpoint_id=checkpoint)
        if epoch == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        assert tracker is None or tracker.epoch(epoch) is not None, tracker.history.last
    told = {} if tracker is None else {"entries": tracker.history.entries, "header": tracker.history.header}
    return {"left": left(model, optimizer), "order": order, "weights": weights, **told}


def whole(model: nn.Module) -> dict[str, Tensor]:
    """The weights of all ranks together."""
    return {name: full_tensor(value.detach()).clone() for name, value in model.state_dict().items()}


def left(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, bytes]:
    """What a training leaves in this rank, bit by bit."""
    kept: dict[str, Any] = {**model.state_dict(), "random": torch.get_rng_state()}
    for index, state in enumerate(optimizer.state.values()):
        kept |= {f"{index} {name}": value for name, value in state.items()}
    for name, value in model.named_parameters():
        kept[f"gradient of {name}"] = value.grad
    return {
        name: (value.to_local() if is_spread(value) else value).detach().numpy().tobytes()
        for name, value in kept.items()
    }
