"""Every class a group of its own: published values, closed forms, optimality conditions, and never "solved" unproven."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import close
from equisep.errors import InputError, NumericalError
from equisep.peeled.problem import Problem
from equisep.peeled.solvers import sphere
from equisep.peeled.solvers.reduced import solve_general, solve_reduced


def two_groups(ratio: float, *, energy: float = 5.0) -> Problem:
    return Problem.two_groups(5, 5, ratio, feature_energy=energy, weight_energy=1)


def long_tail(classes: int, *, imbalance: float = 100.0, energy: float = 5.0) -> Problem:
    weights = imbalance ** (-np.arange(classes) / (classes - 1))
    return Problem.of_weights(weights / weights.sum(), feature_energy=energy, weight_energy=1)


def cosines(rows: np.ndarray) -> np.ndarray:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return (unit @ unit.T)[~np.eye(len(rows), dtype=bool)]


def test_the_values_of_three_independent_solvers() -> None:
    """K = 10, five classes of weight 1 and five of 1/R, E_H = 5, E_W = 1."""
    found = solve_general([two_groups(ratio) for ratio in (1, 10, 100, 1000)])
    close([s.value for s in found], [5.597815, 1.439224, 0.461061, 0.357699], rtol=2e-6)
    for solution, cosine in zip(found, [-1 / 9, 0.517496, 1.0, 1.0], strict=True):
        assert solution.result == "solved"
        assert solution.solver == "general"
        assert np.abs(cosines(solution.W[5:]) - cosine).max() < 1e-5
    assert np.abs(cosines(found[1].H[5:]) - 0.3868).max() < 5e-5


def test_three_groups_have_the_singular_values_of_the_reduced_form() -> None:
    """s_g is a singular value k_g − 1 times, and those of M come once each."""
    problem = Problem.of_groups([3, 4, 5], [1, 0.3, 0.05], feature_energy=5, weight_energy=1)
    solution = solve_general([problem])[0]
    close(solution.value, 1.18559125, rtol=1e-8)
    close(solution.certificate.multiplier, 0.07849571, rtol=1e-7)
    expected = [5.270096] * 2 + [4.718023] + [3.821425] * 3 + [0.110325] + [0.0] * 5
    assert np.abs(np.linalg.svd(solution.Z, compute_uv=False) - expected).max() < 1e-5


@pytest.mark.parametrize("classes", [2, 3, 10, 41])
def test_balanced_classes_have_the_simplex_etf(classes: int) -> None:
    problem = Problem.of_sizes([7] * classes, feature_energy=3.0, weight_energy=0.5)
    solution = solve_general([problem])[0]
    own = math.sqrt(1.5)
    etf = own * (np.eye(classes) * classes - 1) / (classes - 1)
    assert np.abs(solution.Z - etf).max() < 1e-6
    close(solution.value, math.log1p((classes - 1) * math.exp(-own * classes / (classes - 1))))


@pytest.mark.parametrize(
    ("classes", "tolerance"), [(10, 1e-9), (25, 1e-9), (50, 1e-9), (100, 1e-8)], ids=lambda value: f"{value:g}"
)
def test_long_tails_are_solved_to_the_gap_asked_for(classes: int, tolerance: float) -> None:
    problem = long_tail(classes)
    assert problem.groups == classes
    solution = solve_general([problem], tolerance=tolerance)[0]
    assert solution.result == "solved"
    assert solution.certificate.relative_gap <= tolerance
    assert solution.certificate.feasibility <= 1e-12


def test_the_reduced_solver_agrees() -> None:
    """It uses the symmetry that this one does not."""
    problems = [two_groups(ratio) for ratio in (1, 3, 12.1924, 50, math.inf)]
    problems += [two_groups(30, energy=energy) for energy in (0.1, 1.0, 100.0)]
    problems += [Problem.of_groups([3, 4, 3], [1, 0.3, 0.05], feature_energy=5, weight_energy=1), long_tail(9)]
    for one, other in zip(solve_general(problems), solve_reduced(problems), strict=True):
        close(one.value, other.value, rtol=2e-9)
        close(one.certificate.multiplier, other.certificate.multiplier, rtol=1e-6)
        assert np.abs(one.Z - other.Z).max() < 1e-4 * np.abs(other.Z).max()


def test_the_optimality_conditions_hold() -> None:
    """∇f = −μ U Vᵀ on the range of Z and no larger elsewhere, the budget is spent, and the rows sum to zero."""
    for problem in (two_groups(10), two_groups(300), long_tail(12), long_tail(12, energy=100.0)):
        solution = solve_general([problem], tolerance=1e-11)[0]
        Z, weights = solution.Z, problem.class_weights
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        gradient = weights[:, None] * (P - np.eye(len(Z)))
        U, sigma, Vt = np.linalg.svd(Z)
        kept = sigma > 1e-4 * sigma[0]
        mu = np.linalg.norm(gradient, 2)
        assert np.abs(gradient @ Vt[kept].T + mu * U[:, kept]).max() < 1e-6 * mu
        close(sigma.sum(), problem.budget)
        assert np.abs(Z.sum(axis=1)).max() < 1e-5 * sigma[0]


def test_a_minority_absent_from_the_loss_has_no_logits_of_its_own() -> None:
    solution = solve_general([two_groups(math.inf)])[0]
    assert solution.result == "solved"
    assert np.abs(solution.Z[5:]).max() < 1e-6
    near = solve_general([two_groups(1e9)])[0]
    close(solution.value, near.value, rtol=1e-6)


def test_problems_of_many_sizes_come_back_in_their_order() -> None:
    problems = [two_groups(3), long_tail(4), two_groups(30), long_tail(7), long_tail(4, energy=50.0), two_groups(3)]
    together = solve_general(problems)
    for problem, found in zip(problems, together, strict=True):
        assert found.problem is problem
        alone = solve_general([problem])[0]
        close(found.value, alone.value)
        assert np.abs(found.Z - alone.Z).max() < 1e-6
    assert solve_general([]) == []


weights = st.lists(st.floats(-3, 0).map(lambda power: 10**power), min_size=2, max_size=6)
energies = st.floats(-1, 2).map(lambda power: 10**power)


@settings(max_examples=30)
@given(weights=weights, energy=energies, factor=st.floats(0.01, 100), seed=st.integers(0, 99))
def test_any_problem_is_solved_and_keeps_its_symmetries(
    weights: list[float], energy: float, factor: float, seed: int
) -> None:
    """Only E_H·E_W matters, the value scales with the weights, and classes have no order."""
    order = np.random.default_rng(seed).permutation(len(weights))
    omegas = np.array(weights)
    first, scaled, shuffled = solve_general(
        [
            Problem.of_weights(omegas, feature_energy=energy, weight_energy=1),
            Problem.of_weights(factor * omegas, feature_energy=energy * factor, weight_energy=1 / factor),
            Problem.of_weights(omegas[order], feature_energy=energy, weight_energy=1),
        ]
    )
    assert {s.result for s in (first, scaled, shuffled)} == {"solved"}
    close(scaled.value, factor * first.value, rtol=2e-9)
    close(shuffled.value, first.value, rtol=2e-9)
    scale = np.abs(first.Z).max()
    assert np.abs(scaled.Z - first.Z).max() < 1e-3 * scale
    assert np.abs(shuffled.Z - first.Z[np.ix_(order, order)]).max() < 1e-3 * scale


@pytest.mark.parametrize("energy", [1e-4, 400.0, 2500.0, 1e4])
@pytest.mark.parametrize("ratio", [1.01, 1e4])
def test_extreme_energies_are_solved_too(energy: float, ratio: float) -> None:
    solution = solve_general([two_groups(ratio, energy=energy)])[0]
    assert solution.result == "solved"
    assert 0 < solution.value < 5 * math.log(10) * (1 + 1 / ratio)


def test_the_edge_of_collapse_is_solved_too() -> None:
    """At R = R* strict complementarity fails, where second-order methods slow down."""
    found = solve_general([two_groups(12.1924), two_groups(81.1022, energy=10), two_groups(1290.54, energy=20)])
    assert [s.result for s in found] == ["solved"] * 3


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_solver_that_stops_early_says_so_with_a_gap_that_holds(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    best = solve_general([two_groups(10)])[0]
    monkeypatch.setattr(sphere, "OUTER", steps)
    early = solve_general([two_groups(10)], throw=False)[0]
    assert early.result.word == "stopped"
    assert early.iterations == steps
    assert early.certificate.relative_gap > 1e-9
    assert 0 < early.value - best.value <= early.certificate.gap
    with pytest.raises(NumericalError, match=r"general solver .* stopped after"):
        early.or_raise()


def test_a_gap_that_cannot_be_reached_is_not_called_solved() -> None:
    found = solve_general([two_groups(10)], tolerance=0.0, throw=False)[0]
    assert found.result.word == "stopped"
    close(found.value, 1.439224, rtol=1e-6)


def test_a_loss_that_underflows_is_not_called_solved() -> None:
    found = solve_general([two_groups(3, energy=1e7), two_groups(3)], throw=False)
    assert [s.result.word for s in found] == ["stopped", "solved"]
    assert found[0].value == 0


def test_too_many_classes_name_the_other_solver() -> None:
    huge = Problem.two_groups(50_000, 50_000, 2, feature_energy=5, weight_energy=1)
    with pytest.raises(InputError, match=r"at most 4096 classes; problem 1 has 100000\. Use the reduced solver"):
        solve_general([two_groups(2), huge])
