"""Means over seeds and test samples: the parts of the variance, against a slow twin, and what the intervals cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equisep.advice.paired_hits import crossed_mean
from equisep.errors import InputError
from equisep.law.quantiles import student_quantile


def drawn(
    chance: np.random.Generator, seeds: int, samples: int, spreads: tuple[float, float, float]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A table of x_si = A_s + B_i + E_si with these standard deviations, of mean 0."""
    of_seeds, of_samples, of_both = spreads
    a, b = chance.normal(0, of_seeds, (seeds, 1)), chance.normal(0, of_samples, (1, samples))
    return a + b + chance.normal(0, of_both, (seeds, samples))


def test_the_parts_are_those_of_the_two_way_table() -> None:
    table = drawn(np.random.default_rng(0), 5, 7, (1.0, 2.0, 0.5))
    mean = sum(table[s, i] for s in range(5) for i in range(7)) / 35
    rows = [sum(table[s]) / 7 for s in range(5)]
    columns = [sum(table[:, i]) / 5 for i in range(7)]
    rest = sum((table[s, i] - rows[s] - columns[i] + mean) ** 2 for s in range(5) for i in range(7)) / (4 * 6)
    by_seed = 7 * sum((row - mean) ** 2 for row in rows) / 4  # mean squares
    by_sample = 5 * sum((column - mean) ** 2 for column in columns) / 6
    own = crossed_mean(table)
    assert own.value == pytest.approx(mean, rel=1e-12)
    assert own.of_both == pytest.approx(rest, rel=1e-9)
    assert own.of_seeds == pytest.approx((by_seed - rest) / 7, rel=1e-9)
    assert own.of_samples == pytest.approx((by_sample - rest) / 5, rel=1e-9)
    assert own.error**2 == pytest.approx((by_seed + by_sample - rest) / 35, rel=1e-9)


@pytest.mark.parametrize(
    "spreads", [(1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (0.3, 3.0, 1.0), (0.0, 0.0, 1.0), (0.05, 0.2, 1.0)]
)
def test_intervals_cover_whatever_varies(spreads: tuple[float, float, float]) -> None:
    """600 tables of 8 seeds and 60 samples: 95 % intervals hold the mean 0 in 94 % of them or more."""
    chance = np.random.default_rng(1)
    held = 0
    for _ in range(600):
        interval = crossed_mean(drawn(chance, 8, 60, spreads)).interval(0.95)
        held += interval.low <= 0 <= interval.high
    assert held >= 0.94 * 600


def test_each_part_has_the_quantile_of_its_own_degrees_of_freedom() -> None:
    chance = np.random.default_rng(2)
    by_seed = crossed_mean(drawn(chance, 6, 400, (1.0, 0.0, 0.01)))
    by_sample = crossed_mean(drawn(chance, 6, 400, (0.0, 1.0, 0.01)))
    both = crossed_mean(drawn(chance, 6, 400, (0.05, 1.0, 0.01)))
    assert by_seed.reach(0.975) == pytest.approx(student_quantile(0.975, 5) * by_seed.error, rel=1e-4)
    assert by_sample.reach(0.975) == pytest.approx(student_quantile(0.975, 399) * by_sample.error, rel=1e-4)
    assert student_quantile(0.975, 399) < both.reach(0.975) / both.error < student_quantile(0.975, 5)


def test_more_seeds_and_samples_are_asked_of_the_same_parts() -> None:
    own = crossed_mean(drawn(np.random.default_rng(3), 6, 50, (1.0, 1.0, 1.0)))
    more = replace(own, seeds=60, samples=500)
    parts = own.of_seeds / 60 + own.of_samples / 500 + own.of_both / 30_000
    assert more.error == pytest.approx(parts**0.5, rel=1e-12)
    assert more.reach(0.99) < own.reach(0.99)


def test_two_seeds_are_too_few() -> None:
    with pytest.raises(InputError, match="3 seeds and 2 samples; found 2 and 10"):
        crossed_mean(np.zeros((2, 10)))
