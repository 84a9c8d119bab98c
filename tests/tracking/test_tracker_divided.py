"""A model that ranks hold together is tracked by all of them: the history of one process, and the training that it was."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch
import torch.distributed as dist
from divided import OPTIONS, TRAIN, by_features, by_shards, trained
from torch import nn

import equisep
from documents import DOCS, blocks
from equisep import History, Tracker
from equisep.errors import EquisepError, ModelError
from equisep.measuring.distributed import control
from measuring.distributed.one_process import differences, network
from measuring.distributed.processes import in_processes

RANKS = {2: ("fully_shard", "tensor parallelism"), 4: ("both",)}
KILLED = "tensor parallelism"
CASES = [(world, way) for world, ways in RANKS.items() for way in ways]
BESIDES = ("provenance", "batch_sizes", "batch_sizes_test")
SHORT = 1.0  # seconds in which all ranks must have called
RECIPE = "def train_divided("


def tracked(way: Callable[..., Any] = by_shards, data: Any = TRAIN) -> tuple[nn.Module, Tracker]:
    model = way()[0]
    return model, Tracker(model, data, ranks="all", per_class=9)


# --- what goes wrong: the sentence that a reading, or an error, says


def no_number(way: Callable[..., Any]) -> Any:
    x, y = TRAIN[0].clone(), TRAIN[1]
    x[::7] = torch.nan
    _, tracker = tracked(way, (x, y))
    return tracker.epoch(1) or tracker.history[1].failure


def one_reads() -> Any:
    """The other rank comes later, and then all read again."""
    _, tracker = tracked()
    if dist.get_rank() == 0:
        tracker.epoch(1)
    dist.barrier()
    assert tracker.epoch(2) is not None
    return tracker.history[1].failure if 1 in tracker.history else None


def other_epochs() -> Any:
    _, tracker = tracked()
    number = 1 + dist.get_rank()
    return tracker.epoch(number) or tracker.history[number].failure


def one_measures() -> Any:
    model, tracker = tracked()
    if dist.get_rank() == 1:
        return equisep.measure(model, TRAIN)
    return tracker.epoch(1) or tracker.history[1].failure


def other_shapes() -> Any:
    return tracked(data=(TRAIN[0][:, : 8 - dist.get_rank()], TRAIN[1]))


def raises_inside() -> Any:
    """A model that fails in the middle of a reading, and trains on."""
    model, tracker = tracked()
    model[3].register_forward_pre_hook(lambda module, _: 1 / 0 if not module.training else None)
    found = tracker.epoch(1) or tracker.history[1].failure
    model(TRAIN[0]).sum().backward()
    return found


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no number": (lambda: no_number(by_shards), "gives 24 NaN or Inf among 144 numbers"),
    "no number, tensor parallelism": (lambda: no_number(by_features), "gives 24 NaN or Inf among 144 numbers"),
    "one reads": (
        one_reads,
        "`Tracker` was called on 1 of 2 ranks within 1 seconds, not on rank 1. With `ranks='all'` all",
    ),
    "other epochs": (
        other_epochs,
        'disagree on the reading: "epoch 1" and "epoch 2". With `ranks=\'all\'` all ranks track',
    ),
    "one measures": (one_measures, "was called on 1 of 2 ranks within 1 seconds, not on rank"),
    "other shapes": (other_shapes, "that of rank 1 differs from that of rank 0 (it begins with other samples)"),
    "raises inside": (raises_inside, "`Sequential` could not run batch"),
    "the first alone": (
        lambda: Tracker(by_shards()[0], TRAIN),
        "none of them can run it alone. Make the tracker in all of them with `ranks='all'`",
    ),
}


def _all_cases(rank: int, folder: Path) -> dict[str, Any]:
    """Everything that one group of ranks does, one after the other."""
    warnings.simplefilter("ignore")
    control.BEGIN = SHORT
    found: dict[str, Any] = {}
    for way in RANKS[dist.get_world_size()]:
        found[way] = trained(way, tracked=False), trained(way, tracked=True, history=folder / f"{way}.jsonl")
    if dist.get_world_size() == 2:
        goes_on = {"history": folder / "killed.jsonl", "checkpoint": folder / "checkpoint"}
        found["killed"] = trained(KILLED, tracked=True, **goes_on)
        for name, (case, _) in WRONG.items():
            dist.barrier()
            begin = time.monotonic()
            try:
                found[name] = case()
            except EquisepError as error:
                found[name] = str(error)
            found[f"{name}, seconds"] = time.monotonic() - begin
        found["recipe"] = _recipe()(folder / "recipe.jsonl")
    return found


@cache
def ranks(world: int) -> tuple[Path, list[dict[str, Any]]]:
    folder = Path(mkdtemp())
    if world == 2:
        killed = {"history": folder / "killed.jsonl", "checkpoint": folder / "checkpoint", "dies": 2}
        assert in_processes(2, lambda rank: trained(KILLED, tracked=True, **killed)) == [None, None]
        assert History.load(folder / "killed.jsonl").numbers == (0, 1)
    return folder, in_processes(world, lambda rank: _all_cases(rank, folder))


@pytest.mark.parametrize(("world", "way"), CASES)
def test_a_tracked_training_is_the_same_training(world: int, way: str) -> None:
    for found in ranks(world)[1]:
        plain, with_tracker = found[way]
        assert plain["order"] == with_tracker["order"]
        assert [name for name, value in plain["left"].items() if with_tracker["left"][name] != value] == []


@pytest.mark.parametrize(("world", "way"), CASES)
def test_every_rank_has_the_history_of_one_process(world: int, way: str) -> None:
    folder, found = ranks(world)
    model = network(norm=way == "fully_shard")
    first = found[0][way][1]
    model.load_state_dict(first["weights"][0])  # BatchNorm's statistics are those of the first rank
    alone = Tracker(model, TRAIN, **OPTIONS)
    for number, weights in enumerate(first["weights"]):
        model.load_state_dict(weights)
        assert (alone.epoch(number) if number else alone.read()) is not None
    written = History.load(folder / f"{way}.jsonl")
    assert written.numbers == (0, 1, 2, 3)
    for told in (*(each[way][1] for each in found), {"entries": written.entries, "header": written.header}):
        assert alone.history.header.why_other(told["header"]) is None
        for one, two in zip(alone.history.entries, told["entries"], strict=True):
            assert one.profile is not None and two.profile is not None
            assert two.profile.provenance["ranks"] == world
            assert not differences(one.profile, two.profile, besides=BESIDES)
            assert two.minority_cosine == pytest.approx(one.minority_cosine, rel=1e-12)


def test_a_training_that_was_killed_goes_on() -> None:
    """The ranks were killed between their checkpoint and the reading of its epoch."""
    folder, found = ranks(2)
    for each in found:
        whole, parts = each[KILLED][1], each["killed"]
        assert {**whole["left"], "random": b""} == {**parts["left"], "random": b""}  # which no checkpoint kept
        assert [entry.number for entry in parts["entries"]] == [0, 1, 2, 3]
        for one, two in zip(whole["entries"], parts["entries"], strict=True):
            assert not differences(one.profile, two.profile)
    assert History.load(folder / "killed.jsonl").numbers == (0, 1, 2, 3)


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_said_in_one_sentence_and_no_rank_hangs(name: str) -> None:
    told = [each[name] for each in ranks(2)[1]]
    assert any(WRONG[name][1] in str(text) for text in told), told
    assert all(isinstance(text, str) for text in told) or name == "one reads"
    assert max(each[f"{name}, seconds"] for each in ranks(2)[1]) < 10 * SHORT


def _recipe() -> Callable[[Path], History]:
    """The recipe of docs/tracking.md, after the page's first block, which makes the data."""
    names: dict[str, Any] = {}
    page = [block.body for block in blocks(DOCS / "tracking.md") if block.kind == "python"]
    for body in (page[0].partition("tracker = ")[0], next(body for body in page if RECIPE in body)):
        exec(compile(body, "docs/tracking.md", "exec"), names)
    recipe: Callable[[Path], History] = names[RECIPE.removeprefix("def ").removesuffix("(")]
    return recipe


def test_the_recipe_of_the_page() -> None:
    folder, found = ranks(2)
    assert [each["recipe"].numbers for each in found] == [(1, 2, 3), (1, 2, 3)]
    assert History.load(folder / "recipe.jsonl").numbers == (1, 2, 3)


def test_one_process_tracks_what_others_could_hold() -> None:
    """Parameters that a reading gathers are divided again before an optimizer is made of them."""

    def alone(rank: int) -> Any:
        return trained("fully_shard", tracked=False)["left"] == trained("fully_shard", tracked=True)["left"]

    assert in_processes(1, alone) == [True]


def test_what_keeps_its_weights_in_one_vector_is_refused_with_the_cure() -> None:
    class FullyShardedDataParallel(nn.Sequential):
        """As torch calls its first one."""

    for asked, call in (("Tracker", Tracker), ("measure", equisep.measure)):
        with pytest.raises(ModelError, match=rf"`{asked}` cannot read inside .* \(FSDP1\).*by `fully_shard` \(FSDP2\)"):
            call(FullyShardedDataParallel(network(norm=False)), TRAIN)
