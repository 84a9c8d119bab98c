"""The estimate of the comparative bound, from evidence whose depths are known."""

from __future__ import annotations

import pytest

from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.papers.galanti2022 import BOUND, BOUND_DEPTHS
from equisep.figures.papers.galanti2022_bound import estimates

SEEDS = (0, 1, 2, 3)


def evidence(effective: dict[int, int | None], least: dict[int, dict[int, int | None]]) -> Evidence:
    """Networks on S1 of these effective depths by seed; at each share, these least depths that separate both by seed."""
    entries = []
    for series in BOUND.series:
        kind, _, last = series.name.partition("-")
        for seed, depth in effective.items():
            if kind == "first":
                ncc = tuple(1.0 if depth is not None and site >= depth else 0.5 for site in range(13))
            elif int(last) not in least or seed not in least[int(last)]:
                continue
            else:
                enough = least[int(last)][seed]
                d = int(kind.removeprefix("joined"))
                ncc = (0.3,) * d + (1.0 if enough is not None and d >= enough else 0.8,)
            cell = BOUND.cell(series).with_(seed=seed, data_seed=seed)
            entries.append(Entry(series.name, cell, Outcome(readings=(Curves(epoch=500, reading="eval", ncc=ncc),))))
    return gather(BOUND, entries, scale="paper")


def test_probability_that_the_depth_on_one_sample_reaches_the_depth_both_need() -> None:
    depths = dict.fromkeys(SEEDS, 3)
    found = estimates(evidence(depths, {10: {0: 2, 1: 3, 2: 4, 3: 5}, 50: {0: 4, 1: 4, 2: None, 3: 12}}))
    assert [(one.p, one.n, one.probability, one.value) for one in found] == [
        (0.1, 4, 0.5, pytest.approx(0.6)),
        (0.5, 4, 0.0, 0.5),
    ]
    assert found[0].least_depth == 3.5 and found[1].least_depth == pytest.approx(20 / 3)


def test_a_network_that_separates_nothing_counts_against_the_estimate() -> None:
    (one,) = estimates(evidence({0: None, 1: 3}, {20: {0: None, 1: None}}))
    assert one.probability == 0.5 and one.value == pytest.approx(0.7) and one.least_depth is None


def test_nothing_is_estimated_before_every_depth_was_run() -> None:
    whole = evidence({0: 3, 1: 3}, {30: {0: 4}})
    assert [one.n for one in estimates(whole)] == [1]
    entries = [entry for found in whole.series.values() for entry in found.entries]
    partly = [entry for entry in entries if entry.series != f"joined{BOUND_DEPTHS[3]}-30"]
    assert estimates(gather(BOUND, partly, scale="paper")) == ()
