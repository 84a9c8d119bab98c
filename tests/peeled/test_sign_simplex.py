"""Simplex ETFs of ±1 vectors: they are what they should be, exist where counting allows, and collapse the q-norm problem."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from equisep.errors import InputError
from equisep.peeled import Problem, qnorm_counterexamples, sign_simplex, sign_simplex_exists, solve_nonconvex

KNOWN = [(k, times) for k in range(2, 31) for times in (1, 2, 3, 4)]


@pytest.mark.parametrize(("classes", "times"), KNOWN)
def test_cosines_are_those_of_a_simplex(classes: int, times: int) -> None:
    vectors = sign_simplex(classes, (classes - 1) * times)
    exists = sign_simplex_exists(classes, (classes - 1) * times)
    assert (vectors is not None) == (exists == "exists")
    if vectors is not None:
        assert vectors.shape == (classes, (classes - 1) * times) and set(np.unique(vectors)) <= {-1, 1}
        expected = times * (classes * np.eye(classes, dtype=int) - 1)
        assert np.array_equal(vectors @ vectors.T, expected)


def test_where_they_exist() -> None:
    exist = {k for k, times in KNOWN if times == 1 and sign_simplex_exists(k, k - 1) == "exists"}
    assert exist == {2, 4, 8, 12, 16, 20, 24, 28}  # one for each Hadamard matrix
    twice = {k for k, times in KNOWN if times == 2 and sign_simplex_exists(k, 2 * (k - 1)) == "exists"}
    assert twice == exist | {6, 10, 14, 18, 22, 26, 30}  # 22 by a Legendre pair
    assert sign_simplex_exists(34, 66) == "not known"
    assert sign_simplex_exists(36, 35) == "exists"  # by a field of 17 elements, doubled


def whether_by_search(classes: int, dimension: int) -> bool:
    """All ways to fill the coordinates with balanced signs, the first vector being all ones."""
    columns = [c for c in product((1, -1), repeat=classes) if c[0] == 1 and sum(c) == 0]
    goal = -dimension / (classes - 1)

    def fill(left: int, start: int, sums: np.ndarray) -> bool:
        if left == 0:
            return bool((sums == goal).all())
        if ((sums - left > goal) | (sums + left < goal)).any():
            return False
        return any(fill(left - 1, i, sums + pairs[i]) for i in range(start, len(columns)))

    pairs = [np.array([a * b for a, b in combinations(column, 2)]) for column in columns]
    return bool(columns) and fill(dimension, 0, np.zeros(classes * (classes - 1) // 2))


@pytest.mark.parametrize(("classes", "dimension"), [(k, p) for k in (2, 3, 4, 5, 6) for p in range(1, 11)])
def test_counting_agrees_with_a_full_search(classes: int, dimension: int) -> None:
    found = whether_by_search(classes, dimension)
    assert sign_simplex_exists(classes, dimension) == ("exists" if found else "cannot exist")


def test_six_classes_collapse_in_ten_dimensions_for_q_above_2() -> None:
    """Against the claim that they do for no q ≠ 2: proved by the certificate, which knows the 2-norm problem alone."""
    six = Problem.of_sizes([1] * 6, feature_energy=5, weight_energy=1)
    solution = solve_nonconvex(six, dimension=10, q=4, starts=32)
    assert solution.certificate.relative_gap < 1e-6
    (entry,) = (each for each in qnorm_counterexamples(most_classes=6, most_dimension=10, q=4) if each.classes == 6)
    assert solution.value == pytest.approx(entry.value, rel=1e-6)  # found without knowing of signs
    cosines = solution.geometry.feature_cosines[0][0]
    assert cosines == pytest.approx(-1 / 5, abs=1e-4)
    signs = sign_simplex(6, 10)
    assert signs is not None and np.allclose(np.abs(solution.H), np.abs(solution.H).mean(), rtol=1e-3)


@pytest.mark.parametrize("q", [2.5, 3.0, 8.0])
def test_every_entry_of_the_table_is_feasible_collapsed_and_proven(q: float) -> None:
    found = qnorm_counterexamples(most_classes=30, most_dimension=60, q=q, feature_energy=2.0, weight_energy=1.5)
    assert {(each.classes, each.dimension) for each in found} == {
        (k, p) for k in range(3, 31) for p in range(k, 61) if sign_simplex_exists(k, p) == "exists"
    }
    for each in found:
        H, W, K = each.factors.H, each.factors.W, each.classes
        assert (np.abs(H) ** q).sum() / K == pytest.approx(2.0, rel=1e-12)
        assert (W**2).sum() / K == pytest.approx(1.5, rel=1e-12)
        cosines = (H @ H.T) / (H**2).sum(axis=1, keepdims=True)
        assert np.allclose(cosines, (K * np.eye(K) - 1) / (K - 1), atol=1e-12)
        assert each.certificate.feasibility < 1e-12 and each.certificate.relative_gap < 1e-12
        logits = H @ W.T
        loss = np.log(np.exp(logits - np.diag(logits)[:, None]).sum(axis=1)).mean()
        assert each.value == pytest.approx(loss, rel=1e-12)


def test_bad_numbers() -> None:
    with pytest.raises(InputError, match=r"optimal for q above 2; found q = 1.5"):
        qnorm_counterexamples(q=1.5)
    with pytest.raises(InputError, match=r"`classes` must be 2 or more, so that two of them have an angle; found 1"):
        sign_simplex(1, 3)
    with pytest.raises(InputError, match=r"`dimension` must be a whole number"):
        sign_simplex_exists(4, 0)
