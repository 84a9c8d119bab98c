"""Bracketed roots against scipy's, many at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from closeness import close
from equisep.errors import NumericalError
from equisep.peeled.thresholds import bracketed_roots, falling_roots

FUNCTIONS = [
    lambda x: x**3 - 2,
    lambda x: np.exp(x) - 10,
    lambda x: np.where(x < 1.3, -1e-8, 1.0),  # a step: only halving helps
    lambda x: (x - 1.5) ** 9,
    lambda x: np.log(x / 2),
    lambda x: 1e-300 * (x - 1.25),
]


def together(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.array([FUNCTIONS[row](value) for value, row in zip(x, rows, strict=True)], dtype=np.float64)


def test_many_roots_at_once_are_scipys() -> None:
    count = len(FUNCTIONS)
    found = bracketed_roots(together, np.full(count, 0.5), np.full(count, 3.0))
    expected = [optimize.bisect(function, 0.5, 3.0, xtol=1e-15, rtol=1e-15) for function in FUNCTIONS]
    simple = [0, 1, 2, 4, 5]
    close(found[simple], np.array(expected)[simple], rtol=1e-14)
    assert found[3] == pytest.approx(1.5, abs=1e-3)  # so flat that its values underflow nearby


def test_finished_functions_are_not_called_again() -> None:
    calls = np.zeros(2, dtype=int)

    def function(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        np.add.at(calls, rows, 1)
        return np.where(rows == 0, x - 1.0, np.where(x < 1.3, -1e-8, 1.0))

    bracketed_roots(function, np.array([0.0, 0.5]), np.array([2.0, 3.0]))
    assert calls[0] < 6 < 30 < calls[1]


def test_a_wide_tolerance_stops_early() -> None:
    low, high = np.array([0.5]), np.array([3.0])
    (root,) = bracketed_roots(lambda x, rows: x**3 - 2, low, high, within=1e-2)
    assert root == pytest.approx(2 ** (1 / 3), abs=1e-2)


def test_a_root_at_an_end_is_found() -> None:
    assert bracketed_roots(lambda x, rows: x - 1.0, np.array([1.0]), np.array([2.0])) == pytest.approx([1.0], abs=0)


def test_equal_signs_are_told() -> None:
    with pytest.raises(NumericalError, match="the signs do not differ"):
        bracketed_roots(lambda x, rows: x**2 + 1, np.array([0.0]), np.array([1.0]))


FALLING = [
    lambda x: np.log(0.3 + 0.4 * np.exp(x)) - x,  # a multiplier that moves with the weight
    lambda x: -40 - x,
    lambda x: np.where(x < -0.7, 1.0, -1e-3),  # a step: only the middle helps
    lambda x: -np.expm1(5 * (x + 2)),  # steep
]


def test_falling_roots_are_found_with_few_calls() -> None:
    calls = np.zeros(len(FALLING), dtype=int)

    def function(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        np.add.at(calls, rows, 1)
        return np.array([FALLING[row](value) for value, row in zip(x, rows, strict=True)], dtype=np.float64)

    count = len(FALLING)
    roots, slopes = falling_roots(
        function, np.full(count, -0.1), high=np.zeros(count), slope=np.full(count, -1.0), within=1e-12
    )
    close(roots, np.array([np.log(0.5), -40, -0.7, -2]), rtol=1e-11)
    close(slopes[:2], np.array([-0.6, -1]), rtol=1e-6)
    assert calls[0] < 8 and calls[1] < 4


def test_steep_roots_are_found_with_few_calls_where_steep_slopes_are_believed() -> None:
    """As margins of many classes fall; taken for noise, they leave halving alone."""
    calls = []

    def function(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        calls.append(len(rows))
        return -np.expm1(40 * (x + 2)) - 30 * (x + 2)

    options = {"high": np.zeros(1), "slope": np.array([-50.0]), "within": 1e-9}
    (root,), (slope,) = falling_roots(function, np.array([-2.01]), **options, steep=1e3)
    assert root == pytest.approx(-2, abs=1e-11) and slope == pytest.approx(-70, rel=1e-3)
    assert len(calls) < 8
    calls.clear()
    falling_roots(function, np.array([-2.01]), **{**options, "slope": np.array([-1.0])})
    assert len(calls) > 16


def test_falling_roots_stop_where_rounding_hides_the_root() -> None:
    noise = np.random.default_rng(0)
    (root,), _ = falling_roots(
        lambda x, rows: -1 - x + noise.uniform(-1e-8, 1e-8, len(x)),
        np.array([-0.5]),
        high=np.zeros(1),
        slope=np.array([-1.0]),
        within=1e-14,
    )
    assert root == pytest.approx(-1, abs=1e-7)


@pytest.mark.parametrize("function", [lambda x, rows: np.full_like(x, np.nan), lambda x, rows: np.full_like(x, -1.0)])
def test_a_falling_root_that_is_not_there_is_told(function: object) -> None:
    with pytest.raises(NumericalError, match=r"was looked for, down to .*, and not found"):
        falling_roots(function, np.array([-1.0]), high=np.zeros(1), slope=np.array([-1.0]), within=1e-12)
