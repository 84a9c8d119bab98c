"""The 2-Layer-Peeled Model: closed forms, the bound below, the search, and neural collapse beaten from six classes on."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equisep.errors import InputError, NumericalError
from equisep.peeled import Problem, Result, solve_two_layer, two_layer_collapse, two_layer_simplices
from equisep.peeled.two_layer.solution import TwoLayerSolution, pairs_of
from equisep.peeled.two_layer.solve import _log_loss

ENERGY = st.floats(0.1, 6.0)


def equal(classes: int, *, features: float = 5.0, classifier: float = 1.0) -> Problem:
    return Problem.of_sizes([1] * classes, feature_energy=features, weight_energy=classifier)


def loss(point: TwoLayerSolution) -> float:
    logits = point.hidden @ point.W2.T
    weights = point.problem.class_weights
    return float(weights @ np.log(np.exp(logits - np.diag(logits)[:, None]).sum(axis=1)))


def energies(point: TwoLayerSolution) -> list[float]:
    return [float((part**2).sum()) / point.problem.classes for part in (point.W2, point.W1, point.H)]


@settings(max_examples=25, deadline=None)
@given(
    K=st.integers(2, 12),
    classifier=ENERGY,
    hidden=ENERGY,
    features=ENERGY,
    activation=st.sampled_from(["linear", "relu"]),
)
def test_neural_collapse_spends_every_energy_and_has_its_closed_form(
    K: int, classifier: float, hidden: float, features: float, activation: str
) -> None:
    point = two_layer_collapse(
        equal(K, features=features, classifier=classifier), hidden_energy=hidden, activation=activation
    )
    assert energies(point) == pytest.approx([classifier, hidden, features], rel=1e-9)
    root = math.sqrt(classifier * hidden * features)
    s = root * (K / (K - 1)) ** 1.5 if activation == "linear" else root * math.sqrt(K / (K - 1))
    assert point.value == pytest.approx(math.log1p((K - 1) * math.exp(-s)), rel=1e-9)
    assert point.value == pytest.approx(loss(point), rel=1e-6) and point.collapse_distance < 1e-9
    assert point.rank == K - 1 and point.certificate.feasibility < 1e-9
    assert point.certificate.lower_bound <= point.value * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(K=st.integers(6, 14), classifier=ENERGY, hidden=ENERGY, features=ENERGY)
def test_from_six_classes_on_pairs_beat_neural_collapse_at_every_energy(
    K: int, classifier: float, hidden: float, features: float
) -> None:
    problem = equal(K, features=features, classifier=classifier)
    pairs = two_layer_simplices(problem, pairs_of(K), hidden_energy=hidden)
    assert energies(pairs) == pytest.approx([classifier, hidden, features], rel=1e-9)
    assert pairs.certificate.feasibility < 1e-9 and pairs.rank == K - len(pairs_of(K))
    assert pairs.value < two_layer_collapse(problem, hidden_energy=hidden).value
    assert pairs.value >= pairs.certificate.lower_bound * (1 - 1e-9)
    margins = np.diag(pairs.Z)[:, None] - pairs.Z + 1e9 * np.eye(K)
    assert margins.min(axis=1) == pytest.approx(margins.min(), rel=1e-9)  # every class has the same margin


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_the_gradient_is_that_of_the_loss(activation: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4 + 3 + 4, 3, dtype=torch.float64)
    objective = _log_loss(Problem.of_sizes([4, 3, 2, 1], feature_energy=5, weight_energy=1), 3, 1.3, activation)  # type: ignore[arg-type]
    _, gradient = objective(x)
    move = torch.randn_like(x)
    up, down = (objective(x + step * move)[0] for step in (1e-6, -1e-6))
    assert (up - down) / 2e-6 == pytest.approx((gradient * move).sum(dim=(1, 2)).numpy(), rel=1e-6)


def test_two_classes_are_solved_and_six_are_three_pairs() -> None:
    two = solve_two_layer(equal(2), starts=2)
    assert two.result is Result.SOLVED and two.collapse_distance < 1e-6 and two.certificate.relative_gap < 1e-9
    six = solve_two_layer(equal(6, features=16), starts=3)
    assert six.result is Result.STATIONARY and six.rank == 3
    assert six.value == pytest.approx(two_layer_simplices(equal(6, features=16), [2, 2, 2]).value, rel=1e-6)
    assert six.certificate.feasibility < 1e-12 and six.certificate.lower_bound < six.value


def test_unequal_classes_are_searched_within_the_bound_and_the_energies() -> None:
    problem = Problem.of_sizes([10, 5, 1], feature_energy=4, weight_energy=2)
    found = solve_two_layer(problem, hidden_energy=0.5, starts=4, dimension=4)
    assert max(energies(found)[i] / energy for i, energy in enumerate((2, 0.5, 4))) <= 1 + 1e-12
    assert found.W1.shape == (4, 4) and found.certificate.lower_bound <= found.value
    assert found.value == pytest.approx(loss(found), rel=1e-9)
    again = solve_two_layer(problem, hidden_energy=0.5, starts=4, dimension=4)
    assert again.value == found.value


def test_small_energies_leave_one_direction() -> None:
    """Where the loss is nearly linear in the logits, one singular value is worth more than several."""
    three = equal(3, features=0.25)
    found = solve_two_layer(three, starts=4)
    assert found.rank == 1 and found.value < two_layer_collapse(three).value - 0.01


def test_what_cannot_be_says_why() -> None:
    with pytest.raises(InputError, match=r"No activation `rleu`. Did you mean `relu`\?"):
        solve_two_layer(equal(3), activation="rleu")
    with pytest.raises(InputError, match=r"classes of equal weight; found 2 different weights"):
        two_layer_collapse(Problem.of_sizes([2, 1], feature_energy=5, weight_energy=1))
    with pytest.raises(InputError, match=r"add up to 5 are needed; found \[2, 2\]"):
        two_layer_simplices(equal(5), [2, 2])
    with pytest.raises(InputError, match=r"`hidden_energy` must be a finite number above 0"):
        solve_two_layer(equal(3), hidden_energy=0)
    with pytest.raises(NumericalError, match="still moves by"):
        solve_two_layer(Problem.of_sizes([3, 2, 1], feature_energy=5, weight_energy=1), starts=1, max_iterations=2)
