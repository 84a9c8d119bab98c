"""The law of equi-separation of one depth curve: the straight line through ln D, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from equisep.law.breaks import two_slopes
from equisep.law.curve import CurveLike, checked_curve, correlation, imbalance_of, line_through, loads_of, rounding_of
from equisep.results import Interval, LawFit, Note
from equisep.shapes import Float64

_EXP_MAX = math.log(np.finfo(np.float64).max)
_EXP_MIN = math.log(np.finfo(np.float64).tiny)


def fit_law(curve: CurveLike, *, intervals: Mapping[str, Interval] | None = None) -> LawFit:
    """Fit D_l ≈ ρ^l D_0 to a curve of D over depth, site 0 first, whatever it was measured with.

    Least squares of ln D_l = a + l ln ρ over all sites (He & Su 2023, Eq. 2); half-life ln 2 / ln(1/ρ) layers;
    Pearson r of (l, ln D_l). Since any falling curve has a large |r|, the residuals, the imbalance of the loads
    (Proposition 1) and the test of two slopes stand beside it. What does not exist is `None`, and a Note says why.

    >>> import equisep
    >>> law = equisep.fit_law([8.0, 4.0, 2.0, 1.0])
    >>> [round(value, 9) for value in (law.rho, law.half_life, law.r)]
    [0.5, 1.0, -1.0]
    """
    values = checked_curve(curve, asked="fit_law")
    law = LawFit(curve=tuple(values.tolist()), intervals=dict(intervals or {}))
    zeros = np.flatnonzero(values == 0)
    if zeros.size:
        return replace(law, notes=(_zero_note(zeros.tolist(), len(values)),))
    if len(values) < 2:
        return replace(law, notes=(_few_sites(len(values)),))
    logs = np.log(values)
    return _with_slope(_with_shape(law, logs), logs)


def half_life_of(log_rho: float) -> float | None:
    """The layers ln 2 / ln(1/ρ) in which D halves; `None` where D does not fall."""
    return math.log(2.0) / -log_rho if log_rho < 0 else None


def _with_slope(law: LawFit, logs: Float64[np.ndarray, " l"]) -> LawFit:
    """The law with its line: ρ, intercept, half-life, and the Notes where they do not exist."""
    intercept, slope = (float(part) for part in line_through(logs))
    flat = _is_flat(logs)
    if flat:  # a slope of rounding noise would become a half-life of 10¹⁵ layers
        intercept, slope = float(logs.mean()), 0.0
    notes = list(law.notes)
    if flat:
        notes.append(Note("constant-curve", f"D is {law.curve[0]:.4g} at all {len(logs)} sites, so r does not exist."))
    if not _EXP_MIN < slope < _EXP_MAX:
        text = f"ln ρ = {slope:.4g} is beyond what a number can hold, so ρ and the half-life are left out."
        return replace(law, intercept=intercept, notes=(*notes, Note("rho-out-of-range", text)))
    rho = math.exp(slope)
    if slope >= 0:
        text = f"ρ = {rho:.4g} is not below 1: D does not fall with depth, so there is no half-life."
        notes.append(Note("rho-not-below-one", text))
    return replace(law, rho=rho, intercept=intercept, half_life=half_life_of(slope), notes=tuple(notes))


def _with_shape(law: LawFit, logs: Float64[np.ndarray, " l"]) -> LawFit:
    """The law with its loads and all that says how straight ln D is; with two sites a line always fits."""
    each = tuple(loads_of(logs).tolist())
    if len(logs) < 3:
        return replace(law, loads=each, notes=(*law.notes, _few_sites(len(logs))))
    intercept, slope = line_through(logs)
    residuals = logs - (intercept + slope * np.arange(len(logs)))
    r = None if _is_flat(logs) else float(correlation(logs))
    uneven = imbalance_of(logs)
    notes = law.notes
    if not math.isfinite(uneven):
        text = "One layer's ratio of D is beyond what a number can hold, so the imbalance is left out."
        notes = (*notes, Note("imbalance-out-of-range", text))
    return replace(
        law,
        r=r,
        r2=None if r is None else r * r,  # of a straight line with intercept, 1 − RSS/TSS is the square of r
        residuals=tuple(residuals.tolist()),
        max_residual=float(np.abs(residuals).max()),
        loads=each,
        imbalance=uneven if math.isfinite(uneven) else None,
        two_slopes=two_slopes(logs),
        notes=notes,
    )


def _is_flat(logs: Float64[np.ndarray, " l"]) -> bool:
    return float(np.ptp(logs)) <= rounding_of(logs)


def _zero_note(zeros: list[int], sites: int) -> Note:
    where = f"position {zeros[0]}" if len(zeros) == 1 else f"{len(zeros)} positions, first {zeros[0]},"
    text = (
        f"D is exactly 0 at {where} of {sites} (counted from 0): ln D and with it the law do not exist. "
        "Fit the part of the curve before it."
    )
    return Note("zero-fuzziness", text)


def _few_sites(sites: int) -> Note:
    if sites == 2:
        text = (
            "The curve has 2 sites: a line passes through any two, so r, the residuals and the imbalance say nothing."
        )
    else:
        text = f"The curve has {sites} site{'' if sites == 1 else 's'}; a law needs three or more."
    return Note("few-sites", text)
