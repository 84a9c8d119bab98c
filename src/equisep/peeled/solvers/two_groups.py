"""Two groups: the optimality conditions as two equations in two unknowns, solved to rounding for many problems at once.

The left side of a_A sin θ = a_B cos θ (see `conditions`) rises in θ for given μ, and what is spent of the budget then falls in
μ: both roots are bracketed, and Newton steps in log tan θ and log μ are taken where they stay inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equisep.peeled.solvers.batch import Batch
from equisep.peeled.solvers.conditions import Point, Side, evaluate
from equisep.shapes import Bool, Float64

# log ω of a group that is absent from the loss, and log tan θ with it: their exponentials are 0, their sums finite
NO_WEIGHT, NO_ANGLE = -1e6, -3e6
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 64 * EPS  # in log tan θ, log μ and, relatively, in both equations
OUTER, INNER = 200, 200  # bisection alone would reach rounding within these
FAINTEST = -690.0  # log (μ/ω) near the end of double precision; a root below it is not looked for
STRIDE, LEAP = 2.0, 100.0  # how far to look for an unknown end of a bracket, and how far Newton may jump


def solve_two(batch: Batch) -> tuple[Float64[np.ndarray, "b 2"], Float64[np.ndarray, "b 2 2"], int]:
    """The s and M of each problem of two groups, and how many times the conditions were evaluated."""
    s, a = np.zeros_like(batch.k), np.zeros_like(batch.k)
    swap = batch.omega[:, 1] > batch.omega[:, 0]
    order = np.where(swap[:, None], [1, 0], [0, 1])  # the heavier group first
    k, omega, free = (np.take_along_axis(x, order, axis=1) for x in (batch.k, batch.omega, batch.free))
    sorted_batch = Batch(k, omega, batch.tau, free)
    gone, alone, log_limit = vanished(sorted_batch)
    s[gone, 0] = alone[gone]
    evaluations = 0
    if not gone.all():
        rest = sorted_batch.select(~gone)
        s[~gone], a[~gone], evaluations = _meet(rest, log_limit[~gone])
    s, a = (np.take_along_axis(x, order, axis=1) for x in (s, a))
    root = np.sqrt(batch.k / batch.k.sum(axis=1, keepdims=True))
    across = np.stack([root[:, 1], -root[:, 0]], axis=1)
    signed = a * np.array([1.0, -1.0])
    return s, signed[:, :, None] * across[:, None, :], evaluations


def vanished(
    batch: Batch,
) -> tuple[Bool[np.ndarray, " b"], Float64[np.ndarray, " b"], Float64[np.ndarray, " b"]]:
    """Whether the second, lighter group has vanished; s_A with the whole budget spent on it; log of |γ_A| there.

    With M = 0 and s_A = τ/(k_A−1), p_BA = 1/K and the conditions are ‖Γ‖² = K(ω_A² k_B p_AB² + ω_B² k_A/K²) ≤ γ_A². They
    imply ω_B ≤ |γ_A|, as p_AB > p_AA: the condition on s_B needs no test of its own.
    """
    (k, m), K = batch.k.T, batch.k.sum(axis=1)
    free = batch.free[:, 0]
    alone = np.where(free, batch.tau / np.where(free, k - 1, 1.0), 0.0)
    # logits s(1 − 1/k) own, −s/k within the group, 0 on the other one; relative to the last, so that nothing overflows
    log_rest = np.logaddexp(np.log(np.maximum(k - 1, 1.0)) - alone / k, np.log(m))
    log_p = -np.logaddexp(alone * (1 - 1 / k), log_rest)
    inside = np.exp(-alone / k)
    limit = k * inside + m
    with np.errstate(over="ignore", divide="ignore"):
        light = np.exp(2 * (np.log(batch.omega[:, 1]) - np.log(batch.omega[:, 0]) - log_p)) * k / K
    return free & (K * m + light <= limit**2), alone, np.log(batch.omega[:, 0]) + log_p + np.log(limit)


def _meet(
    batch: Batch, log_limit: Float64[np.ndarray, " b"]
) -> tuple[Float64[np.ndarray, "b 2"], Float64[np.ndarray, "b 2"], int]:
    """The outer root: log μ at which the budget is spent, counted from log ω of one of the groups.

    1 − μ/ω_g decides a small s_g, so log μ is counted from log ω_B where s_B is not 0, which the excess at μ = ω_B tells,
    and from log ω_A elsewhere. It also parts the two smooth pieces of the budget from each other.
    """
    lighter, absent = batch.free[:, 1] & (batch.omega[:, 1] > 0), batch.omega[:, 1] == 0
    log_omega = np.log(np.where(batch.omega > 0, batch.omega, 1.0)) + np.where(batch.omega > 0, 0.0, NO_WEIGHT)
    log_ratio = log_omega[:, 0] - log_omega[:, 1]
    x = np.where(absent, NO_ANGLE, -0.5 * log_ratio)
    at_second = _State.of(batch, np.stack([log_ratio, np.zeros_like(x)], axis=1), log_limit - log_omega[:, 1])
    seen = at_second.look(x, np.where(lighter, 0.0, log_ratio - 1e-3), fixed=absent)
    apart = lighter & (seen.excess < 0)
    origin = np.where(apart, log_omega[:, 1], log_omega[:, 0])
    relative = np.where(apart[:, None], at_second.log_omega, np.stack([np.zeros_like(x), -log_ratio], axis=1))
    state = _State.of(batch, relative, log_limit - origin)
    high = np.zeros_like(x)  # at μ ≥ ω_A nothing is spent
    low = np.where(lighter & ~apart, -log_ratio, -np.inf)
    floor, last = relative[:, 0] + FAINTEST, np.full_like(x, np.inf)
    y = _first_guess(batch, relative, np.maximum(low, floor), np.where(apart, -seen.excess, np.nan))
    x, evaluations = seen.x, seen.evaluations
    for _ in range(OUTER):
        seen = state.look(x, y, fixed=absent)
        evaluations += seen.evaluations
        low, high = np.where(seen.excess > 0, y, low), np.where(seen.excess < 0, y, high)
        done = (np.abs(seen.excess) <= ROUNDING * batch.tau) | (np.abs(seen.step) <= 2 * EPS * np.abs(y))
        done |= (np.abs(high - low) <= ROUNDING * np.abs(y)) | (y <= floor)
        if done.all():
            break
        moved = np.where(done, y, np.maximum(_inside(y, seen.step, last, low, high), floor))
        x = seen.x + np.where(absent, 0.0, np.clip(seen.slope * (moved - y), -1.0, 1.0))
        y, last = moved, np.abs(moved - y)
    return state.best.s, np.where(batch.omega == 0, 0.0, state.best.a), evaluations


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Two sides with log ω counted from an origin, what both together have best come to, and log |γ_A| for M = 0."""

    sides: tuple[Side, ...]
    batch: Batch
    log_omega: Float64[np.ndarray, "b 2"]
    log_limit: Float64[np.ndarray, " b"]
    best: _Best

    @classmethod
    def of(cls, batch: Batch, log_omega: Float64[np.ndarray, "b 2"], log_limit: Float64[np.ndarray, " b"]) -> _State:
        sides = tuple(Side(batch.k[:, g], batch.k[:, 1 - g], log_omega[:, g], batch.free[:, g]) for g in (0, 1))
        return cls(sides, batch, log_omega, log_limit, _Best.of(batch))

    def look(
        self, x: Float64[np.ndarray, " b"], y: Float64[np.ndarray, " b"], *, fixed: Bool[np.ndarray, " b"]
    ) -> _Look:
        """What there is to see at log μ = y, looking for log tan θ from x on."""
        x, point, evaluations = _direction(self.sides, x, y, fixed=fixed)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = -point.turn_y / point.turn_x
            excess = point.spent - self.batch.tau
            step = -excess / (point.spent_y + point.spent_x * slope)
        # M = 0 at this μ: then only s_A spends, and it spends more than τ where μ is below its |γ_A| at τ
        empty = point.reach <= 0
        self.best.keep(point, np.where(empty, np.inf, np.abs(excess)))
        alone = np.where(self.batch.free[:, 0], self.log_limit - y, -1.0)
        slope = np.where(np.isfinite(slope), slope, 0.0)
        return _Look(x, np.where(empty, alone, excess), np.where(empty, np.nan, step), slope, evaluations)


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """At one log μ: log tan θ, what is spent too much, the Newton step in log μ, and how log tan θ follows log μ."""

    x: Float64[np.ndarray, " b"]
    excess: Float64[np.ndarray, " b"]
    step: Float64[np.ndarray, " b"]
    slope: Float64[np.ndarray, " b"]
    evaluations: int


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """The s and a that came nearest to the budget: far from 1, log μ moves in steps that the budget can see."""

    s: Float64[np.ndarray, "b 2"]
    a: Float64[np.ndarray, "b 2"]
    miss: Float64[np.ndarray, " b"]

    @classmethod
    def of(cls, batch: Batch) -> _Best:
        return cls(np.zeros_like(batch.k), np.ones_like(batch.k), np.full(len(batch.k), np.inf))

    def keep(self, point: Point, miss: Float64[np.ndarray, " b"]) -> None:
        """Take over those rows of a point that miss the budget by less."""
        nearer = miss < self.miss
        self.miss[nearer] = miss[nearer]
        for column, row in enumerate((point.first, point.second)):
            self.s[nearer, column] = row.s[nearer]
            self.a[nearer, column] = np.maximum(row.a[nearer], 0.0)


