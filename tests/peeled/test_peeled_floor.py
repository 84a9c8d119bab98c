"""The least floor under all weights: against thresholds, against `rescue`, and by solving beside it."""

from __future__ import annotations

import pytest

from equisep.peeled import Problem, State, long_tail_sizes, rescue, solve_problem, threshold
from equisep.peeled.classes import group_margins, group_states
from equisep.peeled.floor import PRECISION, floor_of, lifted

MIXED = [5000] * 3 + [50] * 3 + [40]


def problem(sizes: list[int], energy: float = 5.0) -> Problem:
    return Problem.of_sizes(sizes, feature_energy=energy, weight_energy=1.0)


@pytest.mark.parametrize(("ratio", "energy"), [(100, 5.0), (10, 1.0)])
def test_two_groups_come_back_at_the_threshold(ratio: int, energy: float) -> None:
    """One group is lifted: the floor is the closed form's R/R*, for collapse and for the margin alike."""
    found = floor_of(problem([ratio * 10] * 5 + [10] * 5, energy))
    wanted = ratio / threshold(5, 5, feature_energy=energy, weight_energy=1.0)
    assert found.lost == (5, 6, 7, 8, 9)
    for lift in (found.collapse, found.margin):
        assert found.factors(lift) == pytest.approx([1.0] * 5 + [wanted] * 5, rel=PRECISION)


def test_nothing_is_lifted_where_nobody_is_lost() -> None:
    found = floor_of(problem([500] * 5 + [50] * 5))
    assert found.lost == () and found.collapse is None and found.margin is None
    assert found.factors(found.margin) == (1.0,) * 10


@pytest.mark.parametrize("sizes", [list(long_tail_sizes(10, 500, 100)), MIXED], ids=["tail", "mixed"])
def test_every_class_is_told_apart_at_the_floor_and_not_below(sizes: list[int]) -> None:
    asked = problem(sizes)
    found = floor_of(asked)
    lift = found.margin
    assert lift is not None and 1 < lift.weight / lift.below <= 1 + 2 * PRECISION
    assert not any(state.lost for state in group_states(lift.solution))
    below = solve_problem(lifted(asked, lift.below))
    assert any(state.lost for state in group_states(below))
    weighed = Problem.of_sizes(sizes, feature_energy=5.0, weight_energy=1.0, loss_weights=found.factors(lift))
    assert not any(one.state.lost for one in rescue(weighed, weights=False).classes)  # as a user would train


def test_states_are_those_of_rescue() -> None:
    assert list(floor_of(problem(MIXED)).states) == [one.state for one in rescue(problem(MIXED), weights=False).classes]


def test_classes_of_their_own_size_have_a_margin_later_than_they_part() -> None:
    """At E = 2 the four classifiers never coincide, and yet the rarest is lost: the two floors differ."""
    found = floor_of(problem([500, 500, 50, 5], 2.0))
    assert found.states[3] is State.LOST
    assert found.collapse is None
    assert found.factors(found.margin)[3] > 10


def test_half_the_margin_of_equal_classes() -> None:
    asked = problem([500] * 5 + [5] * 5)
    found = floor_of(asked, half=True)
    assert found.half is not None and found.margin is not None and found.half.weight > found.margin.weight
    equal = float(group_margins(solve_problem(problem([1] * 10)))[0])
    assert float(group_margins(found.half.solution).min()) == pytest.approx(equal / 2, rel=1e-2)
    assert float(group_margins(found.half.solution).min()) >= equal / 2
    assert floor_of(problem([500] * 5 + [450] * 5), half=True).half is None


def test_a_class_that_is_absent_stays_absent() -> None:
    asked = Problem((2, 2, 1), (0.5, 0.005, 0.0), 5.0, 1.0)
    found = floor_of(asked)
    assert found.factors(found.margin)[4] == 1.0
    assert lifted(asked, 0.1).class_weights.tolist() == [0.5, 0.5, 0.1, 0.1, 0.0]
