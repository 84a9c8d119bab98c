"""The problem in W and H from random starts: the simplex ETF, the convex optimum, the q-norm variant, and early stops."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch

from closeness import close
from equisep.errors import InputError, NumericalError
from equisep.peeled.problem import Problem
from equisep.peeled.solution import Solution
from equisep.peeled.solvers.descent import descend, project_on_ball, stationarity_of
from equisep.peeled.solvers.etf import compare_with_etf, etf_value
from equisep.peeled.solvers.nonconvex import enclosing_energy, solve_nonconvex
from equisep.peeled.solvers.reduced import solve_general


def balanced(classes: int) -> Problem:
    return Problem.of_sizes([10] * classes, feature_energy=5, weight_energy=1)


def two_groups(ratio: float) -> Problem:
    return Problem.two_groups(5, 5, ratio, feature_energy=5, weight_energy=1)


@cache
def q_norm(q: float, dimension: int) -> Solution:
    return solve_nonconvex(balanced(4), dimension=dimension, q=q, starts=12)


def kkt_residual(solution: Solution, q: float) -> float:
    """The largest entry of ∇f + λ·∇(constraint), by H and by W, plain numpy and in the problem's own units."""
    W, H, weights = solution.W, solution.H, solution.problem.class_weights
    Z = H @ W.T
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    G = weights[:, None] * (P - np.eye(len(Z)))
    residuals = []
    for slope, normal in ((G @ W, np.sign(H) * np.abs(H) ** (q - 1)), (G.T @ H, W)):
        rate = -(slope * normal).sum() / (normal * normal).sum()
        assert rate > 0
        residuals.append(np.abs(slope + rate * normal).max())
    return float(max(residuals))


@pytest.mark.parametrize("classes", [2, 3, 10, 37, 100])
@pytest.mark.parametrize("seed", [0, 1])
def test_balanced_classes_collapse_to_the_simplex_etf_from_random_starts(classes: int, seed: int) -> None:
    """Fang et al. 2021, Theorem 1: h_k = √(E_H/E_W) w_k, cosines −1/(K−1), own logit √(E_W E_H)."""
    solution = solve_nonconvex(balanced(classes), starts=1, seed=seed)
    assert solution.result == "solved"
    compared = compare_with_etf(solution)
    assert abs(compared.least_cosine + 1 / (classes - 1)) < 1e-6
    assert abs(compared.largest_cosine + 1 / (classes - 1)) < 1e-6
    assert np.abs(solution.H - math.sqrt(5) * solution.W).max() < 1e-6
    close(np.diag(solution.Z), [math.sqrt(5)] * classes, rtol=1e-6)
    close(solution.value, compared.etf_value)
    assert solution.certificate.feasibility <= 1e-12
    assert abs(solution.certificate.distance_to_convex) < 1e-9 * solution.value
    assert solution.certificate.relative_gap < 1e-6


@pytest.mark.parametrize("ratio", [10, 100, math.inf])
@pytest.mark.parametrize("dimension", [9, 10, 20])
def test_unequal_classes_reach_the_convex_optimum_from_k_less_one_dimensions_on(ratio: float, dimension: int) -> None:
    solution = solve_nonconvex(two_groups(ratio), dimension=dimension, starts=2)
    assert solution.result == "solved"
    assert solution.solver == "nonconvex"
    assert solution.W.shape == solution.H.shape == (10, dimension)
    assert abs(solution.certificate.distance_to_convex) < 1e-8 * solution.value
    close(solution.value, solve_general([two_groups(ratio)])[0].value, rtol=1e-8)


def test_weights_of_every_class_and_other_energies() -> None:
    problem = Problem.of_sizes(
        [900, 300, 100, 700, 200], feature_energy=0.4, weight_energy=9, loss_weights=[1, 1, 2, 1, 3]
    )
    solution = solve_nonconvex(problem, starts=2)
    assert solution.result == "solved"
    close(solution.value, solve_general([problem])[0].value, rtol=1e-8)
    close((solution.W**2).sum() / 5, 9.0)
    close((solution.H**2).sum() / 5, 0.4)


def test_fewer_dimensions_than_the_optimum_needs_cost_something_and_it_is_said() -> None:
    solution = solve_nonconvex(two_groups(10), dimension=4)
    assert solution.result.word == "stationary"  # nothing proves that no better point of four dimensions exists
    assert solution.certificate.distance_to_convex > 0.01
    assert solution.certificate.distance_to_convex <= solution.certificate.gap
    assert solution.certificate.stationarity < 1e-9


