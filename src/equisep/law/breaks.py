"""Whether one slope or two describe ln D over depth: a continuous broken line against a line, at a rate of false alarms."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from equisep.law.curve import line_through, rounding_of
from equisep.results import Break, LawFit
from equisep.results.records import BREAK_LEVEL
from equisep.shapes import Float64

# A broken line has four numbers to choose (intercept, two slopes, the break): through four sites it always passes
# exactly, or as good as, so the least curve that can speak against it has five.
LEAST_SITES = 5
ONE_SLOPE = 3  # intercept, slope, σ
TWO_SLOPES = 5  # intercept, two slopes, the position of the break, σ
SHAPE_DRAWS, SAMPLING_DRAWS = 10_000, 4_000  # of curves under one slope: 5 % is known to ±0.2 and ±0.35 points
_CHUNK = 2**20  # numbers drawn at a time
_EXP_MAX = math.log(np.finfo(np.float64).max)


def two_slopes(logs: Float64[np.ndarray, " l"], folds: Float64[np.ndarray, "m l"] | None = None) -> Break | None:
    """The best continuous broken line through ln D, its slope changing at an interior site, beside the plain line.

    The break is the interior site of least RSS. Whether the bend is more than chance depends on what makes a curve of one slope
    leave its line, and three kinds of noise must each be unable to: *wiggle*, independent normal noise of every ln D; *loads*,
    layers whose loads are independent normal draws, so that ln D strays as a random walk; and *sampling*, where `folds` are
    ln D without each fold of the samples. Of the first, the share of the line's RSS that the bend takes has a law of its own
    for each number of sites (sup-F, Andrews 1993), of the second the share of the loads' sum of squares which the best
    division into two runs takes. Of the third, the jackknife gives every bend a standard error with all correlation between
    sites in it, and the greatest |t| over breaks a law likewise. All three laws are drawn. A break is called at the level α where

        gain_b ≥ q/(1−q) RSS_b + t² se_b²    and    the loads' share ≥ u,    q, t and u the 1−α quantiles,

    wiggle and sampling added up since both may be present; `p` is the least such α. simulations/law_shape.py counts false alarms
    and power; docs/intervals.md has the table.

    BIC = L ln(RSS/L) + p ln L (Schwarz 1978), p = 3 for the line and 5 for the broken line, stands beside. RSS is never taken
    below L·δ², δ the rounding of ln D: on curves that lie exactly on a line both RSS are rounding noise, whose ratio would
    decide by chance; with the floor the fit of fewer numbers wins. `None` for fewer than five sites.
    """
    sites = len(logs)
    if sites < LEAST_SITES:
        return None
    residuals = _without_line(logs)
    hinges = _hinges(sites)
    bends = (
        _without_line(hinges) @ residuals / _norms(sites)
    )  # not by `_bends`: residuals may be rounding, with a line in it
    best = int(np.argmax(bends**2))
    bend = float(bends[best] / _norms(sites)[best])
    # The residuals anew, since RSS − gain loses every digit where the broken line fits exactly.
    left = _without_line(logs - bend * hinges[best])
    _, before = line_through(logs - bend * hinges[best])
    slopes = (float(before), float(before) + bend)
    if max(abs(slope) for slope in slopes) > _EXP_MAX:
        return None
    floor = sites * rounding_of(logs) ** 2
    one, two = (max(float(part @ part), floor) for part in (residuals, left))
    return Break(
        at=best + 1,
        rhos=(math.exp(slopes[0]), math.exp(slopes[1])),
        bic_one=_bic(one, sites, ONE_SLOPE),
        bic_two=_bic(two, sites, TWO_SLOPES),
        strength=_strength(1 - two / one, float(_load_share(logs)), sites) if two < one else 0.0,
        p=_p(logs, bends**2, one, floor, errors=None if folds is None else _errors(folds)) if two < one else 1.0,
        noise=("wiggle", "loads") if folds is None else ("wiggle", "loads", "sampling"),
    )


def judged_by_folds(law: LawFit, curves: Any) -> LawFit:
    """The law with its break judged by sampling noise too: `curves` are D without each fold, one a row."""
    rows = np.asarray(curves, dtype=np.float64)
    if law.two_slopes is None or not (np.isfinite(rows) & (rows > 0)).all():
        return law
    return replace(law, two_slopes=two_slopes(np.log(law.curve), np.log(rows)))


def break_of(law: LawFit) -> Break | None:
    """The break of a law with its p; that of a profile of an earlier version, which judged by BIC, is made anew."""
    known = law.two_slopes
    if known is None or known.p is not None or len(law.curve) < LEAST_SITES or min(law.curve) <= 0:
        return known
    return two_slopes(np.log(law.curve))


def _strength(share: float, of_loads: float, sites: int) -> float:
    """The lesser of the two shares over their limits at `BREAK_LEVEL`."""
    limits = _quantile(_null_shares(sites), BREAK_LEVEL), _quantile(_null_load_shares(sites), BREAK_LEVEL)
    return min(share / limits[0], of_loads / limits[1])


def _p(
    logs: Float64[np.ndarray, " l"],
    gains: Float64[np.ndarray, " b"],
    rss: float,
    floor: float,
    *,
    errors: Float64[np.ndarray, " b"] | None,
) -> float:
    """The least level at which a bend exceeds the limits of all kinds of noise, by bisection."""
    sites, of_loads = len(logs), float(_load_share(logs))
    shares, ratios = _null_shares(sites), None if errors is None else _null_ratios(sites)
    left = np.maximum(rss - gains, floor)

    def called(level: float) -> bool:
        if of_loads < _quantile(_null_load_shares(sites), level):
            return False
        q = _quantile(shares, level)
        limit = q / (1 - q) * left
        if errors is not None and ratios is not None:
            limit = limit + (_quantile(ratios, level) * errors) ** 2
        return bool((gains >= limit).any())

    low, high = 1 / len(shares if ratios is None else ratios), 1.0
    if called(low):
        return low
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if called(middle) else (middle, high)
    return high


def _quantile(ordered: Float64[np.ndarray, " n"], level: float) -> float:
    """What `level` of the draws reach or exceed."""
    return float(ordered[min(len(ordered) - 1, math.ceil((1 - level) * len(ordered)))])


def _errors(folds: Float64[np.ndarray, "m l"]) -> Float64[np.ndarray, " b"]:
    """The jackknife standard error of every bend, in units where white noise of variance 1 gives 1."""
    bends = _bends(_without_line(folds))
    m = len(folds)
    spread: Float64[np.ndarray, " b"] = np.sqrt((m - 1) / m * ((bends - bends.mean(axis=0)) ** 2).sum(axis=0))
    return spread


@lru_cache(maxsize=64)
def _null_shares(sites: int) -> Float64[np.ndarray, " n"]:
    """The greatest share of RSS over all breaks, of lines with independent normal noise."""
    rng = np.random.default_rng(sites)
    parts = []
    for count in _chunks(SHAPE_DRAWS, sites):
        residuals = _without_line(rng.standard_normal((count, sites)))
        parts.append((_bends(residuals) ** 2).max(axis=-1) / (residuals**2).sum(axis=-1))
    return np.sort(np.concatenate(parts))


@lru_cache(maxsize=64)
def _null_ratios(sites: int, folds: int = 10) -> Float64[np.ndarray, " n"]:
    """The greatest |bend| over its jackknife error over all breaks, of lines whose folds have independent normal noise.

    Independent from site to site: noise that is correlated makes neighboring breaks more alike, and the greatest smaller.
    """
    rng = np.random.default_rng(sites)
    parts = []
    for count in _chunks(SAMPLING_DRAWS, sites * folds):
        each = _bends(_without_line(rng.standard_normal((count, folds, sites))))
        error = each.std(axis=1, ddof=1) / math.sqrt(folds)
        parts.append(np.abs(each.mean(axis=1) / error).max(axis=-1))
    return np.sort(np.concatenate(parts))


@lru_cache(maxsize=64)
def _null_load_shares(sites: int) -> Float64[np.ndarray, " n"]:
    """The share of the loads' sum of squares that the best division into two runs takes, of independent normal loads."""
    rng = np.random.default_rng(sites)
    parts = [
        _load_share(np.cumsum(rng.standard_normal((count, sites)), axis=-1)) for count in _chunks(SHAPE_DRAWS, sites)
    ]
    return np.sort(np.concatenate(parts))


