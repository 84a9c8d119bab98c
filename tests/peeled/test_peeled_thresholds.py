"""R* and R₀ against reference values, against the solver on both sides of them, and at the ends of what numbers can hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from closeness import close
from equisep.errors import InputError, NumericalError
from equisep.peeled import Problem, solve_reduced, threshold, thresholds_of
from equisep.peeled.solvers.batch import Batch
from equisep.peeled.solvers.reduced import solve_batch
from equisep.peeled.thresholds import log_collapse_ratios

GRID = [(k, m, energy) for k in (1, 2, 5, 300) for m in (2, 5, 60) for energy in (1e-4, 0.1, 1, 30)]


@pytest.mark.parametrize(
    ("majority", "energy", "expected"),
    [(5, 5, 12.1924), (5, 10, 81.1022), (5, 20, 1290.54), (3, 5, 245.497), (7, 5, 4.00047), (3, 10, 6350.85)],
)
def test_reference_thresholds_of_ten_classes(majority: int, energy: float, expected: float) -> None:
    """Reference values, six digits, K = 10, E_W = 1."""
    found = threshold(majority=majority, minority=10 - majority, feature_energy=energy, weight_energy=1)
    close(found, expected, rtol=5e-6)


@pytest.mark.parametrize(
    ("classes", "energy", "collapse", "vanishing"),
    [(50, 5, 1.88566, 2.00145), (5, 1, 1.73542, 2.74888), (5, 5, 12.1924, None)],
)
def test_reference_ratios_of_vanishing(classes: int, energy: float, collapse: float, vanishing: float | None) -> None:
    found = thresholds_of(classes, classes, energy, 1)
    close(found.collapse, collapse, rtol=5e-6)
    if vanishing is None:
        assert found.vanishing is None
    else:
        close(found.vanishing, vanishing, rtol=5e-6)


@pytest.mark.parametrize(("majority", "minority", "energy"), GRID)
def test_the_minority_collapses_and_vanishes_exactly_from_there_on(majority: int, minority: int, energy: float) -> None:
    found = thresholds_of(majority, minority, energy, 1)
    assert found.collapse > 1 and math.log(found.collapse) == pytest.approx(found.log_collapse, rel=1e-12)
    ratios = [found.collapse * side for side in (1 - 1e-6, 1 + 1e-6)]
    if found.vanishing is not None:
        assert found.vanishing >= found.collapse
        ratios += [found.vanishing * side for side in (1 - 1e-6, 1 + 1e-6)]
    problems = [
        Problem.two_groups(majority, minority, ratio, feature_energy=energy, weight_energy=1) for ratio in ratios
    ]
    solutions = [solution.or_raise() for solution in solve_reduced(problems)]
    assert solutions[0].form.s[1] > 0 == solutions[1].form.s[1]
    if found.vanishing is not None:
        assert [solution.geometry.vanished[1] for solution in solutions[2:]] == [False, True]


@pytest.mark.parametrize(("majority", "minority", "energy"), GRID[::5])
def test_the_threshold_is_where_the_weight_meets_the_multiplier_with_s_held_at_zero(majority, minority, energy) -> None:
    """μ_B(w) = w at w = 1/R*, μ_B of the problem whose s_B is held at 0: the definition, without the equation for θ."""
    found = thresholds_of(majority, minority, energy, 1)
    problem = Problem.two_groups(majority, minority, found.collapse, feature_energy=energy, weight_energy=1)
    _, _, gap, _ = solve_batch(Batch.of([problem], held=[1]))
    assert gap.gap[0] <= 1e-9 * gap.value[0]
    close(gap.multiplier[0], 1 / found.collapse, rtol=1e-8)
    close(found.multiplier, 1 / found.collapse)


def test_only_the_product_of_the_energies_counts() -> None:
    close(threshold(5, 5, 0.5, 10), threshold(5, 5, 5, 1), rtol=1e-12)


def test_the_threshold_rises_with_the_energy_and_falls_with_the_share_of_the_majority() -> None:
    energies = np.linspace(0.01, 8, 300)
    logs, residuals = log_collapse_ratios(np.full(300, 5.0), np.full(300, 5.0), energies)
    assert (np.diff(logs) > 0).all() and np.abs(residuals).max() < 1e-12
    by_share, _ = log_collapse_ratios(np.arange(1.0, 9), np.arange(9.0, 1, -1), np.full(8, math.sqrt(5)))
    assert (np.diff(by_share) < 0).all()


def test_tiny_energies_let_the_least_imbalance_collapse_the_minority() -> None:
    found = thresholds_of(5, 5, 1e-8, 1)
    assert 1 < found.collapse < found.vanishing < 1 + 1e-3


def test_a_threshold_beyond_the_greatest_float_is_infinite_and_its_logarithm_is_not() -> None:
    found = thresholds_of(5, 5, 1e6, 1)
    assert found.collapse == math.inf and found.multiplier == 0
    assert 700 < found.log_collapse < 1e4
    assert threshold(5, 5, 1e6, 1) == math.inf


def test_an_energy_too_small_for_its_effect_to_be_a_number_is_told() -> None:
    with pytest.raises(NumericalError, match="Use less extreme energies"):
        thresholds_of(5, 5, 1e-100, 1)


def test_vanishing_needs_little_energy() -> None:
    """R₀ exists iff √(E_W E_H) < (k_A(k_A−1)/K) log(1 + √(K/k_B))."""
    limit = (5 * 4 / 10 * math.log(1 + math.sqrt(2))) ** 2
    assert thresholds_of(5, 5, limit * (1 - 1e-9), 1).vanishing > 1e3
    assert thresholds_of(5, 5, limit * (1 + 1e-9), 1).vanishing is None
    assert thresholds_of(1, 5, 1e-3, 1).vanishing is None  # one majority class never lets the others vanish


def test_one_minority_class_cannot_collapse_but_can_vanish() -> None:
    with pytest.raises(InputError, match="needs at least 2 minority classes; found 1"):
        threshold(5, 1, 5, 1)
    found = thresholds_of(5, 1, 1, 1)
    assert found.collapse is found.log_collapse is found.multiplier is found.residual is None
    ratios = [found.vanishing * side for side in (1 - 1e-6, 1 + 1e-6)]
    problems = [Problem.two_groups(5, 1, ratio, feature_energy=1, weight_energy=1) for ratio in ratios]
    assert [solution.geometry.vanished[1] for solution in solve_reduced(problems)] == [False, True]


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "5"])
def test_bad_energies_and_counts_are_told(bad: object) -> None:
    with pytest.raises(InputError, match="`feature_energy` must be a finite number above 0"):
        threshold(5, 5, bad, 1)
    with pytest.raises(InputError, match="`weight_energy` must be a finite number above 0"):
        threshold(5, 5, 5, bad)
    with pytest.raises(InputError, match="The number of majority classes must be a whole number"):
        threshold(bad if bad != "5" else 2.5, 5, 5, 1)
    with pytest.raises(InputError, match="The number of minority classes must be a whole number"):
        threshold(5, bad if bad != "5" else 2.5, 5, 1)
