"""The estimate of the comparative bound, from evidence whose depths are known."""

from __future__ import annotations

import pytest

from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Figure
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.papers.galanti2022.bound import BOUND, BOUND_DEPTHS, DEEPEST
from equisep.figures.papers.galanti2022.shallow_bound import SHALLOW
from equisep.figures.papers.galanti2022_bound import Estimate, estimates, least_estimates

SEEDS = (0, 1, 2, 3)
ADMITTED = {"own_depth": 2.0, "own_separated": 0.995, "own_error": 0.25, "own_balance": 0.1}


def evidence(
    effective: dict[int, int | None],
    least: dict[int, dict[int, int | None]],
    *,
    figure: Figure = BOUND,
    numbers: dict[int, dict[str, float | None]] | None = None,
) -> Evidence:
    """Networks on S1 of these effective depths by seed; at each share, these least depths that separate both by seed."""
    entries = []
    for series in figure.series:
        kind, _, last = series.name.partition("-")
        for seed, depth in effective.items():
            own: dict[str, float | None] = {}
            if kind == "first":
                ncc = tuple(1.0 if depth is not None and site >= depth else 0.5 for site in range(13))
                own = {"balance": 0.1} | (numbers or {}).get(seed, {})
            elif int(last) not in least or seed not in least[int(last)]:
                continue
            else:
                enough = least[int(last)][seed]
                d = int(kind.removeprefix("joined"))
                ncc = (0.3,) * d + (1.0 if enough is not None and d >= enough else 0.8,)
            cell = figure.cell(series).with_(seed=seed, data_seed=seed)
            curves = Curves(epoch=500, reading="eval", ncc=ncc, accuracy_test=0.75)
            entries.append(Entry(series.name, cell, Outcome(readings=(curves,), numbers=own)))
    return gather(figure, entries, scale="paper")


def deepest(rows: tuple[Estimate, ...]) -> list[Estimate]:
    return [row for row in rows if row.depth == DEEPEST]


def test_probability_that_the_depth_on_one_sample_reaches_the_depth_both_need() -> None:
    depths = dict.fromkeys(SEEDS, 3)
    found = deepest(estimates(evidence(depths, {10: {0: 2, 1: 3, 2: 4, 3: 5}, 50: {0: 4, 1: 4, 2: None, 3: 12}})))
    assert [(one.drawn.p, one.drawn.n, one.drawn.probability, one.value) for one in found] == [
        (0.1, 4, 0.5, pytest.approx(0.6)),
        (0.5, 4, 0.0, 0.5),
    ]
    assert found[0].drawn.least_depth == 3.5 and found[1].drawn.least_depth == pytest.approx(20 / 3)
    assert all(one.own is None and one.error == pytest.approx(0.25) for one in found)
    (least,) = (one for one in least_estimates(estimates(evidence(depths, {10: {0: 2}, 50: {0: 4}}))) if one.depth == 2)
    assert least.drawn.p == 0.5


def test_a_network_that_separates_nothing_counts_against_the_estimate() -> None:
    (one,) = deepest(estimates(evidence({0: None, 1: 3}, {20: {0: None, 1: None}})))
    assert one.drawn.probability == 0.5 and one.value == pytest.approx(0.7) and one.drawn.least_depth is None


def test_answers_out_of_balance_add_their_share() -> None:
    (one,) = deepest(
        estimates(evidence(dict.fromkeys(SEEDS, 3), {20: dict.fromkeys(SEEDS, 4)}, numbers={2: {"balance": 0.3}}))
    )
    assert one.drawn.delta == 0.25 and one.value == pytest.approx(0.45)


def test_nothing_is_estimated_before_every_depth_was_run() -> None:
    whole = evidence({0: 3, 1: 3}, {30: {0: 4}})
    assert [one.drawn.n for one in deepest(estimates(whole))] == [1]
    entries = [entry for found in whole.series.values() for entry in found.entries]
    partly = [entry for entry in entries if entry.series != f"joined{BOUND_DEPTHS[3]}-30"]
    assert estimates(gather(BOUND, partly, scale="paper")) == ()


@pytest.mark.parametrize(
    ("changed", "counted"),
    [({}, True), ({"own_separated": 0.98}, False), ({"own_error": 0.05}, False), ({"own_balance": 0.3}, False)],
)
def test_labels_of_a_networks_own_count_where_the_proposition_admits_them(
    changed: dict[str, float], counted: bool
) -> None:
    own = {seed: {**ADMITTED, **changed} for seed in (0, 1)}
    labels = {10: dict.fromkeys((0, 1)), 30: dict.fromkeys((0, 1))}
    at = {one.drawn.p: one for one in estimates(evidence({0: 2, 1: 2}, labels, figure=SHALLOW, numbers=own))}
    assert at[0.1].drawn.value == pytest.approx(0.1)
    assert at[0.1].own is not None and at[0.1].own.probability == float(counted)
    assert at[0.1].value == pytest.approx(1.1 if counted else 0.1)
    assert at[0.3].value == pytest.approx(0.3)  # they differ on a quarter alone
