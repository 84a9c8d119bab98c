"""Two groups: the imbalance ratio from which the minority collapses, and the one from which it vanishes.

At the threshold of collapse s_B = 0 and μ = ω_B (1/R* where the majority has weight 1), so that on a minority sample all
minority classes share 1 − q_B with q_B = sin θ √(k_A/K); here (a_A, a_B) = t (cos θ, sin θ) is the direction of M, as in
`two_groups`. One number is left to find. Given θ,

    a_B = k_B √(k_A/K) log(p_BB/p_BA),   a_A = a_B/tan θ,   t = a_B/sin θ,   s_A = (τ − t)/(k_A − 1),

and |γ_A| = μ asks for log(p_AA/p_AB) = log((√(k_B K)/cos θ − k_B)/k_A) with log(p_AA/p_AB) = (a_A √(K/k_B) − s_A)/k_A. The left
side falls in θ and the right side rises, from opposite signs of their difference where t = τ to where t = 0: there is
exactly one root, so every minority of two classes or more has a finite threshold, whatever the energies. With one
majority class s_A does not exist, and t = τ is the equation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equisep.display import brief
from equisep.errors import InputError, NumericalError
from equisep.peeled.problem import FEATURE_ENERGY, WEIGHT_ENERGY, Number, Whole, checked_count, checked_energy
from equisep.shapes import Float64, Int

LARGEST = math.log(float(np.finfo(np.float64).max))
Function = Callable[[Float64[np.ndarray, " r"], Int[np.ndarray, " r"]], Float64[np.ndarray, " r"]]

EPS = float(np.finfo(np.float64).eps)
STEEP = 10.0  # by default, slopes of secants beyond it, or flatter than its inverse, are noise or far from the root
NEAR = 1e-6  # values that rounding in the function may explain
STEPS = 200  # halving alone takes about 60 from any bracket of ordinary numbers


@brief
@dataclass(frozen=True, slots=True)
class Thresholds:
    """The imbalance ratios at which two groups change their geometry, energies given.

    collapse      R*: from here on the minority classifiers coincide; `inf` where it is beyond the greatest float, `None` for
                  a minority of one class, which has nothing to coincide with
    log_collapse  log R*, which exists there too
    vanishing     R₀ ≥ R*: from here on the minority vectors are zero; `None` where that never happens
    multiplier    μ = 1/R* at the threshold of collapse, the majority having weight 1
    residual      what is left of the equation for R*, which is in units of logits
    """

    majority: int
    minority: int
    feature_energy: float
    weight_energy: float
    collapse: float | None
    log_collapse: float | None
    vanishing: float | None
    multiplier: float | None
    residual: float | None


def threshold(
    majority: Whole, minority: Whole, feature_energy: Number = FEATURE_ENERGY, weight_energy: Number = WEIGHT_ENERGY
) -> float:
    """R*, the imbalance ratio from which on minority collapse is the optimum: the minority classifiers coincide.

    It is finite for every energy, above 1, and grows with E_W·E_H, about as e^{c√(E_W E_H)}; `inf` is returned where it
    is beyond the greatest float. A minority of one class cannot collapse, which is an `InputError`.

    >>> from equisep import peeled
    >>> f"{peeled.threshold(majority=5, minority=5):.4f}"
    '12.1924'
    """
    found = thresholds_of(majority, minority, feature_energy, weight_energy)
    if found.collapse is None:
        raise InputError(
            "The threshold of minority collapse needs at least 2 minority classes; found 1, which has no other to "
            "coincide with. `thresholds_of` gives the ratio at which it vanishes."
        )
    return found.collapse


def thresholds_of(
    majority: Whole, minority: Whole, feature_energy: Number = FEATURE_ENERGY, weight_energy: Number = WEIGHT_ENERGY
) -> Thresholds:
    """R* and R₀ of `majority` classes against `minority` classes, with the residual of the root.

    >>> from equisep import peeled
    >>> limits = peeled.thresholds_of(5, 5, feature_energy=1, weight_energy=1)
    >>> f"{limits.collapse:.4f} {limits.vanishing:.4f}"
    '1.7354 2.7489'
    """
    advice = "Pass the number of classes, 5 say."
    k = checked_count(majority, "The number of majority classes", advice)
    m = checked_count(minority, "The number of minority classes", advice)
    energies = checked_energy(feature_energy, "feature_energy"), checked_energy(weight_energy, "weight_energy")
    root_energy = math.sqrt(energies[0]) * math.sqrt(energies[1])
    gone = vanishing_ratio(k, m, root_energy)
    if m == 1:
        return Thresholds(k, m, *energies, None, None, gone, None, None)
    logs, residuals = log_collapse_ratios(*(np.array([float(value)]) for value in (k, m, root_energy)))
    log_ratio = float(logs[0])
    ratio = math.exp(log_ratio) if log_ratio < LARGEST else math.inf
    return Thresholds(k, m, *energies, ratio, log_ratio, gone, math.exp(-log_ratio), float(residuals[0]))


def log_collapse_ratios(
    majority: Float64[np.ndarray, " b"], minority: Float64[np.ndarray, " b"], root_energy: Float64[np.ndarray, " b"]
) -> tuple[Float64[np.ndarray, " b"], Float64[np.ndarray, " b"]]:
    """Log R* for arrays of k_A, k_B ≥ 2 and √(E_W E_H), and the residuals of the equation in θ."""
    curve = _Curve(majority, minority, (majority + minority) * root_energy)
    top = np.arcsin(np.sqrt(majority / (majority + minority)))  # where t = 0
    rows = np.arange(len(top))
    low = 0.5 * top
    while (short := curve.reach(low, rows) <= curve.tau).any():  # t grows beyond every bound as θ → 0
        low = np.where(short, 0.5 * low, low)
    full = bracketed_roots(lambda theta, r: curve.reach(theta, r) / curve.tau[r] - 1, low, top)  # where t = τ
    single = majority == 1
    theta = full
    if not single.all():
        several = np.flatnonzero(~single)
        inner = bracketed_roots(lambda theta, r: curve.excess(theta, several[r]), full[several], top[several])
        theta = full.copy()
        theta[several] = inner
    residual = np.where(single, curve.reach(theta, rows) - curve.tau, curve.excess(theta, rows))
    return -curve.log_weight(theta, rows), residual


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """Everything as a function of θ where s_B = 0 and μ = ω_B."""

    k: Float64[np.ndarray, " b"]
    m: Float64[np.ndarray, " b"]
    tau: Float64[np.ndarray, " b"]

    def _second(self, theta: np.ndarray, r: np.ndarray) -> Float64[np.ndarray, " r"]:
        """a_B, from q_B = sin θ √(k_A/K): p_BB = (1 − q_B)/k_B and p_BA = q_B/k_A."""
        k, m = self.k[r], self.m[r]
        q = np.sin(theta) * np.sqrt(k / (k + m))
        return np.asarray(np.maximum(m * np.sqrt(k / (k + m)) * np.log((1 - q) * k / (m * q)), 0.0))

    def reach(self, theta: np.ndarray, r: np.ndarray) -> Float64[np.ndarray, " r"]:
        """The length t = ‖M‖_*."""
        return np.asarray(self._second(theta, r) / np.sin(theta))

    def _first(self, theta: np.ndarray, r: np.ndarray) -> tuple[Float64[np.ndarray, " r"], Float64[np.ndarray, " r"]]:
        """s_A and log(p_AA/p_AB) (for one majority class: its own logit over one of the minority)."""
        k, m = self.k[r], self.m[r]
        t = self.reach(theta, r)
        s = np.where(k > 1, np.maximum(self.tau[r] - t, 0.0) / np.maximum(k - 1, 1.0), 0.0)
        return s, np.asarray((t * np.cos(theta) * np.sqrt((k + m) / m) - s) / k)

    def excess(self, theta: np.ndarray, r: np.ndarray) -> Float64[np.ndarray, " r"]:
        """The two sides of |γ_A| = μ as logits, left minus right."""
        k, m = self.k[r], self.m[r]
        right = np.log((np.sqrt(m * (k + m)) / np.cos(theta) - m) / k)
        return np.asarray(self._first(theta, r)[1] - right)

    def log_weight(self, theta: np.ndarray, r: np.ndarray) -> Float64[np.ndarray, " r"]:
        """Log ω_B = log μ = log p_AB + log(√(k_B K)/cos θ)."""
        k, m = self.k[r], self.m[r]
        s, ahead = self._first(theta, r)
        others = np.logaddexp(np.log(m), np.where(k > 1, np.log(np.maximum(k - 1, 1.0)) + ahead, -np.inf))
        return np.asarray(0.5 * np.log(m * (k + m)) - np.log(np.cos(theta)) - np.logaddexp(others, ahead + s))


def vanishing_ratio(majority: int, minority: int, root_energy: float) -> float | None:
    """R₀ = √(k_A/K)/√(μ₀² − K k_B p_B²), from which on the minority vectors are zero; `None` where that never happens.

    With M = 0 and s_A = τ/(k_A−1), p is the softmax of {s_A(1−1/k_A), −s_A/k_A, 0} with multiplicities {1, k_A−1, k_B} and
    μ₀ = k_A p_A + k_B p_B. The root is real, as p_A/p_B = e^{−s_A/k_A}, iff √(E_W E_H) < (k_A(k_A−1)/K) log(1 + √(K/k_B)).
    """
    k, m, K = majority, minority, majority + minority
    if k == 1:
        return None
    s = K * root_energy / (k - 1)
    inside = math.exp(-s / k)
    square = (k * inside + m) ** 2 - K * m  # (μ₀² − K k_B p_B²)/p_B²
    if square <= 0:
        return None
    log_p = -float(np.logaddexp(s * (1 - 1 / k), math.log((k - 1) * inside + m)))
    log_ratio = 0.5 * math.log(k / K) - log_p - 0.5 * math.log(square)
    return math.exp(log_ratio) if log_ratio < LARGEST else math.inf


def bracketed_roots(
    function: Function, low: Float64[np.ndarray, " b"], high: Float64[np.ndarray, " b"], *, within: float = 0.0
) -> Float64[np.ndarray, " b"]:
    """A root of each function between `low` and `high`, to rounding or `within` (Chandrupatla 1997).

    Inverse quadratic interpolation where that is safe, halving elsewhere: never slower than halving by more than a
    factor. `function(x, rows)` is called with the rows of those functions alone that are not finished.
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
    steep: float = STEEP,
) -> tuple[Float64[np.ndarray, " b"], Float64[np.ndarray, " b"]]:
    """The root of each function that is above 0 far down and below 0 at `high`; and the slopes there.

    Secant steps from `start`, the first by `slope`: few evaluations, where each is dear and a good start is known. A slope
    beyond `steep` is not believed. A step that leaves what holds the root goes to the middle of it, as does one after two
    that halved nothing, or twice as far down while no lower end is known. Rounding may keep a function from coming to 0:
    near the root, one that no longer halves is left there.
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
        slopes[rows] = np.where((secant > -steep) & (secant < -1 / STEEP), secant, slopes[rows])
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
