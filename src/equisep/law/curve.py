"""What a depth curve is (finite numbers ≥ 0, site 0 first), the line through its logs, its loads, and what is refused."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from equisep.errors import InputError
from equisep.shapes import Float64

if TYPE_CHECKING:
    CurveLike = Iterable[Any]
else:
    CurveLike = Any  # so that what is no curve reaches the sentence below, whoever checks types at run time

ROUNDINGS = 4  # rounding steps between the exact ln D and ours: of D itself, of the log, of the line, of the difference


def checked_curve(curve: CurveLike, *, asked: str) -> Float64[np.ndarray, " l"]:
    """The curve as float64, or an `InputError` that names the first entry which is no D: `asked` is who wants it."""
    if isinstance(curve, str | bytes | Mapping | Set) or not isinstance(curve, Iterable):
        raise InputError(
            f"`{asked}` needs the values of D over depth; found {_shown(curve)}, a {type(curve).__name__}. "
            "Pass a list of numbers, site 0 first."
        )
    try:
        entries = list(curve)
    except TypeError:  # an array of no dimension says that it can be iterated, and cannot
        raise InputError(
            f"`{asked}` needs the values of D over depth; found the single number {_shown(curve)}. "
            "Pass a list of numbers, site 0 first."
        ) from None
    values = [_checked_entry(entry, place, len(entries), asked) for place, entry in enumerate(entries)]
    return np.asarray(values, dtype=np.float64)


def positive_logs(curve: CurveLike, *, asked: str, least: int) -> Float64[np.ndarray, " l"]:
    """The logs of D of a checked curve of at least `least` sites, none of them 0."""
    values = checked_curve(curve, asked=asked)
    if len(values) < least:
        raise InputError(
            f"`{asked}` needs D at {least} sites or more; the curve has {len(values)}. Read the network at more sites."
        )
    zeros = np.flatnonzero(values == 0)
    if zeros.size:
        raise InputError(
            f"`{asked}` needs ln D at every site; D is 0 at position {zeros[0]} of {len(values)}. "
            "Pass the part of the curve before it."
        )
    logs: Float64[np.ndarray, " l"] = np.log(values)
    return logs


def rounding_of(logs: Float64[np.ndarray, "*m l"]) -> float:
    """The size below which a difference between entries of ln D is rounding: D is known to ε, its log to ε|ln D|."""
    size = float(np.abs(logs).max(initial=1.0))
    return ROUNDINGS * float(np.finfo(np.float64).eps) * max(1.0, size)


def line_through(
    logs: Float64[np.ndarray, "*m l"],
) -> tuple[Float64[np.ndarray, "*m"], Float64[np.ndarray, "*m"]]:
    """Intercept and slope of the least-squares line through (l, ln D_l), for one curve or one a row."""
    depth = _centered_depth(logs.shape[-1])
    middle = logs.mean(axis=-1)
    slope = (logs - middle[..., None]) @ depth / (depth @ depth)
    return np.asarray(middle - slope * (logs.shape[-1] - 1) / 2), np.asarray(slope)


def correlation(logs: Float64[np.ndarray, "*m l"]) -> Float64[np.ndarray, "*m"]:
    """Pearson r of (l, ln D_l), for one curve or one a row; NaN where ln D varies by no more than rounding."""
    depth = _centered_depth(logs.shape[-1])
    deviations = logs - logs.mean(axis=-1, keepdims=True)
    flat = np.ptp(logs, axis=-1) <= rounding_of(logs)
    size = np.sqrt((deviations**2).sum(axis=-1) * (depth @ depth))
    r = deviations @ depth / np.where(flat, np.nan, size)
    return np.asarray(np.clip(r, -1.0, 1.0))  # rounding can step over ±1


def _centered_depth(sites: int) -> Float64[np.ndarray, " l"]:
    return np.arange(sites, dtype=np.float64) - (sites - 1) / 2


def _checked_entry(entry: Any, place: int, sites: int, asked: str) -> float:
    """One entry as a float ≥ 0; text, booleans and complex numbers are refused although `float` would take some."""
    complex_one = isinstance(entry, numbers.Complex) and not isinstance(entry, numbers.Real)
    if entry is None or complex_one or isinstance(entry, str | bytes | bool | np.bool_) or np.ndim(entry) > 0:
        _refuse(entry, place, sites, asked)
    try:
        value = float(entry)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        _refuse(entry, place, sites, asked)
    if not np.isfinite(value) or value < 0:
        _refuse(entry, place, sites, asked)
    return value


def _refuse(entry: Any, place: int, sites: int, asked: str) -> NoReturn:
    raise InputError(
        f"`{asked}` needs a finite D ≥ 0 at every site; position {place} of {sites} (counted from 0) holds "
        f"{_shown(entry)}. Measure that site again, or pass the part of the curve before it."
    )


def _shown(entry: Any) -> str:
    text = repr(entry) if isinstance(entry, str | bytes) or entry is None else " ".join(str(entry).split())
    return text if len(text) <= 40 else f"{text[:37]}…"


def loads(curve: CurveLike) -> tuple[float, ...]:
    """The load of each layer, ln D_{l−1} − ln D_l for l = 1 … L − 1; equal loads are the law."""
    logs = positive_logs(curve, asked="loads", least=1)
    return tuple(loads_of(logs).tolist())


def sensitivity(curve: CurveLike) -> float:
    """Σ_l D_{l−1}/D_l, the first-order change of R = D_{L−1}/D_0, relative to R, when every ratio moves by ε.

    He & Su 2023, Proposition 1: with ratios D_l/D_{l−1} + ε, R_ε = R + R·(Σ_l D_{l−1}/D_l)·ε + O(ε²).
    """
    with np.errstate(over="ignore"):  # a ratio beyond the greatest float is infinite, and so is the sum
        return float(np.exp(loads_of(positive_logs(curve, asked="sensitivity", least=2))).sum())


def imbalance(curve: CurveLike) -> float:
    """The sensitivity over its least value at the same R: Σ_l (D_{l−1}/D_l) / ((L−1) R^{−1/(L−1)}) ≥ 1.

    He & Su 2023, Proposition 1: the least value is reached when all ratios are equal, so 1 is the law. Infinite where
    a layer's ratio is beyond the greatest float.
    """
    return imbalance_of(positive_logs(curve, asked="imbalance", least=2))


def loads_of(logs: Float64[np.ndarray, " l"]) -> Float64[np.ndarray, " l-1"]:
    """The loads of a curve given as ln D."""
    return -np.diff(logs)


def imbalance_of(logs: Float64[np.ndarray, " l"]) -> float:
    """The imbalance of a curve given as ln D.

    With δ_l = load_l − mean load it is mean(exp δ_l). As Σ δ_l = 0 this is 1 + mean(expm1 δ_l − δ_l): no term is
    negative, so near the law nothing cancels and the bound 1 holds in floating point too.
    """
    each = loads_of(logs)
    deviations = each - each.mean()
    with np.errstate(over="ignore"):
        excess = np.expm1(deviations) - deviations
    return 1.0 + float(np.maximum(excess, 0.0).mean())
