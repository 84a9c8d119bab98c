"""What must not change a Layer-Peeled solution: order of classes, scale of weights, how energy is shared, splits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import close
from equisep.peeled import Problem, solve_reduced

seeds = st.integers(0, 2**32 - 1)
unhurried = settings(max_examples=15, deadline=None)


def drawn(seed: int) -> tuple[np.ndarray, float, np.random.Generator]:
    """Weights of some classes, several of them equal, and an energy."""
    rng = np.random.default_rng(seed)
    distinct = 10 ** -rng.uniform(0, 3, rng.integers(1, 5))
    weights = rng.choice(distinct, rng.integers(2, 13))
    return weights, 10 ** rng.uniform(-2, 2), rng


@unhurried
@given(seed=seeds)
def test_the_order_of_classes_moves_only_the_order_of_the_answer(seed: int) -> None:
    weights, energy, rng = drawn(seed)
    order = rng.permutation(len(weights))
    one, other = (
        solve_reduced([Problem.of_weights(w, feature_energy=energy, weight_energy=1)])[0]
        for w in (weights, weights[order])
    )
    close(one.value, other.value, rtol=1e-12)
    assert one.Z[np.ix_(order, order)] == pytest.approx(other.Z, abs=1e-12 * one.problem.budget)


@unhurried
@given(seed=seeds, factor=st.floats(1e-3, 1e3))
def test_a_common_factor_on_the_weights_scales_the_value_alone(seed: int, factor: float) -> None:
    weights, energy, _ = drawn(seed)
    one, other = (
        solve_reduced([Problem.of_weights(w, feature_energy=energy, weight_energy=1)])[0]
        for w in (weights, factor * weights)
    )
    close(factor * one.value, other.value)
    close(factor * one.certificate.multiplier, other.certificate.multiplier, rtol=1e-6)
    assert one.geometry.collapsed == other.geometry.collapsed and one.geometry.vanished == other.geometry.vanished


@unhurried
@given(seed=seeds, factor=st.floats(1e-2, 1e2))
def test_energy_moved_from_features_to_classifiers_scales_both(seed: int, factor: float) -> None:
    weights, energy, _ = drawn(seed)
    one = solve_reduced([Problem.of_weights(weights, feature_energy=energy, weight_energy=1)])[0]
    other = solve_reduced([Problem.of_weights(weights, feature_energy=energy / factor, weight_energy=factor)])[0]
    close(one.value, other.value)
    scale = one.problem.budget
    assert pytest.approx(factor * one.W @ one.W.T, abs=1e-4 * scale) == other.W @ other.W.T
    assert pytest.approx(one.H @ one.H.T / factor, abs=1e-4 * scale) == other.H @ other.H.T


@unhurried
@given(seed=seeds)
def test_a_group_split_in_two_of_the_same_weight_is_the_same_problem(seed: int) -> None:
    weights, energy, rng = drawn(seed)
    whole = Problem.of_weights(weights, feature_energy=energy, weight_energy=1)
    group = int(np.argmax(whole.group_sizes))
    size = whole.group_sizes[group]
    if size == 1:
        return
    part = int(rng.integers(1, size))
    sizes = [*whole.group_sizes[:group], part, size - part, *whole.group_sizes[group + 1 :]]
    omegas = [*whole.weights[:group], whole.weights[group], *whole.weights[group:]]
    split = Problem.of_groups(sizes, omegas, feature_energy=energy, weight_energy=1)
    one, other = solve_reduced([whole, split])
    assert one.result == other.result == "solved"
    close(one.value, other.value)
    close(one.certificate.multiplier, other.certificate.multiplier, rtol=1e-6)


@unhurried
@given(seed=seeds, more=st.floats(1.01, 3))
def test_more_energy_never_raises_the_least_loss(seed: int, more: float) -> None:
    weights, energy, _ = drawn(seed)
    one, other = solve_reduced(
        [Problem.of_weights(weights, feature_energy=e, weight_energy=1) for e in (energy, more * energy)]
    )
    assert other.value < one.value
    # the value is convex in the budget, with −μ as its slope
    gained, spent = one.value - other.value, other.problem.budget - one.problem.budget
    assert other.certificate.multiplier * (1 - 1e-6) <= gained / spent <= one.certificate.multiplier * (1 + 1e-6)


@unhurried
@given(seed=seeds)
def test_groups_collapse_exactly_where_their_weight_is_at_most_the_multiplier(seed: int) -> None:
    weights, energy, _ = drawn(seed)
    solution = solve_reduced([Problem.of_weights(weights, feature_energy=energy, weight_energy=1)])[0]
    assert solution.result == "solved"
    for size, weight, s in zip(solution.problem.group_sizes, solution.problem.weights, solution.form.s, strict=True):
        if size > 1:
            assert (s == 0) == (weight <= solution.certificate.multiplier)
    if solution.problem.group_sizes[0] > 1:
        assert solution.form.s[0] > 0  # the heaviest never collapses
