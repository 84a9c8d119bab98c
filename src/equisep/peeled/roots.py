"""Roots of many functions at once, each between two points where its signs differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equisep.errors import NumericalError
from equisep.shapes import Float64, Int

Function = Callable[[Float64[np.ndarray, " r"], Int[np.ndarray, " r"]], Float64[np.ndarray, " r"]]

EPS = float(np.finfo(np.float64).eps)
STEEP = 10.0  # slopes of secants beyond it, or flatter than its inverse, are noise or far from the root
NEAR = 1e-6  # values that rounding in the function may explain
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


def falling_roots(
    function: Function,
    start: Float64[np.ndarray, " b"],
    *,
    high: Float64[np.ndarray, " b"],
    slope: Float64[np.ndarray, " b"],
    within: float,
) -> tuple[Float64[np.ndarray, " b"], Float64[np.ndarray, " b"]]:
    """The root of each function that is above 0 far down and below 0 at `high`; and the slopes there.

    Secant steps from `start`, the first by `slope`: few evaluations, where each is dear and a good start is known. A step
    that leaves what holds the root goes to the middle of it, as does one after two that halved nothing, or twice as far
    down while no lower end is known. Rounding may keep a function from coming to 0: near the root, one that no longer
    halves is left there.
    """
    roots, slopes, rows = start.astype(np.float64), slope.astype(np.float64), np.arange(len(start))
    low, high = np.full(len(start), -np.inf), high.astype(np.float64)
    before, value_before = np.full(len(start), np.nan), np.full(len(start), np.inf)
    slow = np.zeros(len(start), dtype=int)
    for _ in range(STEPS):
        x = roots[rows]
        value = function(x, rows)
        if not np.isfinite(value).all():
            break
        low[rows], high[rows] = np.where(value >= 0, x, low[rows]), np.where(value <= 0, x, high[rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (value - value_before[rows]) / (x - before[rows])
        slopes[rows] = np.where((secant > -STEEP) & (secant < -1 / STEEP), secant, slopes[rows])
        move = -value / slopes[rows]
        ahead = x + move
        lasting = np.abs(value) > 0.5 * np.abs(value_before[rows])
        slow[rows] = np.where(lasting, slow[rows] + 1, 0)
        strayed = (ahead < low[rows]) | (ahead > high[rows]) | (slow[rows] >= 2)
        middle = np.where(np.isinf(low[rows]), 3 * x - 2 * before[rows], 0.5 * (low[rows] + high[rows]))
        ahead = np.where(strayed, middle, ahead)
        stalled = (np.abs(value) < NEAR) & lasting
        over = (np.abs(move) <= within) | (high[rows] - low[rows] <= within) | stalled
        before[rows], value_before[rows], roots[rows] = x, value, np.where(strayed & over, x, ahead)
        rows = rows[~over]
        if not rows.size:
            return roots, slopes
    raise NumericalError(
        f"A root below {high[rows[0]]:.6g} was looked for, down to {roots[rows[0]]:.6g}, and not found. "
        "Use less extreme energies and weights."
    )


def _interpolated(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, fc: np.ndarray
) -> Float64[np.ndarray, " r"]:
    """Where between a and b to look next, as a share of the way: by inverse quadratic interpolation or in the middle."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(safe & np.isfinite(quadratic), quadratic, 0.5)