@pytest.mark.parametrize(
    ("q", "dimension", "value", "least", "largest"),
    [(1.5, 8, 0.0795173, -0.568, -0.145), (2.0, 8, 0.1416399, -1 / 3, -1 / 3), (3.0, 8, 0.1136930, -0.398, -0.301)],
)
def test_q_norms_have_the_values_found_before(
    q: float, dimension: int, value: float, least: float, largest: float
) -> None:
    """K = 4, E_W = 1, E_H = 5: for q ≠ 2 the features are not a simplex ETF."""
    solution = q_norm(q, dimension)
    assert solution.result.word == ("solved" if q == 2 else "stationary")  # the 2-norm bound is not reached for q ≠ 2
    assert solution.or_raise() is solution
    close(solution.value, value, rtol=1e-6)
    compared = compare_with_etf(solution, q=q, starts=32)
    assert abs(compared.least_cosine - least) < 5e-4
    assert abs(compared.largest_cosine - largest) < 5e-4
    assert kkt_residual(solution, q) < 1e-8
    assert solution.certificate.stationarity < 1e-9
    assert solution.certificate.feasibility <= 1e-12
    if q != 2:
        assert compared.advantage > 1e-4
        assert compared.duality > 0.01
        assert solution.certificate.distance_to_convex is None


def test_a_q_norm_under_which_collapse_does_emerge() -> None:
    """K = 4, p = 6, q = 3: ±1 vectors form a simplex ETF, and the gap proves that nothing is better.

    It is a counterexample to the claim that neural collapse emerges for no q ≠ 2. Any H of the q-norm ball has
    Σ‖h_k‖² ≤ K E with the E of `enclosing_energy`, and this one reaches it.
    """
    solution = q_norm(3.0, 6)
    close(solution.value, 0.1299657, rtol=1e-6)
    assert solution.certificate.relative_gap < 1e-8
    compared = compare_with_etf(solution, q=3.0)
    assert max(abs(compared.least_cosine + 1 / 3), abs(compared.largest_cosine + 1 / 3)) < 1e-6
    assert abs(compared.advantage) < 1e-9
    assert compared.duality < 1e-6
    size = (5 * math.sqrt(6)) ** (1 / 3) / math.sqrt(6)
    assert np.abs(np.abs(solution.H) - size).max() < 1e-6


def test_the_gap_bounds_the_distance_to_every_other_point_for_any_q() -> None:
    for q in (1.5, 3.0):
        best = q_norm(q, 8)
        early = solve_nonconvex(balanced(4), dimension=8, q=q, starts=1, seed=7, max_iterations=3, throw=False)
        assert 0 < early.value - best.value <= early.certificate.gap


@pytest.mark.parametrize("q", [1.3, 1.5, 2.0, 3.0, 6.0])
def test_the_enclosing_ball_encloses_and_touches(q: float) -> None:
    problem = balanced(4)
    energy = enclosing_energy(problem, dimension=8, q=q)
    draws = np.random.default_rng(0).standard_normal((200, 32)) ** 3
    on_edge = draws * (20 / (np.abs(draws) ** q).sum(axis=1, keepdims=True)) ** (1 / q)
    assert (on_edge**2).sum(axis=1).max() <= 4 * energy * (1 + 1e-12)
    extreme = np.ones(32) if q >= 2 else np.eye(32)[0]
    touching = extreme * (20 / (extreme**q).sum()) ** (1 / q)
    close((touching**2).sum(), 4 * energy)


def test_the_best_etf_is_at_least_as_good_as_any_rotation_and_known_where_it_is_known() -> None:
    problem = balanced(4)
    close(
        etf_value(problem, dimension=3), etf_value(problem, dimension=8), rtol=1e-12
    )  # q = 2: rotations change nothing
    # q = 3, p = 6: every coordinate of every unit vector is ±1/√6, the least ‖·‖₃³ a unit vector can have
    radius = (5 * math.sqrt(6)) ** (1 / 3)
    close(etf_value(problem, dimension=6, q=3), math.log1p(3 * math.exp(-radius * 4 / 3)))
    # (±1, ±1, ±1)/√3 in three dimensions is one ETF, so the best is no worse
    for q in (1.5, 3.0):
        radius = (5 / (3 * 3 ** (-q / 2))) ** (1 / q)
        assert etf_value(problem, dimension=3, q=q) <= math.log1p(3 * math.exp(-radius * 4 / 3)) * (1 + 1e-9)


@pytest.mark.parametrize("q", [2.0, 3.0])
def test_a_solver_that_stops_early_says_so(q: float) -> None:
    early = solve_nonconvex(balanced(4), dimension=8, q=q, max_iterations=4, throw=False)
    assert early.result.word == "stopped"
    assert early.iterations <= 4
    assert early.certificate.stationarity > 1e-9
    with pytest.raises(NumericalError, match=r"nonconvex solver .* stopped after"):
        early.or_raise()


