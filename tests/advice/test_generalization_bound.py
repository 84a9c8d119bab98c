"""(ε, δ)-balancedness and the comparative bound against what is known of shares and of exact limits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equisep.advice.depth import balancedness, class_share_distance, comparative_bound
from equisep.advice.depth.generalization_bound import upper_share
from equisep.errors import InputError


@pytest.mark.parametrize(
    ("answers", "distance"),
    [
        ([0, 1, 2, 3, 4] * 200, 0.0),
        ([0] * 1000, 2 * (1 - 1 / 5)),
        ([0, 1] * 500, 2 * (0.5 - 0.2) + 3 * 0.2),
    ],
)
def test_the_distance_of_class_shares_from_equal_ones(answers: list[int], distance: float) -> None:
    assert class_share_distance(answers, 5) == pytest.approx(distance)


@given(n=st.integers(1, 60), share=st.floats(0, 1))
def test_the_upper_limit_leaves_one_in_forty(n: int, share: float) -> None:
    seen = min(n, int(share * (n + 1)))
    limit = upper_share(seen, n)
    under = sum(math.comb(n, k) * limit**k * (1 - limit) ** (n - k) for k in range(seen + 1))
    assert limit == 1 if seen == n else under == pytest.approx(0.025, abs=1e-9)
    if seen == 0:
        assert limit == pytest.approx(1 - 0.025 ** (1 / n))


def test_more_room_leaves_fewer_draws_out_of_balance() -> None:
    distances = [0.05, 0.1, 0.15, 0.2, 0.25]
    deltas = [balancedness(distances, epsilon=epsilon).delta for epsilon in (0.0, 0.1, 0.2, 0.3)]
    assert deltas == [1.0, 0.6, 0.2, 0.0]


def test_every_labeling_that_is_tried_can_only_raise_the_estimate() -> None:
    effective = [2, 2, None, 3]
    few = comparative_bound(effective, [3, None, None, 4], p=0.3)
    more = comparative_bound(effective, [2, None, None, 4], p=0.3)
    assert (few.probability, more.probability) == (0.25, 0.5)  # no depth at all counts against it
    assert few.value < more.value <= more.upper and few.delta is None and not few.vacuous
    assert comparative_bound([2], [2], p=0.1).vacuous


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: class_share_distance([0, 5], 5), "labels from 0"),
        (lambda: class_share_distance([], 5), "0 labels"),
        (lambda: balancedness([], epsilon=0.1), "one draw"),
        (lambda: comparative_bound([2], [], p=0.1), "both depths"),
        (lambda: comparative_bound([2], [2], p=10), "share of labels"),
    ],
)
def test_what_cannot_be_estimated_says_why(call: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()  # type: ignore[operator]
