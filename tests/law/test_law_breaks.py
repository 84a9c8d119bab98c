"""One slope or two: the search against plain least squares, and what is called of curves whose making is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equisep.law import fit_law, judged_by_folds, two_slopes


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


def noise(sites: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(sites)


def straight(sites: int, seed: int) -> np.ndarray:
    return 3 - 0.6 * np.arange(sites) + 0.1 * noise(sites, seed)


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


@pytest.mark.parametrize("sites", [5, 8, 14, 20])
def test_two_slopes_are_rarely_called_where_there_is_one(sites: int) -> None:
    """By a BIC gain above 6 it was 25 % of curves of 5 sites."""
    calls = [two_slopes(straight(sites, seed)).clear for seed in range(300)]
    assert np.mean(calls) < 0.09  # 0.05 and three deviations


@pytest.mark.parametrize("sites", [8, 20])
def test_loads_that_vary_at_random_are_not_two_slopes(sites: int) -> None:
    """A random walk strays far from its line: the residuals alone would call 20 to 60 % of such curves."""
    rng = np.random.default_rng(3)
    calls = [two_slopes(-np.cumsum(1 + 0.3 * rng.standard_normal(sites))).clear for _ in range(300)]
    assert np.mean(calls) < 0.09


def test_p_is_how_often_one_slope_bends_as_much() -> None:
    """Uniform where loads vary at random in a normal way; the limit of strength is that of p."""
    rng = np.random.default_rng(4)
    breaks = [two_slopes(-np.cumsum(rng.standard_normal(12))) for _ in range(400)]
    p = np.array([found.p for found in breaks])
    assert np.mean(p <= 0.5) == pytest.approx(0.5, abs=0.1)
    assert all((found.strength >= 1) == found.clear for found in breaks if abs(found.p - 0.05) > 2e-4)
    assert {found.noise for found in breaks} == {("wiggle", "loads")}


def folded(line: np.ndarray, size: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A line with noise of sampling, alike at neighboring sites, and the same without each of ten folds."""
    apart = np.abs(np.arange(len(line))[:, None] - np.arange(len(line)))
    each = size * math.sqrt(10) * rng.standard_normal((10, len(line))) @ np.linalg.cholesky(0.9**apart).T
    return line + each.mean(axis=0), line + (10 * each.mean(axis=0) - each) / 9


def test_a_bend_that_other_samples_need_not_show_is_not_called() -> None:
    rng = np.random.default_rng(5)
    depth = np.arange(12)
    bent = -0.6 * depth + 0.02 * np.maximum(0, depth - 6)
    assert two_slopes(bent).clear  # of this set: exactly two slopes
    calls = []
    for _ in range(100):
        logs, folds = folded(bent, 0.1, rng)
        found = two_slopes(logs, folds)
        assert found.p > two_slopes(logs).p - 2e-4  # bisection
        assert found.noise == ("wiggle", "loads", "sampling")
        calls.append(found.clear)
    assert np.mean(calls) < 0.1
    logs, folds = folded(bent, 1e-4, rng)
    assert two_slopes(logs, folds).clear


def test_a_law_is_judged_by_its_folds_where_all_of_them_have_a_d() -> None:
    rng = np.random.default_rng(6)
    logs, folds = folded(-0.6 * np.arange(9), 0.1, rng)
    law = fit_law(np.exp(logs))
    assert judged_by_folds(law, np.exp(folds)).two_slopes.p == two_slopes(logs, folds).p
    folds[3, 2] = -math.inf
    assert judged_by_folds(law, np.exp(folds)) == law
    short = fit_law([4.0, 2.0, 1.0])
    assert judged_by_folds(short, np.ones((10, 3))) == short


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("at", [4, 7, 9])
def test_two_slopes_are_picked_where_there_are_two(seed: int, at: int) -> None:
    logs = straight(14, seed) + 0.45 * np.maximum(0, np.arange(14) - at)
    found = two_slopes(logs)
    assert found.gain > 6 and two_slopes(logs - 0.8 * 0.1 * noise(14, seed)).clear
    assert abs(found.at - at) <= 1
    assert found.rhos[0] == pytest.approx(math.exp(-0.6), rel=0.15)
    assert found.rhos[1] == pytest.approx(math.exp(-0.15), rel=0.1)


def test_an_exact_broken_line_is_found_exactly() -> None:
    depth = np.arange(8)
    law = fit_law(np.exp(2 - 0.7 * depth + 0.5 * np.maximum(0, depth - 3)))
    assert law.two_slopes.at == 3
    assert law.two_slopes.rhos == pytest.approx((math.exp(-0.7), math.exp(-0.2)), rel=1e-12)
    assert law.two_slopes.gain > 100 and law.two_slopes.p < 0.001
    assert math.isfinite(law.two_slopes.bic_two)


def test_an_exact_line_stays_one_line() -> None:
    for first in (1e-250, 1.0, 1e250):
        found = fit_law([first * 0.5**site for site in range(9)]).two_slopes
        assert found.gain == pytest.approx(-2 * math.log(9))
        assert (found.p, found.strength, found.clear) == (1.0, 0.0, False)


def test_fewer_than_five_sites_cannot_tell() -> None:
    assert two_slopes(np.log([9.0, 5.0, 2.0, 1.5])) is None
    assert two_slopes(np.log([9.0, 5.0, 2.0, 1.5, 1.0])) is not None


def test_slopes_beyond_floats_are_left_out() -> None:
    assert two_slopes(np.array([-700.0, 700.0, 700.0, 700.0, 700.0])) is None
