"""`measure` inside a process group of 2 and 4 ranks (gloo): the profile of one process on every rank, or one sentence."""

from __future__ import annotations

import copy
import json
import os
import signal
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from one_process import LIGHT, QUICK, Pair, all_have, all_refuse, batches, data, differences, images, network, wide
from processes import in_processes, outcomes
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, Subset, TensorDataset
from typer.testing import CliRunner

import equisep
from equisep.cli.app import app
from equisep.data.stores.arrays import ArrayReader
from equisep.errors import InputError, NumericalError
from equisep.measuring.measure import answered, request_for
from equisep.results import Profile

TRAIN, TEST = data(), data((40, 30, 20, 11), seed=2)
N = len(TRAIN[1])
UNEVEN = {
    2: (0, 270, N),
    4: (0, 100, 100, 260, N),
}  # of four ranks one has nothing; the last class is on the last rank alone
TESTED = {2: (0, 0, 101), 4: (0, 50, 51, 101, 101)}


def parts(pair: Pair, edges: tuple[int, ...], size: int = 50) -> list[list[Pair]]:
    """The batches of every rank."""
    return [batches((pair[0][a:b], pair[1][a:b]), size) for a, b in pairwise(edges)]


def sampled(pair: Pair, *, batch: int = 40, drop_last: bool = False) -> DataLoader[Any]:
    dataset = TensorDataset(*pair)
    return DataLoader(
        dataset, batch_size=batch, sampler=DistributedSampler(dataset, shuffle=False, drop_last=drop_last)
    )


def batch_sampled(pair: Pair) -> DataLoader[Any]:
    dataset = TensorDataset(*pair)
    return DataLoader(
        dataset, batch_sampler=BatchSampler(DistributedSampler(dataset, shuffle=False), 40, drop_last=False)
    )


def dealt(model: nn.Module, *sets: Any, **options: Any) -> Profile:
    """As the command line does under torchrun: all ranks have all data."""
    return answered(request_for(model, *sets, **options), dealt=True)


# --- what every rank measures, and the same in one process

Case = tuple[Callable[[int, int], Profile], Callable[[int], Profile]]


def _uneven(
    model: nn.Module, *, wrapped: Callable[[nn.Module], nn.Module] = lambda model: model, **options: Any
) -> Case:
    def there(rank: int, world: int) -> Profile:
        ours = parts(TRAIN, UNEVEN[world])[rank], parts(TEST, TESTED[world])[rank]
        return equisep.measure(wrapped(copy.deepcopy(model)), *ours, **options)

    def here(world: int) -> Profile:
        joined = (list(chain(*parts(TRAIN, UNEVEN[world]))), list(chain(*parts(TEST, TESTED[world]))))
        return equisep.measure(model, *joined, **options)

    return there, here


