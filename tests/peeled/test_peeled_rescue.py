"""Who collapses or vanishes in any list of classes, and the least weight that saves them, checked by solving again."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from closeness import close
from equisep.errors import NumericalError
from equisep.peeled import Problem, State, rescue, solve_reduced, thresholds_of
from equisep.peeled.classes import group_margins
from equisep.peeled.least_weights import vanishing_weights
from equisep.peeled.solvers import sphere as factored
from equisep.peeled.solvers.batch import Batch
from equisep.peeled.solvers.reduced import solve_batch

E = {"feature_energy": 5, "weight_energy": 1}
SHOWN = Problem.of_groups((3, 4, 3), (1, 0.3, 0.05), **E)


def collapse_weights(problem: Problem, groups: list[int]) -> list[float]:
    found = rescue(problem, every=True)
    return [found.groups[group].collapse_weight for group in groups]


def reweighted(problem: Problem, group: int, weight: float) -> Problem:
    return replace(problem, weights=tuple(weight if g == group else w for g, w in enumerate(problem.weights)))


def test_reference_least_weight_of_three_groups() -> None:
    """Reference values: today's multiplier 0.110935, the least saving weight 0.119763."""
    found = rescue(SHOWN)
    close(found.solution.certificate.multiplier, 0.110935, rtol=5e-6)
    assert [one.state for one in found.groups] == ["told apart", "told apart", "lost: collapsed"]
    third = found.groups[2]
    close(third.least_weight, 0.119763, rtol=5e-6)
    close(third.factor, third.least_weight / 0.05)
    assert third.checked is True
    assert [one.least_weight for one in found.groups[:2]] == [None, None]  # they need no saving


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("distance", [1e-2, 1e-3, 1e-4, 1e-5])
def test_slightly_above_the_least_weight_saves_and_slightly_below_does_not(side: int, distance: float) -> None:
    weight = collapse_weights(SHOWN, [2])[0]
    solution = solve_reduced([reweighted(SHOWN, 2, weight * (1 + side * distance))])[0].or_raise()
    assert solution.geometry.collapsed[2] is (side < 0)
    assert (solution.form.s[2] > 0) == (side > 0)


def plainly(problem: Problem, group: int) -> float:
    """The root of μ_g(w) = w by scipy, every w solved from nothing: what the search from guess to guess must come to."""
    batch = Batch.of([problem], held=[group])

    def excess(log_weight: float) -> float:
        batch.omega[0, group] = math.exp(log_weight)
        return math.log(solve_batch(batch, polished=True)[2].multiplier[0]) - log_weight

    top = math.log(max(weight for other, weight in enumerate(problem.weights) if other != group))
    return math.exp(optimize.brentq(excess, top - 30, top, xtol=1e-13, rtol=1e-13))


@pytest.mark.parametrize(
    "problem",
    [
        SHOWN,
        Problem.of_groups((5, 3, 2, 4), (1, 0.5, 0.1, 0.01), **E),
        Problem.of_groups((4, 6, 1), (0.36, 0.0016, 0.61), feature_energy=0.2, weight_energy=1),
        Problem.of_groups((2, 9, 3, 1, 5), (1, 0.7, 0.02, 0.3, 0.001), feature_energy=12, weight_energy=1),
    ],
)
def test_least_weights_are_those_of_a_plain_search(problem: Problem) -> None:
    several = [group for group, count in enumerate(problem.group_sizes) if count > 1]
    expected = [plainly(problem, group) for group in several]
    close(collapse_weights(problem, several), expected, rtol=1e-9)


