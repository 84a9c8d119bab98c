"""`measure` of models that `parallelize_module` divides among 2 and 4 ranks by their features: the profile of the whole model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
import torch
import torch.distributed as dist
from one_process import LIGHT, QUICK, Pair, all_have, all_refuse, batches, data, network
from processes import in_processes, outcomes
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import equisep
from equisep.results import Profile

TRAIN, TEST = data(), data((40, 30, 20, 11), seed=2)
PAIRED: dict[str, ParallelStyle] = {"0": ColwiseParallel(), "2": RowwiseParallel(), "4": ColwiseParallel()}


class Gated(nn.Module):
    """Activations that are functions: parts of the features are multiplied, and added to a whole."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.up, self.gate, self.down = nn.Linear(8, 10), nn.Linear(8, 10), nn.Linear(10, 8)
        self.mixed, self.head = nn.Identity(), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.down(self.mixed(nn.functional.silu(self.gate(x)) * self.up(x)))
        return self.head(x.relu())  # type: ignore[no-any-return]


class Side(nn.Module):
    """A layer beside the way to the scores."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.side, self.after, self.head = nn.Linear(8, 10), nn.Tanh(), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.after(self.side(x))
        return self.head(x)  # type: ignore[no-any-return]


class Attention(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.heads, self.out = nn.Identity(), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x).unflatten(-1, (-1, 4)).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(self.heads(mixed.transpose(1, 2).flatten(2)))  # type: ignore[no-any-return]


class Tokens(nn.Module):
    """A small transformer: between its layers ranks hold parts of the sequence."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.embedding, self.norm = nn.Embedding(20, 8), nn.LayerNorm(8)
        self.attention, self.norm2 = Attention(), nn.LayerNorm(8)
        self.mlp, self.last = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), nn.LayerNorm(8)
        self.head = nn.Linear(8, 4)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embedding(input_ids)
        x = x + self.attention(self.norm(x))
        x = x + self.mlp(self.norm2(x))
        return self.head(self.last(x).mean(1))  # type: ignore[no-any-return]


def tokens() -> Pair:
    y = torch.arange(90) % 4
    draw = torch.Generator().manual_seed(0)
    return (5 * y[:, None] + torch.randint(0, 6, (90, 6), generator=draw)).clamp(max=19), y


def sequences() -> dict[str, ParallelStyle]:
    whole = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())
    return {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
        "norm": SequenceParallel(),
        "attention": whole,
        **{f"attention.{name}": ColwiseParallel() for name in "qkv"},
        "attention.out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "norm2": SequenceParallel(use_local_output=True),
        "mlp.0": ColwiseParallel(input_layouts=Shard(1)),
        "mlp.2": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "last": SequenceParallel(),
        "head": ColwiseParallel(),
    }


def by_features() -> DeviceMesh:
    return init_device_mesh("cpu", (dist.get_world_size(),))


def divided(model: nn.Module, plan: dict[str, ParallelStyle], mesh: DeviceMesh | None = None) -> nn.Module:
    return parallelize_module(model, mesh or by_features(), plan)


def in_place() -> nn.Sequential:
    model = network(norm=False)
    model[1], model[3] = nn.ReLU(inplace=True), nn.ReLU(inplace=True)
    return model