def _sharded(model: nn.Module) -> nn.Module:
    """FSDP2: every linear layer and the root hold a part of their parameters on every rank."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:  # type: ignore[attr-defined]
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


CASES: dict[str, Case] = {
    "uneven and empty parts": _uneven(network()),
    "read twice": _uneven(network(), memory=0, **LIGHT),
    "float32": _uneven(network(kind=torch.float32), weighting="class", **QUICK),
    "wide float32": _uneven(wide(), whole=False, **LIGHT),
    "DistributedDataParallel": _uneven(network(), wrapped=nn.parallel.DistributedDataParallel, **QUICK),
    "fully_shard": _uneven(network(norm=False), wrapped=_sharded, **LIGHT),
    "fully_shard, read twice": _uneven(network(norm=False), wrapped=_sharded, memory=0, **LIGHT),
    "a padding sampler": (
        lambda rank, world: equisep.measure(network(), sampled(TRAIN), sampled(TEST), **LIGHT),
        lambda world: equisep.measure(
            network(), *(DataLoader(TensorDataset(*pair), batch_size=40) for pair in (TRAIN, TEST)), **LIGHT
        ),
    ),
    "a padding sampler inside batches": (
        lambda rank, world: equisep.measure(network(), batch_sampled(TRAIN), **QUICK),
        lambda world: equisep.measure(network(), DataLoader(TensorDataset(*TRAIN), batch_size=40), **QUICK),
    ),
    "pairs": (
        lambda rank, world: equisep.measure(network(), tuple(part[rank::world] for part in TRAIN), **QUICK),
        lambda world: equisep.measure(network(), TRAIN, **QUICK),
    ),
    "whole data, dealt out": (
        lambda rank, world: dealt(network(), TRAIN, TEST, readings=("eval", "drawn"), **LIGHT),
        lambda world: equisep.measure(network(), TRAIN, TEST, readings=("eval", "drawn"), **LIGHT),
    ),
    "more classes than a table holds": (
        lambda rank, world: dealt(network(600), data((2,) * 600), metrics=("ncc", "confusion")),
        lambda world: equisep.measure(network(600), data((2,) * 600), metrics=("ncc", "confusion")),
    ),
    "several rows of a sample": (
        lambda rank, world: dealt(images()[0], images(350)[1], reduction="positions", **QUICK),
        lambda world: equisep.measure(images()[0], images(350)[1], reduction="positions", **QUICK),
    ),
}
FOUR = ("uneven and empty parts", "fully_shard, read twice")
FEW = {2: tuple(name for name in CASES if name not in FOUR), 4: FOUR}  # four processes take their time
BESIDES = {
    "a padding sampler": ("batch_sizes", "batch_sizes_test"),
    "a padding sampler inside batches": ("batch_sizes",),
    "pairs": ("batch_sizes",),
}


# --- what is refused


def _wrong(rank: int, what: str) -> Profile:
    model: nn.Module
    model, ours, options = network(), parts(TRAIN, (0, 150, N))[rank], dict[str, Any](QUICK)
    test = None
    if what == "model" and rank:
        with torch.no_grad():
            model[0].weight[0, 0] += 1
    elif what == "activation" and rank:
        model[2] = nn.Tanh()
    elif what == "argument" and rank:
        options["seed"] = -1
    elif what == "type" and rank:
        model = model.float()
    elif what == "classes":
        options["classes"] = 4 + rank
    elif what == "sites" and rank:
        options["sites"] = ["2"]
    elif what == "options":
        options["seed"] = rank
    elif what == "test" and rank:
        test = parts(TEST, (0, 101))[0]
    elif what == "kinds of data":  # `drawn` is `mixed` of batches that are read as they come
        test = parts(TEST, (0, 50, 101))[rank] if rank else (TEST[0][:50], TEST[1][:50])
        return equisep.measure(model, ours, test, readings=("mixed", "drawn"), **options)
    elif what == "same data":
        return equisep.measure(model, TRAIN, **options)
    elif what == "same small data":  # noticed once they are read
        return equisep.measure(model, [(TRAIN[0][:6], TRAIN[1][:6]), (TRAIN[0][-6:], TRAIN[1][-6:])], metrics="cdnv")
    elif what == "no data":
        ours = []
    elif what == "a label" and rank:
        ours = [*ours, (TRAIN[0][:5], torch.full((5,), 9))]
    elif what == "a test label":
        test = parts(TEST, (0, 50, 101))[rank]
        test = [*test, (TRAIN[0][:5], torch.full((5,), 9))] if rank else test
    elif what == "bootstrap":
        options["intervals"] = "bootstrap"
    elif what.endswith("fully_shard"):  # all other ranks wait for this one inside the forward pass, or are about to
        model = _sharded(network(norm=False))
        bad = (TRAIN[0][:5], torch.full((5,), 9)) if "label" in what else (TRAIN[0][:5] * torch.nan, TRAIN[1][:5])
        ours = [*ours[:2], bad, *ours[2:]] if rank else ours
    return equisep.measure(model, ours, test, **options)


REFUSED = {
    "model": "disagree on the model",
    "activation": "disagree on the model",
    "argument": "`seed`",
    "type": 'disagree on the type of the parameters: "torch.float64" and "torch.float32"',
    "classes": "disagree on the classes: 4 and 5",
    "sites": "disagree on the sites",
    "options": "disagree on the options",
    "test": 'disagree on the test data: "none" and "given"',
    "kinds of data": "disagree on the readings, which batches and samples tell apart",
    "same data": "Ranks 0 and 1 read the same training data. In a process group every rank passes its own part",
    "same small data": "Ranks 0 and 1 read the same training data",
    "no data": "hold no batch",
    "a label": "batch 4 of the training data holds 9 … 9",
    "a test label": "batch 2 of the test data holds 9 … 9",
    "a label, fully_shard": "batch 2 of the training data holds 9 … 9",
    "no number, fully_shard": "NaN or Inf among 40 numbers at batch 2 of the training data",
    "bootstrap": "needs all features in one process",
}


def _all_cases(rank: int) -> dict[str, Any]:
    world = dist.get_world_size()
    runs = {name: partial(CASES[name][0], rank, world) for name in FEW[world]}
    refused = REFUSED if world == 2 else ()
    return outcomes(runs | {name: partial(_wrong, rank, name) for name in refused})


@cache
def ranks(world: int) -> list[dict[str, Any]]:
    return in_processes(world, _all_cases)


@pytest.mark.parametrize(("world", "name"), [(world, name) for world in FEW for name in FEW[world]])
def test_every_rank_has_the_profile_of_one_process(world: int, name: str) -> None:
    all_have(CASES[name][1](world), [found[name] for found in ranks(world)], besides=BESIDES.get(name, ()))


@pytest.mark.parametrize("name", REFUSED)
def test_ranks_that_disagree_end_together_with_one_sentence(name: str) -> None:
    all_refuse(REFUSED[name], [found[name] for found in ranks(2)])


def test_an_error_in_the_test_data_leaves_the_training_data() -> None:
    for found in ranks(2):
        profile = found["a test label"].profile
        assert isinstance(profile, Profile) and profile.sites[0].cdnv is not None and profile.counts_test is None


def _dies(rank: int) -> tuple[float, str]:
    """Rank 1 is killed in the middle of its reading."""
    model = network()
    if rank == 1:
        model.register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    begin = time.monotonic()
    try:
        equisep.measure(model, parts(TRAIN, UNEVEN[4])[rank + (rank > 0)], **LIGHT)
    except NumericalError as error:
        return time.monotonic() - begin, str(error)
    return 0.0, "nothing was noticed"


def test_a_rank_that_dies_ends_the_others_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equisep.measuring.distributed.control.DEAD", 4.0)
    monkeypatch.setattr("equisep.measuring.distributed.control.BEAT", 0.5)
    first, second, third = in_processes(3, _dies)
    assert second is None
    assert first[0] < 30 and "rank 1 has given no sign of life" in first[1], first
    assert third[0] < 30 and ("rank 1 has given no sign" in third[1] or "connection to another rank broke" in third[1])


def _command(rank: int) -> tuple[int, str, str, bool]:
    """`torchrun -m equisep measure …` as one of its processes sees it."""
    folder = Path(os.environ["SHARED"])
    os.environ.update({"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"})
    words = [
        "measure",
        "--model",
        f"{folder}/net.py:Net",
        "--data",
        f"{folder}/mine.npz",
        "--out",
        f"{folder}/p{rank}.json",
    ]
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.stdout, done.stderr, (folder / f"p{rank}.json").exists()


def test_only_the_first_rank_of_a_command_prints_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from torch import nn\ndef Net():\n    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4))\n"
    (tmp_path / "net.py").write_text(code)
    np.savez(tmp_path / "mine.npz", x_train=TRAIN[0], y_train=TRAIN[1], x_test=TEST[0], y_test=TEST[1])
    monkeypatch.setenv("SHARED", str(tmp_path))
    (code0, out0, err0, wrote0), (code1, out1, err1, wrote1) = in_processes(2, _command)
    assert (code0, code1) == (0, 0), (err0, err1)
    assert wrote0 and not wrote1 and "D" in out0 and not out1 + err1
    single = CliRunner().invoke(
        app, ["measure", "--model", f"{tmp_path}/net.py:Net", "--data", f"{tmp_path}/mine.npz", "--json"]
    )
    plain, by_ranks = json.loads(single.stdout), json.loads((tmp_path / "p0.json").read_text())
    assert by_ranks["samples"] == plain["samples"] and by_ranks["settings"] == plain["settings"]
    assert by_ranks["law"]["rho"] == pytest.approx(plain["law"]["rho"], rel=1e-12)


def _stored(rank: int) -> tuple[Profile, int]:
    """The profile of stored features, and how many rows of them this rank has read."""
    rows, read = [0], ArrayReader.read

    def counted(self: ArrayReader, count: int, room: torch.Tensor | None = None) -> torch.Tensor:
        rows[0] += count if self.array.shape else 0
        return read(self, count, room)

    ArrayReader.read = counted  # type: ignore[method-assign]
    try:
        return equisep.measure_features(os.environ["SHARED"], memory=0, **LIGHT), rows[0]
    finally:
        ArrayReader.read = read  # type: ignore[method-assign]


def test_ranks_read_their_own_rows_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equisep.data.stores.batches.BATCH_BYTES", 1)  # 64 rows each
    for name, (x, y) in (("train", TRAIN), ("test", TEST)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "layer1.npy", x)
        np.save(tmp_path / name / "layer2.npy", x.relu())
        np.save(tmp_path / name / "labels.npy", y)
    monkeypatch.setenv("SHARED", str(tmp_path))
    expected, rows = _stored(0)
    probe = 2 * 64 * 1  # both layers of the first batch, to plan by
    assert rows == probe + 2 * 2 * (N + 101)  # two layers, two readings
    found = in_processes(2, _stored)
    all_have(expected, [profile for profile, _ in found])
    assert sum(rows for _, rows in found) == 2 * probe + 2 * 2 * (N + 101)
    assert max(rows for _, rows in found) < 0.7 * rows


def _one_rank(rank: int) -> Any:
    """The first rank measures while the other does something else."""
    if rank:
        time.sleep(3)
        return None
    alone = equisep.measure(network(), TRAIN, group=False, **QUICK)
    with pytest.raises(InputError, match=r"called on 1 of 2 ranks within 1 seconds, not on rank 1.*`group=False`"):
        equisep.measure(network(), TRAIN, **QUICK)
    return alone


def test_one_rank_may_measure_alone_and_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equisep.measuring.distributed.control.BEGIN", 1.0)
    alone, _ = in_processes(2, _one_rank)
    assert isinstance(alone, Profile), alone
    assert not differences(alone, equisep.measure(network(), TRAIN, **QUICK))


def test_one_process_is_no_group() -> None:
    (profile,) = in_processes(1, lambda rank: equisep.measure(network(), TRAIN, **LIGHT))
    assert not differences(profile, equisep.measure(network(), TRAIN, **LIGHT))


def test_a_subset_of_every_rank() -> None:
    """The cure that the refusal names."""
    dataset = TensorDataset(*TRAIN)
    found = in_processes(2, lambda rank: equisep.measure(network(), Subset(dataset, range(rank, N, 2)), **QUICK))
    expected = equisep.measure(network(), TRAIN, **QUICK)
    assert [site.cdnv for site in found[0].sites] == pytest.approx([site.cdnv for site in expected.sites], rel=1e-12)
    assert found[0].counts == expected.counts and not isinstance(found[1], InputError)
