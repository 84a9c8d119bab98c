"""Class vectors for drawings: those of the certified optimum, in as few dimensions as they span."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equisep.errors import InputError
from equisep.peeled import Problem, solve_problem, threshold
from equisep.peeled.classes import State
from equisep.peeled.vectors import class_vectors, simplex


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_equal_classes_are_a_simplex(classes: int) -> None:
    ideal = simplex(classes)
    assert ideal.shape == (classes, classes - 1)
    gram = (1 + 1 / (classes - 1)) * np.eye(classes) - 1 / (classes - 1)
    np.testing.assert_allclose(ideal @ ideal.T, gram, atol=1e-15)
    first = class_vectors(classes)[0]
    assert first.ratio == 1 and first.state is State.TOLD_APART
    np.testing.assert_allclose(first.classifiers, ideal, atol=1e-6)
    np.testing.assert_allclose(first.features, first.classifiers, atol=1e-6)


@pytest.mark.parametrize("classes", [3, 4])
def test_small_classes_are_one_vector_beyond_the_threshold(classes: int) -> None:
    below, beyond = class_vectors(classes)[1:]
    limit = threshold(classes // 2, classes - classes // 2)
    assert below.threshold == beyond.threshold == limit
    assert below.ratio == pytest.approx(math.sqrt(limit)) and beyond.ratio == pytest.approx(2 * limit)
    assert -1 / (classes - 1) < below.cosine < 1 - 1e-3
    assert beyond.cosine == pytest.approx(1, abs=1e-9) and beyond.state is State.COLLAPSED
    np.testing.assert_allclose(beyond.classifiers[-1], beyond.classifiers[-2], atol=1e-9)
    assert max(below.relative_gap, beyond.relative_gap) < 1e-9


def test_nothing_of_the_solution_is_lost_in_fewer_dimensions() -> None:
    """All products of vectors are those of the solution: K − 1 dimensions hold them."""
    (one,) = class_vectors(4, ratios=[7.0], feature_energy=4.0, weight_energy=2.0)
    solved = solve_problem(Problem.two_groups(2, 2, 7.0, feature_energy=4.0, weight_energy=2.0))
    logits = math.sqrt(4.0 * 2.0) * one.features @ one.classifiers.T
    np.testing.assert_allclose(logits, solved.Z, atol=1e-9)
    np.testing.assert_allclose(2.0 * one.classifiers @ one.classifiers.T, solved.W @ solved.W.T, atol=1e-9)
    assert one.to_dict()["ratio"] == 7.0


def test_more_classes_than_can_be_drawn_are_refused() -> None:
    with pytest.raises(
        InputError, match="Vectors of 5 classes were asked for; those of 2, 3 or 4 classes can be drawn"
    ):
        class_vectors(5)
