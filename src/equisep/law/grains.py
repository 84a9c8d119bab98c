"""Which grain of a network follows the law better: its layers or its blocks, judged on the same sites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from equisep.errors import InputError
from equisep.law.curve import line_through, positive_logs, rounding_of
from equisep.results import GrainChoice, LawFit, Note
from equisep.shapes import Float64

LEAST_SITES = 4  # three lie near a line too easily
LINE = 3  # intercept, slope, and the spread around it
CLEAR = 6.0  # in BIC; strong evidence (Kass & Raftery 1995)


def grain_bic(curve: Sequence[float | None], chosen: Sequence[int]) -> float | None:
    """BIC of `the chosen sites lie on a straight line of ln D, the sites between them scatter around it as they like`.

    Two grains read different sites, whose fits do not compare. On the N sites of both together they do: a grain draws the
    law's line through its own L sites, which scatter around it by σ, and the other sites, on the line where they stand
    between its own, scatter by a τ of their own: BIC = −2 ln p + (3 + [L < N]) ln N, with Gaussian p (Schwarz 1978),
    σ² = RSS/(L − 2), and τ² the mean square of the others. So blocks win over layers where the ends of blocks keep to the
    line and the layers inside do not; where all keep to it alike, layers win by ln N. Neither spread is taken below the
    rounding of ln D. None where D is missing or 0 at a site, or fewer than four are chosen.
    """
    if sorted(set(chosen)) != list(chosen) or (chosen and not 0 <= chosen[0] <= chosen[-1] < len(curve)):
        raise InputError(
            f"`grain_bic` needs the places of a grain's sites in order, from 0 to {len(curve) - 1}; found {list(chosen)}."
        )
    if len(chosen) < LEAST_SITES or any(not value for value in curve):
        return None
    logs = positive_logs(curve, asked="grain_bic", least=LEAST_SITES)
    n, count = len(logs), len(chosen)
    intercept, slope = line_through(logs[list(chosen)])
    squares = (logs - intercept - slope * _positions(n, chosen)) ** 2
    others = np.setdiff1d(np.arange(n), chosen)
    least = rounding_of(logs) ** 2
    value = _misfit(squares[list(chosen)], free=count - 2, least=least)
    if len(others):
        value += _misfit(squares[others], free=len(others), least=least)
    return value + (LINE + bool(len(others))) * math.log(n)


def _positions(n: int, chosen: Sequence[int]) -> Float64[np.ndarray, " n"]:
    """Where each of n sites stands, counted in the chosen ones: 0, 1, …, others evenly between; outside by mean steps."""
    places = np.arange(n, dtype=np.float64)
    own = np.asarray(chosen, dtype=np.float64)
    step = (len(own) - 1) / (own[-1] - own[0])
    found = np.interp(places, own, np.arange(len(own), dtype=np.float64))
    before, after = places < own[0], places > own[-1]
    found[before] = (places[before] - own[0]) * step
    found[after] = len(own) - 1 + (places[after] - own[-1]) * step
    result: Float64[np.ndarray, " n"] = found
    return result


def _misfit(squares: Float64[np.ndarray, " m"], *, free: int, least: float) -> float:
    """−2 ln p, up to a constant a site, of Gaussian deviations with these squares and variance RSS/free."""
    rss = float(squares.sum())
    variance = max(rss / free, least)
    return len(squares) * math.log(variance) + rss / variance


def choose_grain(
    laws: Mapping[str, LawFit], bics: Mapping[str, float | None], sites: Mapping[str, tuple[str, ...]]
) -> tuple[GrainChoice, Note]:
    """The grain of clearly lower BIC; where neither is clearly better, of the more negative r, of equals the first.

    Of two grains one of which has no BIC it is the other.
    """
    known = {grain: value for grain, value in bics.items() if value is not None}
    by_bic = min(known, key=known.__getitem__) if known else None
    by_r = min(laws, key=lambda grain: _r(laws[grain]))
    clear = len(known) < len(laws) or max(known.values()) - min(known.values()) > CLEAR
    chosen = by_bic if by_bic is not None and clear else by_r
    other = next(grain for grain in laws if grain != chosen)
    gain = known[other] - known[chosen] if len(known) == len(laws) else None
    choice = GrainChoice(chosen=chosen, gain=gain, bic=known, sites=dict(sites))
    return choice, Note("grain", _words(choice, other, laws))


def _r(law: LawFit) -> float:
    return 1.0 if law.r is None else law.r


def _words(choice: GrainChoice, other: str, laws: Mapping[str, LawFit]) -> str:
    def fit(grain: str) -> str:
        r = laws[grain].r
        return f"{len(choice.sites[grain])} sites, r {'unknown' if r is None else format(r, '.4f')}"

    text = f"Both grains were measured, {choice.chosen} ({fit(choice.chosen)}) and {other} ({fit(other)})"
    if choice.gain is None:
        why = f"the {other} are too few for a BIC" if choice.bic else "there is no BIC to tell them apart"
        return f"{text}: {why}, and `law` is that of the {choice.chosen}{'' if choice.bic else ', by r'}."
    if choice.gain > CLEAR:
        return f"{text}: the {choice.chosen} follow the law clearly better, by {choice.gain:.1f} in BIC, and `law` is theirs."
    better = choice.chosen if choice.gain >= 0 else other
    return (
        f"{text}: BIC hardly tells them apart ({abs(choice.gain):.1f} in favor of the {better}), so `law` is that of the "
        f"{choice.chosen}, whose r is the more negative."
    )
