"""Solved cells against closed forms and reference values, with proofs; what cannot be solved is said."""

from __future__ import annotations

import math

import pytest

from equisep.errors import InputError, NumericalError
from equisep.figures.cell import Solve
from equisep.figures.figure import Figure
from equisep.figures.outcome import Outcome
from equisep.figures.papers.fang2021 import BALANCED, MINORITY, QNORM, RATIOS
from equisep.figures.papers.fang2021_two_layer import TWO_LAYER
from equisep.runs.runners.peeled import solve_cell

FEW = 6  # starts, which find what the figure's 32 find
FOUR = Solve(problem="qnorm", majority=4, dimension=8, starts=32)
# K = 10, E_W = 1: R* by a root of the reduced problem, to the digits given
THRESHOLDS = {
    "EH5-kA3": 245.497, "EH5-kA5": 12.1924, "EH5-kA7": 4.00047, "EH10-kA3": 6350.85, "EH10-kA5": 81.1022,
    "EH10-kA7": 13.6659,
}  # fmt: skip


def solved(figure: Figure, name: str, **changes: int) -> Outcome:
    (series,) = figure.named(name)
    return solve_cell(figure.cell(series).with_(**changes))


@pytest.mark.parametrize("classes", [2, 3, 10, 30])
def test_balanced_classes_give_a_simplex_etf(classes: int) -> None:
    numbers = solved(BALANCED, f"K-{classes}").numbers
    margin = math.sqrt(5) * classes / (classes - 1)
    assert numbers["value"] == pytest.approx(math.log1p((classes - 1) * math.exp(-margin)), rel=1e-12)
    for name in ("cosine_error", "duality_error", "relative_gap"):
        assert 0 <= numbers[name] < 1e-6, name
    assert abs(numbers["value_error"]) < 1e-12


@pytest.mark.parametrize(
    ("q", "p", "value", "least", "largest"),
    [(1.5, 8, 0.0795173, -0.568, -0.145), (3, 8, 0.1136930, -0.398, -0.301), (2, 8, 0.1416399, -1 / 3, -1 / 3)],
)
def test_q_norms_in_eight_dimensions(q: float, p: int, value: float, least: float, largest: float) -> None:
    numbers = solved(QNORM, f"q{q:g}-p{p}", starts=FEW).numbers
    assert numbers["value"] == pytest.approx(value, abs=5e-8)
    assert numbers["least_cosine"] == pytest.approx(least, abs=6e-4)
    assert numbers["largest_cosine"] == pytest.approx(largest, abs=6e-4)
    assert numbers["collapsed"] == float(q == 2) and numbers["proven"] == float(q == 2)
    if q != 2:
        assert numbers["etf_advantage"] > 1e-4 and numbers["collapse_distance"] > 0.05


@pytest.mark.parametrize("p", [6, 9])
def test_the_counterexample_is_proven(p: int) -> None:
    """±1 vectors form a simplex ETF of four classes where p is a multiple of 3: the 2-norm bound is reached."""
    outcome = solved(QNORM, f"q3-p{p}", starts=FEW)
    energy = (math.sqrt(p) * 5) ** (2 / 3)
    least = math.log1p(3 * math.exp(-math.sqrt(energy) * 4 / 3))
    assert outcome.numbers["value"] == pytest.approx(least, rel=1e-9)
    assert outcome.numbers["proven"] == 1 and outcome.numbers["relative_gap"] < 1e-8
    assert outcome.numbers["collapse_distance"] < 1e-6 and not outcome.notes
    if p == 6:
        assert outcome.numbers["value"] == pytest.approx(0.1299657, abs=5e-8)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_minority_collapse(name: str) -> None:
    outcome = solved(MINORITY, name)
    numbers, arrays = outcome.numbers, outcome.arrays
    assert numbers["threshold"] == pytest.approx(THRESHOLDS[name], rel=5e-6)
    assert arrays["ratios"] == pytest.approx(RATIOS)
    for quantity in ("first_cosine_error", "collapsed_error", "collapsed_distance", "limit_distance", "relative_gap"):
        assert 0 <= numbers[quantity] < 1e-9, quantity
    assert numbers["first_cosine"] == pytest.approx(-1 / 9)
    assert numbers["least_rise"] > 0 and numbers["open_gap"] > 1e-3 and numbers["mean_gap"] > 0.01
    for ratio, cosine in zip(arrays["ratios"], arrays["classifier_cosines"], strict=True):
        gone = numbers["vanishing"] is not None and ratio >= numbers["vanishing"]
        assert (cosine is None) == gone
        assert gone or (cosine > 1 - 1e-9) == (ratio >= numbers["threshold"])
    assert bool(outcome.notes) == (numbers["vanishing"] is not None)


