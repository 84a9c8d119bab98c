"""One slope or two: the search against plain least squares, and what BIC picks on curves whose making is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equisep.law import fit_law, two_slopes


def plain_search(logs: np.ndarray) -> tuple[int, float, np.ndarray]:
    """The best interior break by one `lstsq` a candidate."""
    depth = np.arange(len(logs), dtype=float)
    found = []
    for at in range(1, len(logs) - 1):
        design = np.stack([np.ones_like(depth), depth, np.maximum(0, depth - at)], axis=1)
        solution, *_ = np.linalg.lstsq(design, logs, rcond=None)
        found.append((float(((logs - design @ solution) ** 2).sum()), at, solution))
    rss, at, solution = min(found, key=lambda entry: entry[0])
    return at, rss, solution


def straight(sites: int, seed: int) -> np.ndarray:
    return 3 - 0.6 * np.arange(sites) + 0.1 * np.random.default_rng(seed).standard_normal(sites)


@pytest.mark.parametrize("sites", [5, 6, 9, 21])
@pytest.mark.parametrize("seed", range(3))
def test_the_search_is_plain_least_squares(sites: int, seed: int) -> None:
    logs = straight(sites, seed)
    found = two_slopes(logs)
    at, rss, (_, before, bend) = plain_search(logs)
    assert found.at == at
    assert found.rhos == pytest.approx((math.exp(before), math.exp(before + bend)), rel=1e-9)
    assert found.bic_two == pytest.approx(sites * math.log(rss / sites) + 5 * math.log(sites), abs=1e-8)
    line = np.polyval(np.polyfit(np.arange(sites), logs, 1), np.arange(sites))
    one = float(((logs - line) ** 2).sum())
    assert found.bic_one == pytest.approx(sites * math.log(one / sites) + 3 * math.log(sites), abs=1e-8)


@pytest.mark.parametrize("sites", [10, 14, 20])
def test_one_slope_is_picked_where_there_is_one(sites: int) -> None:
    gains = [two_slopes(straight(sites, seed)).gain for seed in range(200)]
    assert np.median(gains) < 0
    assert np.mean(np.array(gains) > 6) < 0.1


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("at", [4, 7, 9])
def test_two_slopes_are_picked_where_there_are_two(seed: int, at: int) -> None:
    logs = straight(14, seed) + 0.45 * np.maximum(0, np.arange(14) - at)
    found = two_slopes(logs)
    assert found.gain > 6
    assert abs(found.at - at) <= 1
    assert found.rhos[0] == pytest.approx(math.exp(-0.6), rel=0.15)
    assert found.rhos[1] == pytest.approx(math.exp(-0.15), rel=0.1)


def test_an_exact_broken_line_is_found_exactly() -> None:
    depth = np.arange(8)
    law = fit_law(np.exp(2 - 0.7 * depth + 0.5 * np.maximum(0, depth - 3)))
    assert law.two_slopes.at == 3
    assert law.two_slopes.rhos == pytest.approx((math.exp(-0.7), math.exp(-0.2)), rel=1e-12)
    assert law.two_slopes.gain > 100
    assert math.isfinite(law.two_slopes.bic_two)


def test_an_exact_line_stays_one_line() -> None:
    for first in (1e-250, 1.0, 1e250):
        found = fit_law([first * 0.5**site for site in range(9)]).two_slopes
        assert found.gain == pytest.approx(-2 * math.log(9))


def test_fewer_than_five_sites_cannot_tell() -> None:
    assert two_slopes(np.log([9.0, 5.0, 2.0, 1.5])) is None
    assert two_slopes(np.log([9.0, 5.0, 2.0, 1.5, 1.0])) is not None


def test_slopes_beyond_floats_are_left_out() -> None:
    assert two_slopes(np.array([-700.0, 700.0, 700.0, 700.0, 700.0])) is None