def test_the_seed_decides_and_more_starts_are_no_worse() -> None:
    one, same = (solve_nonconvex(balanced(4), dimension=8, q=3.0, starts=2, seed=5) for _ in range(2))
    assert np.array_equal(one.Z, same.Z)
    assert q_norm(3.0, 8).value <= one.value * (1 + 1e-9)
    other = solve_nonconvex(two_groups(10), starts=1, seed=6)
    assert np.abs(other.W - solve_nonconvex(two_groups(10), starts=1, seed=7).W).max() > 0.1  # W and H up to rotation …
    assert np.abs(other.Z - solve_general([two_groups(10)])[0].Z).max() < 1e-4  # … but Z is unique


@pytest.mark.parametrize(("q", "energy"), [(0.5, 2), (1.0, 5)])
def test_up_to_q_1_every_class_has_an_axis_of_its_own(q: float, energy: float) -> None:
    """h_k = E_H^{1/q} e_k, and W the simplex of norm √(E_W K) on these axes: margins E_H^{1/q} √(E_W K/(K − 1))."""
    four = Problem.of_sizes([1] * 4, feature_energy=energy, weight_energy=1)
    solution = solve_nonconvex(four, dimension=6, q=q, starts=32)
    margin = energy ** (1 / q) * math.sqrt(4 / 3)
    assert solution.value == pytest.approx(math.log1p(3 * math.exp(-margin)), rel=1e-9)
    assert sorted((np.abs(solution.H) > 1e-6).sum(axis=1)) == [1] * 4  # one number each …
    assert np.abs(solution.H @ solution.H.T - np.diag([energy ** (2 / q)] * 4)).max() < 1e-6  # … on axes of their own
    beside = compare_with_etf(solution, q=q, starts=16)
    assert beside.advantage > 1e-3 and beside.largest_cosine == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"q": 0.05},
            r"`q` must be at least 0\.1: below, ‖h‖_q\^q counts entries rather than measuring them; found 0\.05",
        ),
        ({"q": -2}, r"`q` must be a finite number above 0; found -2"),
        ({"q": math.inf}, r"`q` must be a finite number above 0; found inf"),
        ({"q": "two"}, r"`q` must be a finite number above 0; found 'two'"),
        ({"dimension": 0}, r"`dimension` must be a whole number, 1 or more; found 0"),
        ({"dimension": 2.5}, r"`dimension` must be a whole number, 1 or more; found 2\.5"),
        ({"starts": 0}, r"`starts` must be a whole number, 1 or more; found 0"),
    ],
)
def test_bad_options_say_what_was_found(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        solve_nonconvex(balanced(3), **options)


def test_a_class_without_a_feature_has_no_angle() -> None:
    absent = solve_nonconvex(two_groups(math.inf), starts=1)
    compared = compare_with_etf(absent)
    assert compared.least_cosine is None
    assert compared.largest_cosine is None


def test_a_comparison_needs_w_and_h_and_room_for_an_etf() -> None:
    with pytest.raises(InputError, match="found one of the general solver"):
        compare_with_etf(solve_general([balanced(3)])[0])
    with pytest.raises(InputError, match="A simplex ETF of 4 classes needs at least 3 dimensions; found 2"):
        etf_value(balanced(4), dimension=2)


def test_descent_finds_the_nearest_point_and_leaves_done_starts_alone() -> None:
    """½‖x − a‖² over a ball: the minimizer is the projection of a, and a start at it takes no step."""
    target = torch.tensor([[[3.0, -1.0, 0.2]]], dtype=torch.float64)
    best = project_on_ball(target, q=3.0, total=1.0)
    starts = torch.cat([best, 0.1 * torch.ones_like(best), -best])
    found = descend(
        starts,
        objective=lambda x: (0.5 * (x - target).square().sum(dim=(1, 2)), x - target),
        project=lambda x: project_on_ball(x, q=3.0, total=1.0),
        tolerance=1e-10,
        max_iterations=200,
    )
    assert float((found.x - best).abs().max()) < 1e-9
    assert found.iterations[0] == 0
    assert found.iterations[1:].min() > 0
    assert float(found.stationarity.max()) <= 1e-10


def test_stationarity_has_no_units() -> None:
    generator = torch.Generator().manual_seed(0)
    x, slope = torch.randn(2, 2, 3, 4, generator=generator, dtype=torch.float64)

    def measured(scale: float, factor: float) -> torch.Tensor:
        return stationarity_of(scale * x, factor * slope, project=lambda y: project_on_ball(y, q=2.0, total=scale**2))

    close(measured(1.0, 1.0), measured(100.0, 1e-7))
    assert float(stationarity_of(x, torch.zeros_like(x), project=lambda y: y).max()) == 0
