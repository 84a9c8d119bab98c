"""The minimal NCC depth of a family: an upper estimate from trained networks, or not reached."""

from __future__ import annotations

import pytest

from equisep.advice.depth import minimal_ncc_depth
from equisep.advice.depth.words import minimal_ncc_sentence
from equisep.errors import InputError


def test_some_network_is_enough_and_all_of_them_stand_beside() -> None:
    found = minimal_ncc_depth({4: [0.995, 0.97], 2: [0.9, 0.92], 8: [1.0, 1.0]})
    assert (found.depth, found.hidden, found.every) == (4, 3, 8)
    assert found.separated == {2: 0, 4: 1, 8: 2}
    assert found.best[2] == pytest.approx(0.08)
    words = minimal_ncc_sentence(found)
    assert words.startswith("Minimal NCC depth: at most 4 (3 hidden layers). 1 of 2 networks of that depth")
    assert "none of depth 2 has" in words and "All of depth 8 or more have." in words and "upper estimate" in words


def test_deeper_networks_that_do_not_separate_are_not_passed_over() -> None:
    found = minimal_ncc_depth({2: [1.0, 0.9], 4: [1.0, 1.0], 8: [1.0, 0.5]})
    assert (found.depth, found.every) == (2, 4)
    assert "the least depth tried. All networks of depth 4 have, not all deeper ones." in minimal_ncc_sentence(found)


def test_not_reached_is_said() -> None:
    found = minimal_ncc_depth({2: [0.9, None], 6: [0.97, 0.98]}, epsilon=0.01)
    assert found.depth is None and found.every is None and found.hidden is None
    assert minimal_ncc_sentence(found).startswith("Minimal NCC depth: not reached up to depth 6.")
    assert "the least seen is 2 %" in minimal_ncc_sentence(found)


def test_epsilon_is_the_share_that_may_be_missed() -> None:
    assert minimal_ncc_depth({2: [0.82]}, epsilon=0.18).depth == 2
    assert minimal_ncc_depth({2: [0.9999]}, epsilon=0.0).depth is None
    with pytest.raises(InputError, match="epsilon"):
        minimal_ncc_depth({2: [0.9]}, epsilon=1.0)


def test_no_networks_are_refused() -> None:
    with pytest.raises(InputError, match="found none"):
        minimal_ncc_depth({})
