"""Sites share the memory budget: deep ones are kept, the first ones read twice, and no number depends on which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any
from unittest.mock import patch

import pytest
import torch
from measured_by_hand import batches, network, samples
from torch import Tensor, nn

from equisep.measuring import measure
from equisep.measuring.memory import Memory
from equisep.results import Coordinates, Corrected, Interval, Profile

DATA = samples([100] * 4)
LOADER = batches(DATA, 50)


def measured(*data: Any, model: nn.Module | None = None, **options: Any) -> tuple[Profile, list[bool]]:
    """The profile, and which sites kept their features."""
    kept: set[int] = set()
    features = Memory.features

    def recorded(memory: Memory[Any], index: int) -> Any:
        kept.add(index)
        return features(memory, index)

    with patch.object(Memory, "features", recorded):
        profile = measure(network() if model is None else model, *data, **options)
    return profile, [index in kept for index in range(len(profile.sites))]


def leaves(value: Any) -> Iterator[Any]:
    """The numbers of a field: of tuples and of records in it, one by one."""
    if isinstance(value, tuple):
        for each in value:
            yield from leaves(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    else:
        yield value


def same(one: Profile, other: Profile, *, rel: float = 1e-10) -> None:
    """Every number of every site: null, intervals and pictures too."""
    for ours, theirs in zip(one.sites, other.sites, strict=True):
        for name in ours.__dataclass_fields__:
            a, b = getattr(ours, name), getattr(theirs, name)
            if isinstance(a, Interval) and isinstance(b, Interval):
                a, b = (a.low, a.high), (b.low, b.high)
            if isinstance(a, Corrected) and isinstance(b, Corrected):
                assert a.reason == b.reason
                a, b = (a.value, a.low, a.high, *a.folds), (b.value, b.low, b.high, *b.folds)
            if isinstance(a, Coordinates) and isinstance(b, Coordinates):
                assert a.labels == b.labels
                a, b = sum(a.points, ()), sum(b.points, ())
                assert a == pytest.approx(b, rel=1e-4, abs=1e-4)  # five digits are kept
                continue
            for mine, other_one in zip(leaves(a), leaves(b), strict=True):
                known = pytest.approx(other_one, rel=rel) if isinstance(other_one, float) else other_one
                assert mine == known, name
    for name, interval in one.law.intervals.items():
        assert interval.low == pytest.approx(other.law.intervals[name].low, rel=1e-6)
    assert one.settings["intervals_by"] == other.settings["intervals_by"]


class Unsized:
    """Batches whose number is not known beforehand."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(LOADER)


WHOLE = measure(network(), LOADER)
GROUPS = 10 + 5 + 1  # folds, random labelings, and the classes' origins
STATES = [8 * GROUPS * 4 * site.dim for site in WHOLE.sites]  # bytes of the sums of every site
FEATURES = [4 * 400 * site.dim for site in WHOLE.sites]  # … and of its features


def budget(kept: int) -> int:
    """Bytes that are just enough to keep the last `kept` sites."""
    cut = len(STATES) - kept
    return sum(STATES[:cut]) + sum(FEATURES[cut:])


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("sized", [True, False])
def test_numbers_do_not_depend_on_which_sites_are_kept(count: int, sized: bool) -> None:
    """Nor do chance levels, intervals and pictures."""
    profile, kept = measured(LOADER if sized else Unsized(), memory=budget(count))
    assert kept == [False] * (4 - count) + [True] * count
    same(profile, WHOLE)


@pytest.mark.parametrize("memory", [0, 1, 1000])
def test_nor_where_not_even_the_sums_fit(memory: int) -> None:
    profile, kept = measured(LOADER, memory=memory)
    assert not any(kept)
    same(profile, WHOLE)


@pytest.mark.parametrize("size", [2, 7, 400])
def test_nor_on_the_size_of_batches(size: int) -> None:
    """Labels permuted inside batches were no null: 17.8 for 359 in batches of two."""
    for memory in (None, 0):
        same(measure(network(), batches(DATA, size), memory=memory), WHOLE, rel=1e-5)  # float32 forward passes


def test_one_byte_less_keeps_one_site_less() -> None:
    assert measured(LOADER, memory=budget(2) - 1)[1] == [False, False, False, True]


def test_many_sites_are_read_in_rounds_and_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equisep.measuring.memory.MEMORY", int(STATES[0] + STATES[1]))
    profile = measure(network(), LOADER, LOADER, memory=0)
    assert any(note.code == "rounds" for note in profile.notes)
    same(profile, measure(network(), LOADER, LOADER))


@pytest.mark.parametrize("count", range(4))
def test_test_data_are_shared_likewise(count: int) -> None:
    whole = measure(network(), LOADER, LOADER)
    shared = measure(network(), LOADER, LOADER, memory=budget(count))
    assert shared.curve("fuzziness_test") == pytest.approx(whole.curve("fuzziness_test"), rel=1e-10)
    assert shared.curve("ncc_test") == whole.curve("ncc_test")
    assert shared.curve("fuzziness_test") == pytest.approx(shared.curve(), rel=1e-10)


def test_the_second_forward_pass_ends_after_the_last_site_that_was_not_kept() -> None:
    model = network()
    times: Counter[str] = Counter()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(lambda *_, name=name: times.update([name]))
    measure(model, LOADER, memory=budget(2))
    first, *_, last = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    batches_read = len(LOADER)
    assert times[first] == 1 + 2 * batches_read  # the probe, the first reading, and the second
    assert times[last] == 1 + batches_read


def test_sequences_that_grow_longer_than_foreseen_go_over_to_the_second_reading() -> None:
    class Growing:
        """Batches of more and more tokens: the probe sees the shortest."""

        def __len__(self) -> int:
            return 5

        def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
            generator = torch.Generator().manual_seed(0)
            for length in range(2, 7):
                y = torch.arange(40) % 4
                yield torch.randn(40, length, 6, generator=generator) + y[:, None, None], y

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
    whole = measure(model, Growing(), reduction="tokens", classes=4, sites=["1", "3"])
    foreseen = 4 * 200 * 2 * (6 + 8 + 8)
    options = {"reduction": "tokens", "classes": 4, "sites": ["1", "3"]}
    shared, kept = measured(Growing(), model=model, memory=foreseen + 1000, **options)
    assert kept[0] is False
    assert shared.curve() == pytest.approx(whole.curve(), rel=1e-9)
    assert shared.curve("cdnv") == pytest.approx(whole.curve("cdnv"), rel=1e-9)