def two_by_two(*, sharded: bool) -> tuple[nn.Module, list[Pair], list[Pair]]:
    """Two groups of two ranks, each with a part of the data: one has less training data, the other no test data."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = divided(network(norm=False), PAIRED, mesh["tp"])
    if sharded:
        for layer in model:  # type: ignore[attr-defined]
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
    first = mesh["dp"].get_local_rank() == 0
    return model, batches(TRAIN)[:5] if first else batches(TRAIN)[5:], batches(TEST) if first else []


def sampled() -> Profile:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    sampler = DistributedSampler(TensorDataset(*TRAIN), num_replicas=2, rank=mesh["dp"].get_local_rank(), shuffle=False)
    loader = DataLoader(sampler.dataset, batch_size=40, sampler=sampler)
    return equisep.measure(divided(network(norm=False), PAIRED, mesh["tp"]), loader, **LIGHT)


# --- what every rank measures, and the same in one process

NAMED = ["up", "mixed", "down", "down:in", "head:in"]
GIVEN = {"4": ColwiseParallel(use_local_output=False)}
WHOLE = lambda: equisep.measure(network(norm=False), batches(TRAIN), batches(TEST))  # noqa: E731
Case = tuple[Callable[[], Profile], Callable[[], Profile]]
CASES: dict[int, dict[str, Case]] = {
    2: {
        "a pair and a classifier": (
            lambda: equisep.measure(divided(network(norm=False), PAIRED), batches(TRAIN), batches(TEST)),
            WHOLE,
        ),
        "DTensors, changed in place": (
            lambda: equisep.measure(
                divided(in_place(), {"0": ColwiseParallel(use_local_output=False), "2": RowwiseParallel(), **GIVEN}),
                batches(TRAIN),
                sites=["0", "1", "2", "3", "4"],
                **LIGHT,
            ),
            lambda: equisep.measure(in_place(), batches(TRAIN), sites=["0", "1", "2", "3", "4"], **LIGHT),
        ),
        "functions, read twice": (
            lambda: equisep.measure(
                divided(
                    Gated().double(), {"up": ColwiseParallel(), "gate": ColwiseParallel(), "down": RowwiseParallel()}
                ),
                TRAIN,
                sites=NAMED,
                memory=0,
                **QUICK,
            ),
            lambda: equisep.measure(Gated().double(), TRAIN, sites=NAMED, memory=0, **QUICK),
        ),
        "sequences": (
            lambda: equisep.measure(divided(Tokens().double(), sequences()), tokens(), **LIGHT),
            lambda: equisep.measure(Tokens().double(), tokens(), **LIGHT),
        ),
    },
    4: {
        "ten features on four ranks": (  # three each, and one
            lambda: equisep.measure(
                divided(Side().double(), {"side": ColwiseParallel()}), TRAIN, sites=["side", "after"], **QUICK
            ),
            lambda: equisep.measure(Side().double(), TRAIN, sites=["side", "after"], **QUICK),
        ),
        "two parts of the data": (lambda: equisep.measure(*two_by_two(sharded=False)), WHOLE),
        "two parts of the data, fully_shard": (lambda: equisep.measure(*two_by_two(sharded=True)), WHOLE),
        "two parts of the data, a sampler": (
            sampled,
            lambda: equisep.measure(network(norm=False), DataLoader(TensorDataset(*TRAIN), batch_size=40), **LIGHT),
        ),
    },
}
BESIDES = {"two parts of the data, a sampler": ("batch_sizes",)}


# --- what is refused


class Unequal(nn.Module):
    """Ranks compute what differs, by no layer that torch divided."""

    def forward(self, x: Tensor) -> Tensor:
        return x * (1 + dist.get_rank())


def _wrong(what: str) -> Profile:
    model, rank, ours, options = network(norm=False), dist.get_rank(), batches(TRAIN), dict[str, Any](QUICK)
    if what == "other data":
        ours = ours[rank::2]
    elif what == "other data, later":
        ours = ours[: 5 - rank]
    elif what == "a label":
        ours = [*ours, (TRAIN[0][:5], torch.full((5,), 9))]
    elif what == "no number":
        ours = [*ours, (TRAIN[0][:5] * torch.nan, TRAIN[1][:5]), (TRAIN[0][:5], TRAIN[1][:5])]
    elif what == "unequal":
        model.insert(2, Unequal())
        return equisep.measure(divided(model, {"0": ColwiseParallel(output_layouts=Replicate())}), ours, **options)
    elif what == "unknown":
        return equisep.measure(divided(Tokens().double(), sequences()), tokens(), sites=["attention.heads"], **options)
    return equisep.measure(divided(model, PAIRED), ours, **options)


REFUSED = {
    "other data": "hold one model together (tensor parallelism), and read different training data. All ranks of a tensor",
    "other data, later": "hold one model together (tensor parallelism), and read different training data",
    "a label": "batch 7 of the training data holds 9 … 9",
    "no number": "NaN or Inf among 40 numbers at batch 7 of the training data",
    "unequal": "Site `4` gives other features of the same samples on each of the ranks [0, 1]",
    "unknown": "Site `attention.heads` gives each rank a part of its features (tensor parallelism)",
}


def _all_cases(rank: int) -> dict[str, Any]:
    world, plain = dist.get_world_size(), DTensor.to_local
    runs: dict[str, Callable[[], Profile]] = {name: case[0] for name, case in CASES[world].items()}
    refused = REFUSED if world == 2 else ()
    found = outcomes(runs | {name: partial(_wrong, name) for name in refused})
    return found | {"left as it was": DTensor.to_local is plain}


@cache
def ranks(world: int) -> list[dict[str, Any]]:
    return in_processes(world, _all_cases)


@pytest.mark.parametrize(("world", "name"), [(world, name) for world in CASES for name in CASES[world]])
def test_every_rank_has_the_profile_of_the_whole_model(world: int, name: str) -> None:
    all_have(CASES[world][name][1](), [found[name] for found in ranks(world)], besides=BESIDES.get(name, ()))


@pytest.mark.parametrize("name", REFUSED)
def test_ranks_of_one_model_end_together_with_one_sentence(name: str) -> None:
    all_refuse(REFUSED[name], [found[name] for found in ranks(2)])


def test_torch_is_left_as_it_was() -> None:
    assert all(found["left as it was"] for found in ranks(2))
