"""Points of a picture are written to five digits as Python formats them, whatever their size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equisep.separation.pca import _to_five_digits


def written(values: np.ndarray) -> list[float]:
    """By formatting."""
    return [float(f"{value:.5g}") for value in values]


def test_numbers_of_all_sizes() -> None:
    generator = np.random.default_rng(0)
    values = generator.standard_normal(200_000) * 10.0 ** generator.integers(-30, 30, 200_000)
    assert _to_five_digits(values).tolist() == written(values)


def test_ties_and_powers_of_ten() -> None:
    ties = np.concatenate([np.arange(10_000, 100_000, 37) + 0.5, [99_999.5, 9.99995, 0.999995, 1e-5, 1e5, 1e22, 1e23]])
    for power in (1e-7, 1e-3, 1e-1, 1.0, 10.0, 1e3, 2**-20, 2**30):
        for values in (ties * power, np.nextafter(ties * power, 0), np.nextafter(ties * power, np.inf), -ties * power):
            assert _to_five_digits(values).tolist() == written(values)


def test_zero_and_a_plane() -> None:
    values = np.array([[0.0, -0.0], [5e-324, 1.7e308], [1.0, -123456.0]])
    assert _to_five_digits(values).tolist() == [written(row) for row in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_any_number(values: list[float]) -> None:
    assert _to_five_digits(np.array(values)).tolist() == written(np.array(values))