def test_reference_values_of_five_and_five_classes() -> None:
    cell = Solve(problem="minority", majority=5, minority=5, ratios=(1000, 100, 10, 1))
    arrays = solve_cell(cell).arrays
    assert arrays["ratios"] == (1, 10, 100, 1000)
    assert arrays["values"] == pytest.approx((5.597815, 1.439224, 0.461061, 0.357699), abs=5e-7)
    assert arrays["classifier_cosines"] == pytest.approx((-1 / 9, 0.517496, 1, 1), abs=5e-7)
    assert arrays["feature_cosines"][1] == pytest.approx(0.3868, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "saved", "rank"), [("linear-K6-4", 0.459, 3), ("linear-K3-2", 0, 2), ("relu-K3-2", 0, 2)]
)
def test_two_layers_collapse_or_save_a_part_of_the_loss(name: str, saved: float, rank: int) -> None:
    numbers = solved(TWO_LAYER, name, starts=2).numbers
    assert numbers["collapse_advantage"] == pytest.approx(saved, abs=1e-3) and numbers["logit_rank"] == rank
    assert numbers["proven"] == 0 and 0 < numbers["relative_gap"] < 1


def test_every_claim_asks_for_numbers_that_are_there() -> None:
    for figure, name in ((BALANCED, "K-2"), (QNORM, "q2-p6"), (MINORITY, "EH5-kA5"), (TWO_LAYER, "linear-K2-1")):
        asked = {claim.quantity for claim in figure.claims} | {
            name for panel in figure.panels if panel.kind == "sweep" for name in panel.y.split("; ")
        }
        outcome = solved(figure, name, starts=2)
        assert asked <= set(outcome.numbers), figure.id
        arrays = {name for panel in figure.panels if panel.kind == "array" for name in (panel.x, panel.y)}
        assert arrays <= set(outcome.arrays)
        assert Outcome.from_dict(outcome.to_dict()) == outcome


def test_the_same_cell_gives_the_same_numbers() -> None:
    cell = FOUR.with_(power=3.0, starts=2, seed=7)
    first, second = solve_cell(cell), solve_cell(cell)
    assert first == second
    assert first.notes and "2 starts" in first.notes[0]
    other = solve_cell(cell.with_(seed=8))
    assert other.numbers["stationarity"] != first.numbers["stationarity"]


def test_numbers_that_no_ratio_reaches_do_not_exist() -> None:
    cell = Solve(problem="minority", majority=5, minority=5, ratios=(2.0, 3.0))
    numbers = solve_cell(cell).numbers
    assert numbers["first_cosine_error"] is None and numbers["collapsed_error"] is None
    assert numbers["least_rise"] > 0
    single = solve_cell(cell.with_(majority=9, minority=1)).numbers
    assert single["threshold"] is None and single["first_cosine"] is None


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (Solve(problem="balanced", majority=4, minority=2, dimension=6, starts=1), "Count all classes"),
        (Solve(problem="minority", majority=5, minority=5), "found none. Pass `ratios`"),
        (Solve(problem="balanced", majority=4, dimension=4), "`starts` must be a whole number"),
        (FOUR.with_(dimension=0), "`dimension` must be a whole number"),
        (FOUR.with_(dimension=2, starts=2), "needs at least 3 dimensions"),
    ],
)
def test_bad_cells(cell: Solve, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        solve_cell(cell)


def test_a_least_value_that_no_bound_proves_is_an_error() -> None:
    """Four classes in two dimensions: the convex form, which needs three, has a lower value."""
    cell = Solve(problem="balanced", majority=4, dimension=2, starts=4)
    with pytest.raises(NumericalError, match=r"4 balanced classes in 2 dimensions .* is stationary"):
        solve_cell(cell)