def _first_guess(
    batch: Batch,
    log_omega: Float64[np.ndarray, "b 2"],
    low: Float64[np.ndarray, " b"],
    unspent: Float64[np.ndarray, " b"],
) -> Float64[np.ndarray, " b"]:
    """A log μ between `low` and 0: where μ < ω_B the share that is unspent at ω_B tells how far below it."""
    K = batch.k.sum(axis=1)
    balanced = np.log(K) - np.logaddexp(np.log(K - 1), batch.tau / (K - 1))  # log μ/ω where all weights are equal
    middle = np.where(batch.omega[:, 1] > 0, log_omega.mean(axis=1), log_omega[:, 0])
    guess = np.where(np.isnan(unspent), middle + balanced, balanced * unspent / batch.tau)
    return np.where((guess > low) & (guess < 0), guess, np.where(low > FAINTEST, 0.5 * low, -1e-3))


def _direction(
    sides: tuple[Side, ...],
    x: Float64[np.ndarray, " b"],
    y: Float64[np.ndarray, " b"],
    *,
    fixed: Bool[np.ndarray, " b"],
) -> tuple[Float64[np.ndarray, " b"], Point, int]:
    """The inner root: log tan θ at which a has the direction of −Γ, for given μ."""
    low, high, last = np.full_like(x, -np.inf), np.full_like(x, np.inf), np.full_like(x, np.inf)
    count = 0
    while True:
        point = evaluate(sides, x, y)
        count += 1
        low, high = np.where(point.turn < 0, x, low), np.where(point.turn > 0, x, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = -point.turn / point.turn_x
        done = (np.abs(point.turn) <= ROUNDING * point.size) | (np.abs(step) <= ROUNDING)
        done |= fixed | (np.abs(high - low) <= ROUNDING * np.maximum(np.abs(x), 1.0))
        if done.all() or count == INNER:
            return x, point, count
        moved = np.where(done, x, _inside(x, step, last, low, high))
        x, last = moved, np.abs(moved - x)


def _inside(
    at: Float64[np.ndarray, " b"],
    step: Float64[np.ndarray, " b"],
    last: Float64[np.ndarray, " b"],
    low: Float64[np.ndarray, " b"],
    high: Float64[np.ndarray, " b"],
) -> Float64[np.ndarray, " b"]:
    """Newton where its step stays inside the bracket and is at most half the last one, otherwise the middle.

    Where one end of the bracket is not known yet, Newton may leap towards it, and the middle is a stride beyond the
    other end.
    """
    known = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        there = at + np.clip(step, -LEAP, LEAP)
        good = (there > low) & (there < high) & (~known | (np.abs(step) <= 0.5 * last))
        middle = np.where(known, 0.5 * (low + high), np.where(np.isinf(low), high - STRIDE, low + STRIDE))
    return np.where(good, there, middle)
