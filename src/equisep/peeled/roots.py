"""Roots of many functions at once, each between two points where its signs differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equisep.errors import NumericalError
from equisep.shapes import Float64, Int

Function = Callable[[Float64[np.ndarray, " r"], Int[np.ndarray, " r"]], Float64[np.ndarray, " r"]]

EPS = float(np.finfo(np.float64).eps)
STEPS = 200  # halving alone takes about 60 from any bracket of ordinary numbers


def bracketed_roots(
    function: Function, low: Float64[np.ndarray, " b"], high: Float64[np.ndarray, " b"], *, within: float = 0.0
) -> Float64[np.ndarray, " b"]:
    """A root of each function between `low` and `high`, to rounding or `within` (Chandrupatla 1997).

    Inverse quadratic interpolation where that is safe, halving elsewhere: never slower than halving by more than a
    factor. `function(x, rows)` is called with the places of those functions alone that are not finished.
    """
    rows = np.arange(len(low))
    a, b = high.astype(np.float64), low.astype(np.float64)
    fa, fb = function(a, rows), function(b, rows)
    if not (np.sign(fa) * np.sign(fb) <= 0).all():
        raise NumericalError(
            f"A root was looked for between {low} and {high}, where the function is {fb} and {fa}: the signs do not "
            "differ. Use less extreme energies and weights."
        )
    roots = np.where(np.abs(fa) < np.abs(fb), a, b)
    c, fc = a.copy(), fa.copy()
    t = np.full(len(rows), 0.5)
    for _ in range(STEPS):
        nearest = np.where(np.abs(fa) < np.abs(fb), a, b)
        with np.errstate(divide="ignore"):
            least = (2 * EPS * np.abs(nearest) + within) / np.abs(b - a)
        roots[rows] = nearest
        going = (least < 1.0) & (fa != 0) & (fb != 0)
        if not going.any():
            break
        rows, a, b, c, fa, fb, fc, t, least = (x[going] for x in (rows, a, b, c, fa, fb, fc, t, least))
        x = a + np.clip(t, 0.5 * least, 1 - 0.5 * least) * (b - a)
        fx = function(x, rows)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        t = _interpolated(a, b, c, fa, fb, fc)
    return roots


def _interpolated(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, fc: np.ndarray
) -> Float64[np.ndarray, " r"]:
    """Where between a and b to look next, as a share of the way: by inverse quadratic interpolation or in the middle."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(safe & np.isfinite(quadratic), quadratic, 0.5)
