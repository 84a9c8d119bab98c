"""The duality gap: the reduced form against the plain K×K one, a bound at every point, zero at the optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import close
from equisep.peeled import Certificate, Problem, solve_reduced
from equisep.peeled.geometry import expand
from equisep.peeled.solution import dense_gap, proves
from equisep.peeled.solvers.batch import Batch, gradient, reduced_gap, softmax

unhurried = settings(max_examples=25, deadline=None)


seeds = st.integers(0, 2**32 - 1)


def feasible_point(seed: int) -> tuple[Problem, np.ndarray, np.ndarray]:
    """A problem and a feasible point of its reduced form."""
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(1, 6))
    sizes = rng.integers(1, 6, groups)
    sizes[0] += 1
    energy = 10 ** rng.uniform(-2, 1.5)
    problem = Problem.of_groups(sizes, 10 ** -rng.uniform(0, 3, groups), feature_energy=energy, weight_energy=1)
    s = np.where(sizes > 1, rng.exponential(size=groups), 0.0)
    M = rng.normal(size=(groups, groups))
    spent = ((sizes - 1) * s).sum() + np.linalg.norm(M, "nuc")
    scale = problem.budget / spent * rng.uniform()
    return problem, s * scale, M * scale


@unhurried
@given(seed=seeds)
def test_the_reduced_certificate_is_that_of_the_k_by_k_matrix(seed: int) -> None:
    problem, s, M = feasible_point(seed)
    reduced = reduced_gap(Batch.of([problem]), s[None], M[None])
    Z = expand(problem, s, M)
    value, certificate = dense_gap(problem.class_weights, Z, problem.budget)
    close(reduced.value[0], value)
    close(reduced.multiplier[0], certificate.multiplier)
    assert reduced.gap[0] == pytest.approx(certificate.gap, rel=1e-9, abs=1e-12 * value)
    assert reduced.feasibility[0] == pytest.approx(certificate.feasibility, abs=1e-12)


@unhurried
@given(seed=seeds)
def test_the_gap_bounds_the_distance_to_the_least_value(seed: int) -> None:
    problem, s, M = feasible_point(seed)
    best = solve_reduced([problem])[0]
    assert best.result == "solved"
    here = reduced_gap(Batch.of([problem]), s[None], M[None])
    assert here.value[0] - best.value <= here.gap[0] * (1 + 1e-9) + 1e-9 * best.value
    assert here.value[0] >= best.value * (1 - 1e-9)


@unhurried
@given(seed=seeds)
def test_the_gradient_is_that_of_the_value(seed: int) -> None:
    problem, s, M = feasible_point(seed)
    batch, rng, h = Batch.of([problem]), np.random.default_rng(seed), 1e-5
    ds, dM = np.where(s > 0, rng.normal(size=s.shape), 0.0), rng.normal(size=M.shape)
    there, back = (softmax(batch, (s + e * ds)[None], (M + e * dM)[None]).value(batch)[0] for e in (h, -h))
    small, big = gradient(batch, softmax(batch, s[None], M[None]).p)
    slope = float(((batch.k - 1) * small * ds).sum() + (big[0] * dM).sum())
    assert (there - back) / (2 * h) == pytest.approx(slope, rel=1e-5, abs=1e-7 * there)


def test_the_plain_value_and_gradient_are_cross_entropy_by_hand() -> None:
    Z = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, 0.0], [-3.0, 0.0, 3.0]])
    weights = np.array([0.5, 0.3, 0.2])
    p = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    value, certificate = dense_gap(weights, Z, 10.0)
    assert value == pytest.approx(-(weights * np.log(np.diag(p))).sum(), rel=1e-14)
    pull = weights[:, None] * (p - np.eye(3))
    assert certificate.multiplier == pytest.approx(np.linalg.norm(pull, 2), rel=1e-13)
    assert certificate.gap == pytest.approx((pull * Z).sum() + 10 * np.linalg.norm(pull, 2), rel=1e-13)
    assert certificate.feasibility == 0.0


def test_a_point_outside_the_budget_is_infeasible() -> None:
    value, certificate = dense_gap(np.ones(2), np.diag([3.0, 3.0]), 4.0)
    assert certificate.feasibility == pytest.approx(0.5, rel=1e-15) and value > 0
    assert not proves(certificate, 1e9)


def test_losses_far_below_rounding_keep_their_digits() -> None:
    """Own logits 400 above the others: the loss is (K−1)e⁻⁴⁰⁰, and softmax minus one would give 0."""
    value, certificate = dense_gap(np.ones(3), 400 * np.eye(3), 1200.0)
    assert value == pytest.approx(6 * math.exp(-400), rel=1e-12)
    assert 0 < certificate.multiplier == pytest.approx(3 * math.exp(-400), rel=1e-9)


def test_solved_needs_both_feasibility_and_gap() -> None:
    good = Certificate(feasibility=0.0, gap=1e-10, relative_gap=1e-10, multiplier=1.0)
    assert proves(good, 1e-9) and not proves(good, 1e-11)
    assert not proves(Certificate(feasibility=1e-6, gap=0.0, relative_gap=0.0, multiplier=1.0), 1e-9)
