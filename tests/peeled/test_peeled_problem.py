"""Problems from sizes, weights and groups, and the sentence for everything that is no problem."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equisep.errors import InputError
from equisep.peeled import Problem

E = {"feature_energy": 5, "weight_energy": 1}


def test_classes_of_equal_size_form_one_group_the_largest_first() -> None:
    problem = Problem.of_sizes([50, 500, 50, 200, 500], **E)
    assert problem.group_sizes == (2, 1, 2)
    assert problem.membership == (2, 0, 2, 1, 0)
    assert problem.weights == pytest.approx([500 / 1300, 200 / 1300, 50 / 1300], rel=1e-15)
    assert problem.class_weights == pytest.approx(np.array([50, 500, 50, 200, 500]) / 1300, rel=1e-15)
    assert (problem.classes, problem.groups) == (5, 3)


def test_the_budget_is_k_times_the_root_of_both_energies() -> None:
    assert Problem.of_sizes([3] * 10, feature_energy=5, weight_energy=0.2).budget == pytest.approx(10, rel=1e-15)


def test_loss_weights_multiply_class_sizes_and_can_join_groups() -> None:
    problem = Problem.of_sizes([30, 10, 10], **E, loss_weights=[0.1, 0.3, 3.0])
    assert problem.group_sizes == (1, 2)  # 0.1 · 30 and 0.3 · 10 differ by rounding only
    assert problem.membership == (1, 1, 0)
    assert problem.weights == pytest.approx([0.6, 0.06], rel=1e-15)


def test_weights_that_differ_by_more_than_rounding_stay_apart() -> None:
    assert Problem.of_weights([1, 1 + 1e-12, 1], **E).group_sizes == (1, 2)


def test_groups_stay_as_given_also_with_equal_weights() -> None:
    problem = Problem.of_groups([2, 3], [0.5, 0.5], **E)
    assert problem.group_sizes == (2, 3) and problem.membership is None
    assert problem.class_groups.tolist() == [0, 0, 1, 1, 1]


def test_two_groups_have_weights_one_and_one_over_the_ratio() -> None:
    assert Problem.two_groups(5, 3, 8, **E).weights == (1.0, 0.125)
    assert Problem.two_groups(5, 3, math.inf, **E).weights == (1.0, 0.0)


def test_numpy_numbers_and_whole_floats_are_numbers() -> None:
    problem = Problem.of_sizes(np.array([500.0, 50.0]), feature_energy=np.float32(5), weight_energy=np.int64(1))
    assert problem.weights == pytest.approx([10 / 11, 1 / 11], rel=1e-15)


@pytest.mark.parametrize("energy", [0, -1, math.nan, math.inf, "5", None, True, [5], 1j])
@pytest.mark.parametrize("name", ["feature_energy", "weight_energy"])
def test_an_energy_is_a_finite_number_above_zero(name: str, energy: object) -> None:
    for make in (
        lambda e: Problem.of_sizes([3, 2], **e),
        lambda e: Problem.of_weights([3, 2], **e),
        lambda e: Problem.of_groups([3, 2], [1, 2], **e),
        lambda e: Problem.two_groups(3, 2, 10, **e),
    ):
        with pytest.raises(InputError, match=f"`{name}` must be a finite number above 0; found"):
            make(E | {name: energy})


@pytest.mark.parametrize("size", [0, -3, 2.5, math.nan, math.inf, "many", None, True, [3]])
def test_a_class_size_is_a_whole_number(size: object) -> None:
    with pytest.raises(InputError, match="The size of class 1 must be a whole number, 1 or more; found"):
        Problem.of_sizes([3, size], **E)


@pytest.mark.parametrize("weight", [0, -3, math.nan, math.inf, "heavy", None])
def test_a_weight_is_a_finite_number_above_zero(weight: object) -> None:
    with pytest.raises(InputError, match="The weight of class 1 must be a finite number above 0; found"):
        Problem.of_weights([3, weight], **E)
    with pytest.raises(InputError, match="The weight of group 0 must be a finite number above 0; found"):
        Problem.of_groups([3, 3], [weight, 1], **E)
    with pytest.raises(InputError, match="The loss weight of class 1 must be a finite number above 0; found"):
        Problem.of_sizes([3, 3], **E, loss_weights=[1, weight])


@pytest.mark.parametrize("ratio", [0, -2, math.nan, -math.inf, "high", None])
def test_a_ratio_is_above_zero(ratio: object) -> None:
    with pytest.raises(InputError, match="The imbalance ratio must be above 0; found"):
        Problem.two_groups(5, 5, ratio, **E)


@pytest.mark.parametrize("count", [0, -1, 1.5, math.nan, "five"])
def test_groups_have_whole_numbers_of_classes(count: object) -> None:
    with pytest.raises(InputError, match="The number of majority classes must be a whole number"):
        Problem.two_groups(count, 5, 10, **E)
    with pytest.raises(InputError, match="The number of minority classes must be a whole number"):
        Problem.two_groups(5, count, 10, **E)
    with pytest.raises(InputError, match="The size of group 1 must be a whole number"):
        Problem.of_groups([5, count], [1, 1], **E)


def test_one_class_is_no_problem() -> None:
    for make in (
        lambda: Problem.of_sizes([10], **E),
        lambda: Problem.of_weights([1], **E),
        lambda: Problem.of_groups([1], [1], **E),
    ):
        with pytest.raises(InputError, match="needs at least 2 classes; found 1"):
            make()


@pytest.mark.parametrize("values", [[], (), np.zeros(0)])
def test_an_empty_list_is_told(values: object) -> None:
    with pytest.raises(InputError, match="Class sizes must not be empty"):
        Problem.of_sizes(values, **E)
    with pytest.raises(InputError, match="Class weights must not be empty"):
        Problem.of_weights(values, **E)
    with pytest.raises(InputError, match="Group sizes must not be empty"):
        Problem.of_groups(values, [1], **E)


@pytest.mark.parametrize("values", ["500", 500, {500: 5}, {5, 6}, None, np.float64(3)])
def test_what_is_no_list_is_told(values: object) -> None:
    with pytest.raises(InputError, match="Class sizes must be a list of numbers; found"):
        Problem.of_sizes(values, **E)


def test_lists_of_different_lengths_are_told() -> None:
    with pytest.raises(InputError, match="Loss weights must be 3 numbers, one for each; found 2"):
        Problem.of_sizes([3, 3, 3], **E, loss_weights=[1, 1])
    with pytest.raises(InputError, match="Group weights must be 2 numbers, one for each; found 1"):
        Problem.of_groups([3, 3], [1], **E)
    with pytest.raises(InputError, match="found 1 weights for 2 groups"):
        Problem((3, 3), (1.0,), 5.0, 1.0)


def test_a_problem_made_by_hand_is_checked_too() -> None:
    with pytest.raises(InputError, match="not negative and not all 0; found"):
        Problem((3, 3), (0.0, 0.0), 5.0, 1.0)
    with pytest.raises(InputError, match="not negative and not all 0; found"):
        Problem((3, 3), (1.0, math.inf), 5.0, 1.0)
    with pytest.raises(InputError, match=r"budget .* must be a finite number above 0; found inf"):
        Problem((3, 3), (1.0, 1.0), 1e308, 1e308)
    with pytest.raises(InputError, match="`weight_energy` must be"):
        Problem((3, 3), (1.0, 1.0), 5.0, 0.0)


def test_sizes_that_are_whole_but_for_rounding_are_rounded() -> None:
    """1000 · 0.7² is 489.99999999999994, and was refused."""
    sizes = [1000 * 0.7**k for k in range(4)]
    assert sizes[2] != 490
    energies = {"feature_energy": 5, "weight_energy": 1}
    assert Problem.of_sizes(sizes, **energies) == Problem.of_sizes([1000, 700, 490, 343], **energies)
    with pytest.raises(InputError, match=r"size of class 0 must be a whole number, 1 or more; found 240\.1"):
        Problem.of_sizes([240.1, 5], **energies)