def _load_share(logs: Float64[np.ndarray, "*m l"]) -> Float64[np.ndarray, "*m"]:
    loads = np.diff(logs, axis=-1)
    off = loads - loads.mean(axis=-1, keepdims=True)
    count = loads.shape[-1]
    before = np.arange(1, count)
    between = np.cumsum(off, axis=-1)[..., :-1] ** 2 * count / (before * (count - before))
    return np.asarray(between.max(axis=-1) / (off**2).sum(axis=-1))


def _chunks(draws: int, numbers: int) -> list[int]:
    size = max(1, min(draws, _CHUNK // numbers))
    whole, rest = divmod(draws, size)
    return [size] * whole + ([rest] if rest else [])


def _bends(residuals: Float64[np.ndarray, "*m l"]) -> Float64[np.ndarray, "*m b"]:
    """What a unit hinge at every interior break finds in residuals of a line; its square is what it lowers RSS by.

    Residuals are orthogonal to lines, so r·max(0, l − b) is all that is needed: sums of sums from the end.
    """
    sums = np.cumsum(np.cumsum(residuals[..., ::-1], axis=-1), axis=-1)[..., ::-1]
    found: Float64[np.ndarray, "*m b"] = sums[..., 2:] / _norms(residuals.shape[-1])
    return found


@lru_cache(maxsize=64)
def _norms(sites: int) -> Float64[np.ndarray, " b"]:
    """The length of every hinge less its line."""
    norms: Float64[np.ndarray, " b"] = np.linalg.norm(_without_line(_hinges(sites)), axis=1)
    return norms


def _hinges(sites: int) -> Float64[np.ndarray, "b l"]:
    """max(0, l − b) for every interior break b = 1 … L − 2, one a row."""
    depth = np.arange(sites, dtype=np.float64)
    return np.maximum(0.0, depth[None, :] - depth[1:-1, None])


def _without_line(rows: Float64[np.ndarray, "*m l"]) -> Float64[np.ndarray, "*m l"]:
    """What a straight line over depth leaves of each row."""
    intercept, slope = line_through(rows)
    return rows - (intercept[..., None] + slope[..., None] * np.arange(rows.shape[-1]))


def _bic(rss: float, sites: int, parameters: int) -> float:
    return sites * math.log(rss / sites) + parameters * math.log(sites)
