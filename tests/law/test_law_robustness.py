"""Loads and imbalance: Proposition 1, checked by moving the ratios, and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equisep.errors import InputError
from equisep.law import imbalance, loads, sensitivity

ratio_lists = st.lists(st.floats(0.05, 3.0), min_size=1, max_size=15)


def curve_of(ratios: list[float], first: float = 20.0) -> list[float]:
    return [first, *(first * np.cumprod(ratios)).tolist()]


def test_closed_forms() -> None:
    assert loads([8.0, 4.0, 1.0]) == pytest.approx([math.log(2), math.log(4)])
    assert sensitivity([8.0, 4.0, 1.0]) == pytest.approx(6)
    assert imbalance([8.0, 4.0, 1.0]) == pytest.approx(6 / (2 * math.sqrt(8)))
    assert loads([3.0]) == ()


@given(ratios=ratio_lists)
def test_the_definition(ratios: list[float]) -> None:
    curve = np.array(curve_of(ratios))
    factor = (curve[:-1] / curve[1:]).sum()
    least = len(ratios) * (curve[-1] / curve[0]) ** (-1 / len(ratios))
    assert sensitivity(curve) == pytest.approx(factor, rel=1e-12)
    assert imbalance(curve) == pytest.approx(factor / least, rel=1e-9)


@given(ratios=ratio_lists)
def test_one_is_the_least_and_reached_by_equal_ratios_only(ratios: list[float]) -> None:
    value = imbalance(curve_of(ratios))
    assert value >= 1
    spread = float(np.ptp(np.log(ratios)))
    if spread == 0:
        assert value == pytest.approx(1, abs=1e-12)
    if spread > 1e-3:
        assert value > 1 + spread**2 / (8 * len(ratios))


@given(ratios=ratio_lists, seed=st.integers(0, 99))
def test_the_order_of_the_layers_does_not_matter(ratios: list[float], seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(ratios).tolist()
    assert imbalance(curve_of(shuffled)) == pytest.approx(imbalance(curve_of(ratios)), rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_first_order_change_of_the_total_ratio(seed: int) -> None:
    ratios = np.random.default_rng(seed).uniform(0.3, 0.8, size=7)
    total, factor = ratios.prod(), sensitivity(curve_of(ratios.tolist()))
    for step in (1e-3, 1e-4, 1e-5):
        left = (ratios + step).prod() - (total + total * factor * step)
        assert abs(left) < 2 * total * factor**2 * step**2  # O(ε²)
        assert abs(left) > 1e-3 * total * factor**2 * step**2


@pytest.mark.parametrize("seed", range(4))
def test_at_equal_total_the_law_is_the_most_robust(seed: int) -> None:
    rng = np.random.default_rng(seed)
    uneven = rng.uniform(0.2, 0.9, size=6)
    even = np.full(6, uneven.prod() ** (1 / 6))
    change = [abs((ratios + 1e-4).prod() / ratios.prod() - 1) for ratios in (uneven, even)]
    assert change[0] > change[1]
    assert change[0] / change[1] == pytest.approx(imbalance(curve_of(uneven.tolist())), rel=1e-2)


def test_large_and_small_curves_keep_their_digits() -> None:
    assert imbalance([1e-200, 1e-202, 1e-204]) == pytest.approx(1, abs=1e-12)
    assert imbalance([1e300, 1e150, 1.0, 1e-150, 1e-300]) == pytest.approx(1, abs=1e-12)
    assert imbalance([1e300, 1e-300, 1e300]) == math.inf
    assert sensitivity([1e300, 1e-300]) == math.inf


@pytest.mark.parametrize("ask", [imbalance, sensitivity])
def test_short_curves_are_refused(ask) -> None:
    with pytest.raises(InputError, match="2 sites or more; the curve has 1"):
        ask([1.0])


@pytest.mark.parametrize("ask", [loads, imbalance, sensitivity])
def test_zero_is_refused(ask) -> None:
    with pytest.raises(InputError, match=f"`{ask.__name__}` needs ln D at every site; D is 0 at position 2 of 3"):
        ask([4.0, 1.0, 0.0])
