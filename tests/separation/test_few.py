"""Few samples at once: what two passes find, to rounding. Tried on the CPU, where only the choice of the path is forced."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from equisep.separation import Assignments, TestSite, TrainSite
from equisep.separation.centers import cdnv_of
from equisep.separation.convention import PAPER
from equisep.separation.fuzziness import class_fuzziness_of, fuzziness_of
from equisep.separation.site import SiteStatistics, SiteTask, TestStatistics, side_by_side, train_and_test, whole_sites

SCENES: dict[str, dict[str, Any]] = {
    "plain": {"n": 120, "d": 50, "k": 6},
    "wide": {"n": 60, "d": 900, "k": 4},
    "more classes than features": {"n": 200, "d": 3, "k": 9},
    "a class without rows": {"n": 80, "d": 30, "k": 5, "absent": 2},
    "unequal": {"n": 150, "d": 40, "k": 5, "unequal": True},
    "half precision": {"n": 100, "d": 20, "k": 4, "dtype": torch.bfloat16},
    "far from zero": {"n": 100, "d": 20, "k": 4, "offset": 1000.0},
    "collapsed": {"n": 100, "d": 20, "k": 4, "spread": 0.0},
    "integers": {"n": 100, "d": 20, "k": 4, "dtype": torch.int16},
}


def scene(
    *,
    n: int,
    d: int,
    k: int,
    absent: int | None = None,
    unequal: bool = False,
    dtype: torch.dtype = torch.float32,
    offset: float = 0.0,
    spread: float = 1.0,
) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(n + d)
    y = torch.arange(n) % k
    if unequal:
        y = torch.where(torch.arange(n) < n // 2, 0, y)
    if absent is not None:
        y = torch.where(y == absent, 0, y)
    means = 3 * torch.randn(k, d, generator=draw)
    return (10 * (means[y] + spread * torch.randn(n, d, generator=draw)) + offset).to(dtype), y


@pytest.mark.parametrize("name", SCENES)
def test_few_rows_at_once_are_two_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = scene(**SCENES[name])
    layer = nn.Linear(x.shape[1], SCENES[name]["k"])
    task = SiteTask(classes=SCENES[name]["k"], collapse=True, layer=layer)
    parts, rows = list(x.split(37)), Assignments(y)

    def both() -> tuple[SiteStatistics, TestStatistics]:
        (train,) = whole_sites([TrainSite(task)], [parts], rows)
        (test,) = whole_sites([TestSite(train.spread, task)], [[x.flip(0)]], Assignments(y.flip(0)))
        return train, test

    plain = both()
    monkeypatch.setattr(train_and_test, "few_on_gpu", lambda features, classes: True)
    few = both()
    for one, other in zip(few, plain, strict=True):
        assert one.spread.subspace.rank == other.spread.subspace.rank
        assert one.spread.subspace.cut == pytest.approx(other.spread.subspace.cut, rel=1e-10)
        assert one.spread.subspace.trace_between == pytest.approx(other.spread.subspace.trace_between, rel=1e-12)
        assert fuzziness_of(one.spread, PAPER) == pytest.approx(fuzziness_of(other.spread, PAPER), rel=1e-10, abs=1e-20)
        torch.testing.assert_close(
            class_fuzziness_of(one.spread), class_fuzziness_of(other.spread), rtol=1e-10, atol=1e-20
        )
        assert cdnv_of(one.spread) == pytest.approx(cdnv_of(other.spread), rel=1e-10, abs=1e-20)
        assert one.nearest is not None and other.nearest is not None
        assert torch.equal(one.nearest.hits, other.nearest.hits)
        assert one.nearest.disagreements == other.nearest.disagreements
    collapse, expected = few[0].collapse, plain[0].collapse
    assert collapse is not None and expected is not None
    assert fuzziness_of(collapse, PAPER) == pytest.approx(fuzziness_of(expected, PAPER), rel=1e-10, abs=1e-20)


@pytest.mark.parametrize("room", [2**26, 50 * 960])
def test_sites_of_any_width_at_once_are_each_alone(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of one width, one narrower than there are classes, one of half precision, in other pieces, and test rows beside.

    A batch may be empty, which is one piece of a site whose batches were not joined.
    """
    names = ("plain", "plain", "wide", "more classes than features", "half precision")
    tasks = [SiteTask(classes=9, collapse=True, steps=steps) for steps in (0.5, 64.0, 64.0, 64.0, 64.0)]
    y = torch.arange(50) % 7  # two classes are absent
    features = [scene(**(SCENES[name] | {"n": 50, "k": 9}))[0] + number for number, name in enumerate(names)]
    parts = [list(x.split(size)) for x, size in zip(features, (50, 20, 15, 20, 50), strict=True)]
    parts[2].insert(1, parts[2][0][:0])
    parts[3].append(parts[3][0][:0])

    def both(*numbers: int) -> list[tuple[SiteStatistics, TestStatistics]]:
        sites, mine = [TrainSite(tasks[i]) for i in numbers], [parts[i] for i in numbers]
        train = whole_sites(sites, mine, Assignments(y))
        beside = [TestSite(each.spread, tasks[i]) for each, i in zip(train, numbers, strict=True)]
        test = whole_sites(beside, [[torch.cat(part).flip(0)] for part in mine], Assignments(y.flip(0)))
        return list(zip(train, test, strict=True))

    alone = [both(number)[0] for number in range(len(names))]
    monkeypatch.setattr(side_by_side, "TOGETHER", room)
    monkeypatch.setattr(train_and_test, "few_on_gpu", lambda features, classes: True)
    for pair, expected in zip(both(*range(len(names))), alone, strict=True):
        for one, other in zip(pair, expected, strict=True):
            assert one.spread.subspace.rank == other.spread.subspace.rank
            assert one.spread.subspace.cut == pytest.approx(other.spread.subspace.cut, rel=1e-10)
            assert fuzziness_of(one.spread, PAPER) == pytest.approx(fuzziness_of(other.spread, PAPER), rel=1e-10)
            assert cdnv_of(one.spread) == pytest.approx(cdnv_of(other.spread), rel=1e-10)
            assert one.nearest is not None and other.nearest is not None
            assert torch.equal(one.nearest.hits, other.nearest.hits)