def test_groups_are_searched_a_few_at_a_time_from_the_weight_found_before(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of_groups((3, 4, 3, 2, 3), (1, 0.3, 0.03, 0.02, 0.01), **E)
    together = rescue(problem)
    monkeypatch.setattr(factored, "ENTRIES", 1)  # as with a hundred groups, of which each is searched alone
    said: list[tuple[str, int, int | None]] = []
    found = rescue(problem, progress=lambda *words: said.append(words))
    lost = [one for one in found.groups if one.state is not State.TOLD_APART]
    assert len(lost) >= 3 and all(one.checked and one.factor > 1 for one in lost)
    assert said == [("finding least weights", done + 1, len(lost)) for done in range(len(lost))]
    for one in lost:
        close(one.least_weight, together.groups[one.group].least_weight, rtol=1e-9)


def test_without_saving_only_the_states_are_told() -> None:
    found = rescue(SHOWN, weights=False)
    assert [one.state for one in found.groups] == ["told apart", "told apart", "lost: collapsed"]
    assert found.groups[2].least_weight is None and found.groups[2].checked is None


def test_two_groups_have_the_threshold_of_their_own_equation() -> None:
    problem = Problem.two_groups(5, 5, 100, **E)
    minority, majority = (rescue(problem, every=True).groups[g] for g in (1, 0))
    close(minority.least_weight, 1 / thresholds_of(5, 5, 5, 1).collapse, rtol=1e-12)
    close(majority.least_weight, 0.01 / thresholds_of(5, 5, 5, 1).collapse, rtol=1e-12)
    assert minority.checked is True and majority.checked is True
    assert minority.state is State.COLLAPSED and majority.state is State.TOLD_APART


def test_two_equal_groups_beside_a_third_agree_with_the_joined_problem() -> None:
    """Splitting the majority in two groups of one weight changes nothing, and takes another way to the same root."""
    split = Problem.of_groups((2, 3, 5), (1, 1, 0.01), **E)
    close(collapse_weights(split, [2])[0], 1 / thresholds_of(5, 5, 5, 1).collapse, rtol=1e-8)
    low = Problem.of_groups((2, 3, 5), (1, 1, 0.01), feature_energy=1, weight_energy=1)
    close(vanishing_weights(solve_reduced([low])[0], [2])[0], 1 / thresholds_of(5, 5, 1, 1).vanishing, rtol=1e-6)


def test_a_vanished_minority_is_told_with_both_weights() -> None:
    one = rescue(Problem.two_groups(5, 5, 3, feature_energy=1, weight_energy=1)).groups[1]
    limits = thresholds_of(5, 5, 1, 1)
    assert one.state is State.VANISHED and one.checked is True
    close(one.collapse_weight, 1 / limits.collapse)
    close(one.vanishing_weight, 1 / limits.vanishing)
    close(one.factor, 3 / limits.collapse)


def test_one_class_alone_is_saved_from_vanishing() -> None:
    problem = Problem.of_groups((4, 1, 3), (1, 0.2, 0.1), feature_energy=0.3, weight_energy=1)
    one = rescue(problem).groups[1]
    assert one.state is State.VANISHED and one.collapse_weight is None
    assert one.least_weight == one.vanishing_weight > 0.2 and one.checked is True
    for side, gone in ((1 - 1e-4, True), (1 + 1e-4, False)):
        solution = solve_reduced([reweighted(problem, 1, one.least_weight * side)])[0].or_raise()
        assert solution.geometry.vanished[1] is gone


def test_one_class_that_never_vanishes_needs_no_weight() -> None:
    one = rescue(Problem.of_weights([1, 0.5, 0.01], **E), every=True).groups[2]
    assert one.state is State.TOLD_APART and one.least_weight == 0 and one.factor == 0 and one.checked is None


def test_class_sizes_come_back_class_by_class_in_their_order() -> None:
    sizes = [50, 5000, 200, 5000, 50, 200, 1000]
    found = rescue(Problem.of_sizes(sizes, **E))
    assert len(found.classes) == 7
    shares = np.array(sizes) / sum(sizes)
    close([one.weight for one in found.classes], shares)
    for one, size in zip(found.classes, sizes, strict=True):
        assert one.classes == sizes.count(size)
        if one.state is not State.TOLD_APART:
            assert one.factor > 1 and one.checked
    assert found.classes[0].state is State.COLLAPSED and found.classes[1].state is State.TOLD_APART


@pytest.mark.parametrize("way", ["loss weight", "oversampling"])
def test_the_factor_works_as_a_loss_weight_and_as_oversampling(way: str) -> None:
    sizes = np.array([1000, 1000, 1000, 20, 20, 20, 300])
    factor = rescue(Problem.of_sizes(sizes, **E)).classes[3].factor
    for side, state in ((0.99, "lost: collapsed"), (1.01, "told apart")):
        scale = np.where(sizes == 20, factor * side, 1.0)
        if way == "loss weight":
            problem = Problem.of_sizes(sizes, **E, loss_weights=scale)
        else:  # copies of samples are whole, so take many of everything first
            problem = Problem.of_sizes(np.round(10**6 * sizes * scale), **E)
        assert rescue(problem).classes[3].state == state


def test_the_heaviest_group_never_collapses_and_every_threshold_is_confirmed() -> None:
    rng = np.random.default_rng(4)
    for _ in range(4):
        groups = int(rng.integers(3, 6))
        problem = Problem.of_groups(
            np.floor(10 ** rng.uniform(0, 1.3, groups)),
            10 ** -rng.uniform(0, 3, groups),
            feature_energy=10 ** rng.uniform(-1, 1.3),
            weight_energy=1,
        )
        found = rescue(problem, every=True)
        assert found.groups[int(np.argmax(problem.weights))].state is State.TOLD_APART
        for one in found.groups:
            assert one.checked is not False
            if one.classes > 1:
                assert (one.weight <= one.collapse_weight) is (one.state is not State.TOLD_APART)
                assert (one.weight <= found.solution.certificate.multiplier) is (one.state is not State.TOLD_APART)


def test_balanced_classes_have_nothing_to_be_saved_from() -> None:
    (one,) = rescue(Problem.of_sizes([10] * 5, **E), every=True).groups
    assert one.state is State.TOLD_APART and one.least_weight is None and one.factor is None


def test_a_group_absent_from_the_loss_has_no_factor() -> None:
    one = rescue(Problem.two_groups(5, 5, math.inf, **E)).groups[1]
    assert one.state is State.COLLAPSED and one.least_weight > 0 and one.factor is None


def test_a_rescue_that_is_not_proven_is_not_told() -> None:
    with pytest.raises(NumericalError, match="stopped after"):
        rescue(Problem.two_groups(5, 5, 10, feature_energy=1e7, weight_energy=1))


def test_classes_of_unequal_size_are_lost_by_their_margin_and_have_a_least_weight() -> None:
    """The ten long-tailed sizes: no two classifiers coincide, and three classes have no margin all the same."""
    sizes = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    problem = Problem.of_sizes(sizes, **E)
    found = rescue(problem)
    assert [one.state for one in found.classes] == ["told apart"] * 7 + ["lost"] * 3
    for one in found.classes[7:]:
        assert one.margin < 0 and one.factor > 1 and one.checked and one.collapse_weight is None

        def margin(log_weight: float, group: int = one.group) -> float:
            solved = solve_reduced([reweighted(problem, group, math.exp(log_weight))])[0]
            return group_margins(solved.or_raise())[group]

        around = math.log(one.least_weight)
        close(optimize.brentq(margin, around - 1e-3, around + 1e-3, xtol=1e-12), around, rtol=1e-7)


def test_a_smaller_class_beside_a_collapsed_group_is_lost_too() -> None:
    found = rescue(Problem.of_sizes([5000] * 3 + [50] * 3 + [40], **E), every=True)
    assert [one.state for one in found.groups] == ["told apart", "lost: collapsed", "lost"]
    smallest = found.groups[2]
    assert smallest.margin < 0 and smallest.checked
    close(smallest.factor, 1.25, rtol=1e-5)  # beyond the weight of the 50s it is the one preferred among them


def test_a_group_parted_from_its_equals_may_still_be_lost_to_others() -> None:
    """Its classifiers differ from the collapse weight on; told apart it is from the least weight on, never before."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        counts, weights = rng.integers(1, 4, 4), np.sort(10 ** -rng.uniform(0, 2, 4))[::-1]
        for one in rescue(Problem.of_groups(counts, weights, **E), every=True).groups:
            assert one.checked is not False
            assert one.least_weight >= one.parting_weight
            assert (one.margin > 0) is (not one.state.lost) is (one.weight > one.least_weight)
