"""W and H from Z, and their geometry by group against the same numbers from the matrices themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from closeness import close
from equisep.peeled import Certificate, Factors, Problem, Result, Solution, solve_reduced
from equisep.peeled.geometry import factors_of_dense, geometry_of_factors, geometry_of_reduced

unhurried = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def solved(seed: int) -> Solution:
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(1, 5))
    sizes = rng.integers(1, 6, groups)
    sizes[0] += 1
    shuffled = rng.permutation(np.repeat(10 ** -rng.uniform(0, 2, groups), sizes))
    problem = Problem.of_weights(
        shuffled, feature_energy=10 ** rng.uniform(-1, 1), weight_energy=10 ** rng.uniform(-1, 1)
    )
    return solve_reduced([problem])[0]


@unhurried
@given(seed=seeds)
def test_factors_give_the_logits_and_spend_both_energies(seed: int) -> None:
    solution = solved(seed)
    problem, (W, H, Z) = solution.problem, (solution.W, solution.H, solution.Z)
    assert pytest.approx(Z, abs=1e-12 * problem.budget) == H @ W.T
    close((W**2).sum() / problem.classes, problem.weight_energy)
    close((H**2).sum() / problem.classes, problem.feature_energy)
    close(np.linalg.norm(Z, "nuc"), problem.budget)
    assert Z.sum(axis=1) == pytest.approx(0, abs=1e-12 * problem.budget)


@unhurried
@given(seed=seeds)
def test_factors_of_the_plain_matrix_are_the_same_up_to_a_rotation(seed: int) -> None:
    solution = solved(seed)
    W, H = factors_of_dense(solution.problem, solution.Z)
    scale = solution.problem.budget
    assert pytest.approx(solution.Z, abs=1e-12 * scale) == H @ W.T
    assert pytest.approx(solution.W @ solution.W.T, abs=1e-9 * scale) == W @ W.T
    assert pytest.approx(solution.H @ solution.H.T, abs=1e-9 * scale) == H @ H.T


@unhurried
@given(seed=seeds)
def test_the_geometry_by_group_is_that_of_the_matrices(seed: int) -> None:
    solution = solved(seed)
    problem, found = solution.problem, solution.geometry
    groups = problem.class_groups
    for matrix, norms, cosines in (
        (solution.W, found.classifier_norms, found.classifier_cosines),
        (solution.H, found.feature_norms, found.feature_cosines),
    ):
        lengths = np.linalg.norm(matrix, axis=1)
        assert lengths == pytest.approx(np.array(norms)[groups], abs=1e-6 * lengths.max())
        gram = matrix @ matrix.T
        for k in range(problem.classes):
            for j in range(k):
                cosine = cosines[groups[k]][groups[j]]
                if cosine is None:
                    assert min(lengths[k], lengths[j]) <= 1e-6 * lengths.max()
                elif min(lengths[k], lengths[j]) > 1e-3 * lengths.max():
                    assert gram[k, j] / (lengths[k] * lengths[j]) == pytest.approx(cosine, abs=1e-8)
    directly = geometry_of_factors(problem, solution.W, solution.H, tolerance=1e-6)
    assert found.duality == pytest.approx(directly.duality, abs=1e-7)
    for name in ("classifier_etf_distance", "feature_etf_distance"):
        assert getattr(found, name) == pytest.approx(getattr(directly, name), abs=1e-8)


def test_the_etf_distance_and_duality_by_hand() -> None:
    solution = solve_reduced([Problem.two_groups(3, 2, 6, feature_energy=4, weight_energy=2)])[0]
    W, H, K = solution.W, solution.H, 5
    etf = (np.eye(K) - 1 / K) / math.sqrt(K - 1)
    for matrix, distance in (
        (W, solution.geometry.classifier_etf_distance),
        (H, solution.geometry.feature_etf_distance),
    ):
        gram = matrix @ matrix.T
        close(distance, np.linalg.norm(gram / np.linalg.norm(gram) - etf))
    close(solution.geometry.duality, np.linalg.norm(W / np.linalg.norm(W) - H / np.linalg.norm(H)))
    own = (W * H).sum(axis=1) / np.linalg.norm(W, axis=1) / np.linalg.norm(H, axis=1)
    close(np.array(solution.geometry.duality_cosines)[solution.problem.class_groups], own)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_balanced_classes_are_dual_and_a_simplex_etf(classes: int) -> None:
    problem = Problem.of_sizes([7] * classes, feature_energy=5, weight_energy=0.5)
    solution = solve_reduced([problem])[0]
    geometry = solution.geometry
    assert geometry.ratio(0) == pytest.approx(math.sqrt(10), rel=1e-12)
    assert max(geometry.duality, geometry.classifier_etf_distance, geometry.feature_etf_distance) < 1e-12
    assert geometry.within(0) == pytest.approx(-1 / (classes - 1), abs=1e-12)
    assert pytest.approx(math.sqrt(10) * solution.W, abs=1e-12) == solution.H
    assert geometry.classifier_norms[0] == pytest.approx(math.sqrt(0.5), rel=1e-12)


def test_vanished_vectors_have_no_angle() -> None:
    solution = solve_reduced([Problem.two_groups(5, 5, 3, feature_energy=1, weight_energy=1)])[0]
    geometry = solution.geometry
    assert geometry.vanished == (False, True) and geometry.collapsed == (False, False)
    assert geometry.classifier_cosines[1] == (None, None) and geometry.feature_cosines[1] == (None, None)
    assert geometry.duality_cosines[1] is None and geometry.ratio(1) is None and geometry.within(1) is None
    assert geometry.classifier_norms[1] == geometry.feature_norms[1] == 0
    assert geometry.within(0) == pytest.approx(-1 / 4, abs=1e-12)  # an ETF of the majority alone
    assert not solution.W[5:].any() and not solution.H[5:].any()


def test_one_class_has_no_other_to_be_compared_with() -> None:
    geometry = solve_reduced([Problem.of_weights([3, 2, 1], feature_energy=5, weight_energy=1)])[0].geometry
    assert [geometry.within(g) for g in range(3)] == [None] * 3
    assert geometry.collapsed == (False,) * 3
    assert geometry.classifier_cosines[0][1] is not None


def test_a_geometry_from_a_solver_without_groups_forgives_its_error() -> None:
    """The same W and H with noise of a gradient method: the verdicts stay, the numbers move a little."""
    problem = Problem.two_groups(5, 5, 100, feature_energy=5, weight_energy=1)
    exact = solve_reduced([problem])[0]
    noise = np.random.default_rng(0).normal(size=(2, 10, 10)) * 1e-6
    inexact = Solution(
        problem=problem,
        value=exact.value,
        result=Result.STOPPED,
        certificate=Certificate(feasibility=0.0, gap=1.0, relative_gap=1.0, multiplier=1.0),
        solver="nonconvex",
        iterations=1,
        form=Factors(exact.W + noise[0], exact.H + noise[1]),
    )
    assert inexact.geometry.collapsed == exact.geometry.collapsed == (False, True)
    assert inexact.geometry.vanished == exact.geometry.vanished
    assert inexact.geometry.within(1) == pytest.approx(1, abs=1e-4)
    assert pytest.approx(exact.Z, abs=1e-4) == inexact.Z
    assert inexact.W is inexact.form.W


def test_the_readout_follows_its_formulas() -> None:
    """With t_g = (k_g−1)s_g + T_gg, ‖w_g‖² = √(E_W/E_H) t_g/k_g and the cosine within g is (T_gg − s_g)/t_g."""
    solution = solve_reduced([Problem.of_groups((3, 4, 5), (1, 0.3, 0.05), feature_energy=5, weight_energy=1)])[0]
    s, M, k = solution.form.s, solution.form.M, np.array([3.0, 4, 5])
    T = np.real(linalg.sqrtm(M.T @ M))
    t = (k - 1) * s + np.diag(T)
    found = geometry_of_reduced(solution.problem, s, M)
    close(np.square(found.classifier_norms), math.sqrt(1 / 5) * t / k, rtol=1e-6)
    close([found.within(g) for g in range(3)], (np.diag(T) - s) / t, rtol=1e-6)
    close(found.classifier_cosines[0][1], T[0, 1] / math.sqrt(t[0] * t[1]), rtol=1e-6)
