"""Three groups or more: the reduced problem in factored form on a sphere, by a Riemannian trust-region Newton method.

With s_g = q_g²/(2(k_g−1)) and M = UWᵀ, U and W of G − 1 columns, the budget reads ½‖(q, U, W)‖² = τ: half the squared norms
of U and W is at least ‖M‖_*, with equality for balanced factors (Srebro, Rennie & Jaakkola 2004), and since f has no least
value the constraint is active at the optimum. So f is minimized on a sphere. The columns suffice for every M with M√k = 0,
hence every second-order point is the optimum (Burer & Monteiro 2005); whether we came to one, the duality gap decides.
It is log f that is minimized: where losses are e⁻³⁰ it is still well scaled, and at the optimum both have the same Newton
steps along the sphere. Newton's equations are solved by truncated conjugate gradients (Absil, Baker & Gallivan 2007).
All problems of a batch advance together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from equisep.peeled.solution import TINY
from equisep.peeled.solvers.batch import Batch, Softmax, gradient, multiplier_of, softmax
from equisep.shapes import Bool, Float64, Int

OUTER = 300
AIM = 1e-11  # relative gap at which to stop
ENOUGH = 1e-9  # relative gap at which to stop where steps bring nothing, which are then noise
IDLE = 2  # so many steps in a row without a smaller gap bring nothing; one may be a detour
NOISE = 1e-11  # a predicted fall of log f below this is not visible in log f: the step is then taken on trust
FLAT = 1e-11  # curvature, relative to the largest one met, which rounding explains
ASTRAY = 100.0  # a residual so many times its least: rounding along those rotations (see below) has taken over
SMALLEST = 1e-14  # trust radius, relative to the sphere, below which nothing moves any more
SPARE, RAISED = 8, 1e-6  # columns and, in budgets a group, singular values that a start has beyond those it was given
ENTRIES = 20_000  # numbers in the unknowns of problems that advance together: few enough for a cache

Start = tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"]]

_dot = partial(np.einsum, "bn,bn->b")  # inner products, problem by problem


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point x = (q, U, W) of each sphere with everything evaluated there.

    `slope` is ∇ log f, `pull` its part along the sphere, `lift` = −⟨∇ log f, x⟩/‖x‖², at the optimum μ/f.
    """

    x: Float64[np.ndarray, "b n"]
    rows: Softmax
    value: Float64[np.ndarray, " b"]
    small: Float64[np.ndarray, "b g"]
    big: Float64[np.ndarray, "b g g"]
    slope: Float64[np.ndarray, "b n"]
    pull: Float64[np.ndarray, "b n"]
    lift: Float64[np.ndarray, " b"]
    gap: Float64[np.ndarray, " b"]


def solve_factored(
    batch: Batch, *, start: Start | None = None, aim: float = AIM
) -> tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"], int]:
    """The s and M of each problem, and the largest number of Newton steps a problem took.

    `start` is an s and M of each problem from which to set out, the optimum of a similar problem say; what is not solved
    from there is solved from the simplex ETF. `aim` is the relative gap at which a problem is left.
    """
    groups = batch.k.shape[1]
    step = together(groups)
    s, M, most = np.empty_like(batch.k), np.empty((*batch.k.shape, groups)), 0
    for first in range(0, len(batch.k), step):
        part = slice(first, first + step)
        piece = batch.select(part)
        missed = np.ones(len(piece.k), dtype=bool)
        if start is not None:
            s[part], M[part], relative, steps = _solve(piece, _beside(piece, start[0][part], start[1][part]), aim)
            missed, most = ~(relative <= ENOUGH), max(most, steps)
        if missed.any():
            rows, again = first + np.flatnonzero(missed), piece.select(missed)
            s[rows], M[rows], _, steps = _solve(again, _etf(again), aim)
            most = max(most, steps)
    return s, M, most


def together(groups: int) -> int:
    """How many problems of so many groups advance together."""
    return max(1, ENTRIES // (2 * groups * groups))


def _solve(
    batch: Batch, best: Float64[np.ndarray, "b n"], aim: float
) -> tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"], Float64[np.ndarray, " b"], int]:
    """The s and M with the least relative gap on the way from the point `best`, that gap, and the Newton steps."""
    left = np.arange(len(batch.k))
    sphere = Sphere.of(batch)
    point = sphere.at(best)
    radius = np.full(len(left), 0.25)
    lowest, idle = np.full(len(left), np.inf), np.zeros(len(left), dtype=int)
    steps = 0
    for steps in range(OUTER + 1):
        relative = point.gap / point.value
        better = relative < lowest[left]
        best[left[better]] = point.x[better]
        lowest[left[better]] = relative[better]
        idle = np.where(better, 0, idle + 1)
        going = (relative > aim) & (radius > SMALLEST) & ((idle < IDLE) | (lowest[left] > ENOUGH))
        if steps == OUTER or not going.any():
            break
        if not going.all():
            left, radius, idle = left[going], radius[going], idle[going]
            sphere, point = sphere.select(going), _select(point, going)
        point, radius = _step(sphere, point, radius)
    s, M = Sphere.of(batch).reduced(best)
    return s, M, lowest, steps


def _etf(batch: Batch) -> Float64[np.ndarray, "b n"]:
    """The simplex ETF of the balanced problem: s the same for all groups and M = s(I − vvᵀ), v = √(k/K)."""
    b, g = batch.k.shape
    spending = np.where(batch.free, batch.k - 1, 0.0)
    s = batch.tau / (spending.sum(axis=1) + g - 1)
    v = np.sqrt(batch.k / batch.k.sum(axis=1, keepdims=True))
    across = np.linalg.svd(v[:, None, :])[2][:, 1:].transpose(0, 2, 1)  # g × (g − 1), orthonormal, all ⟂ v
    factor = (np.sqrt(s)[:, None, None] * across).reshape(b, -1)
    return np.concatenate([np.sqrt(2 * spending * s[:, None]), factor, factor], axis=1)


def _beside(batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"]) -> Float64[np.ndarray, "b n"]:
    """A point near s and M = UΣVᵀ, with all zeros raised a little: a zero of q, or of a column in U and W, is a saddle.

    Only as many columns as M has rank, and some to spare: where the optimum needs more, the gap will tell.
    """
    b, g = batch.k.shape
    U, sigma, Vt = np.linalg.svd(M)
    rank = int((sigma > 1e-9 * sigma[:, :1]).sum(axis=1).max())
    columns = min(g - 1, rank + SPARE)
    raised = RAISED * batch.tau[:, None] / g
    root = np.sqrt(sigma[:, :columns] + raised)[:, None, :]
    q = np.where(batch.free, np.sqrt(2 * (batch.k - 1) * (s + raised)), 0.0)
    factors = U[:, :, :columns] * root, Vt[:, :columns].transpose(0, 2, 1) * root
    return np.concatenate([q, *(factor.reshape(b, -1) for factor in factors)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Sphere:
    """The spheres ‖x‖² = 2τ of a batch, and f with its derivatives on them."""

    batch: Batch
    spending: Float64[np.ndarray, "b g"]  # k_g − 1; 1 where s_g is held, which then does not matter
    size: Float64[np.ndarray, " b"]

    @classmethod
    def of(cls, batch: Batch) -> Sphere:
        """The spheres of these problems."""
        return cls(batch, np.where(batch.free, batch.k - 1, 1.0), np.sqrt(2 * batch.tau))

    def select(self, rows: Bool[np.ndarray, " b"]) -> Sphere:
        """Some of the problems."""
        return Sphere(self.batch.select(rows), self.spending[rows], self.size[rows])

    def split(self, x: Float64[np.ndarray, "b n"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, U and W."""
        b, g = self.spending.shape
        middle = (g + x.shape[1]) // 2
        return x[:, :g], x[:, g:middle].reshape(b, g, -1), x[:, middle:].reshape(b, g, -1)

    def join(self, q: np.ndarray, U: np.ndarray, W: np.ndarray) -> Float64[np.ndarray, "b n"]:
        """One vector a problem; q is 0 where s_g is held."""
        b = len(q)
        return np.concatenate([np.where(self.batch.free, q, 0.0), U.reshape(b, -1), W.reshape(b, -1)], axis=1)

    def reduced(self, x: Float64[np.ndarray, "b n"]) -> tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"]]:
        """The s and M of each point."""
        q, U, W = self.split(x)
        return np.where(self.batch.free, q**2 / (2 * self.spending), 0.0), U @ W.transpose(0, 2, 1)

    def at(self, x: Float64[np.ndarray, "b n"]) -> Point:
        """The point of the sphere on the ray through x."""
        x = x * (self.size / np.sqrt(_dot(x, x)))[:, None]
        q, U, W = self.split(x)
        s, M = self.reduced(x)
        rows = softmax(self.batch, s, M)
        value = np.maximum(rows.value(self.batch), TINY)  # a loss that underflows is judged afterwards
        small, big = gradient(self.batch, rows.p)
        slope = self.join(small * q, big @ W, big.transpose(0, 2, 1) @ U) / value[:, None]
        lift = -_dot(slope, x) / self.size**2
        gap = self.batch.tau * multiplier_of(self.batch, small, big) - lift * value * self.batch.tau
        pull = slope + lift[:, None] * x
        return Point(x, rows, value, small, big, slope, pull, lift, np.maximum(gap, 0.0))

    def bend(self, point: Point, d: Float64[np.ndarray, "b n"]) -> Float64[np.ndarray, "b n"]:
        """The Riemannian Hessian of log f applied to a tangent vector d."""
        q, U, W = self.split(point.x)
        dq, dU, dW = self.split(d)
        ds = np.where(self.batch.free, q * dq / self.spending, 0.0)
        dM = dU @ W.transpose(0, 2, 1)
        dM += U @ dW.transpose(0, 2, 1)
        dsmall, dbig = gradient(self.batch, _change(self.batch, point.rows, ds, dM))
        bent = self.join(
            point.small * dq + dsmall * q,
            point.big @ dW + dbig @ W,
            point.big.transpose(0, 2, 1) @ dU + dbig.transpose(0, 2, 1) @ U,
        )
        bent /= point.value[:, None]
        bent += point.lift[:, None] * d - _dot(point.slope, d)[:, None] * point.slope
        return np.asarray(bent - (_dot(point.x, bent) / self.size**2)[:, None] * point.x)


def _change(batch: Batch, rows: Softmax, ds: np.ndarray, dM: np.ndarray) -> Float64[np.ndarray, "b g g"]:
    """The change of p under a change of s and M: dp_gh = p_gh (dz_gh − mean over all classes of dz)."""
    g = np.arange(ds.shape[1])
    dc = dM / batch.roots
    own = dc[:, g, g] + ds * (1 - 1 / batch.k)
    dc[:, g, g] = own - ds
    weighted = rows.p * dc
    inside = weighted[:, g, g]
    mean = rows.own * own + (weighted @ batch.k[:, :, None])[:, :, 0] - inside
    return np.asarray(weighted - rows.p * mean[:, :, None])


def _step(sphere: Sphere, point: Point, radius: Float64[np.ndarray, " b"]) -> tuple[Point, Float64[np.ndarray, " b"]]:
    """One trust-region step of every problem, judged by the fall of log f where it is visible."""
    step, bent = _conjugate_gradients(sphere, point, radius * sphere.size)
    trial = sphere.at(point.x + step)
    foreseen = -(_dot(point.pull, step) + 0.5 * _dot(step, bent))
    fallen = np.log(point.value) - np.log(trial.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(foreseen > NOISE, fallen / foreseen, np.where(fallen > -NOISE, 1.0, -1.0))
    ratio = np.where(np.isfinite(ratio), ratio, -1.0)
    reached = np.sqrt(_dot(step, step)) >= 0.99 * radius * sphere.size
    radius = np.where(ratio < 0.25, 0.25 * radius, np.where((ratio > 0.75) & reached, 2 * radius, radius))
    taken = ratio > 0.1
    return _choose(taken, trial, point), np.minimum(radius, 1.0)


def _conjugate_gradients(
    sphere: Sphere, point: Point, radius: Float64[np.ndarray, " b"]
) -> tuple[Float64[np.ndarray, "b n"], Float64[np.ndarray, "b n"]]:
    """The Newton step by conjugate gradients (Steihaug 1983), cut at the trust radius; also the Hessian applied to it."""
    step, bent = np.zeros_like(point.x), np.zeros_like(point.x)
    rest, square = point.pull, _dot(point.pull, point.pull)
    first = np.sqrt(square)
    target = first * np.clip(np.sqrt(first * sphere.size), 1e-4, 0.1)
    direction = -rest
    stiffest, least = point.lift, square
    going = square > 0
    for _ in range(min(point.x.shape[1], 1000)):
        turned = sphere.bend(point, direction)
        curvature = _dot(direction, turned)
        with np.errstate(divide="ignore", invalid="ignore"):
            length = square / curvature
            ahead = step + length[:, None] * direction
            # a rotation of U and W together changes nothing: along it the curvature is rounding, of either sign
            long = _dot(direction, direction)
            stiffest = np.fmax(stiffest, curvature / long)
            flat = np.abs(curvature) <= FLAT * stiffest * long
            cut = (curvature <= 0) | ~(np.sqrt(_dot(ahead, ahead)) < radius)
        going &= ~flat
        length = np.where(cut, _to_boundary(step, direction, radius), length)
        length = np.where(going, length, 0.0)
        step = step + length[:, None] * direction
        bent = bent + length[:, None] * turned
        rest = rest + length[:, None] * turned
        after = _dot(rest, rest)
        least = np.minimum(least, after)
        going &= ~cut & (np.sqrt(after) > target) & (after <= ASTRAY**2 * least)
        if not going.any():
            break
        direction = np.where(going, after / np.where(square > 0, square, 1.0), 0.0)[:, None] * direction - rest
        square = after
    return step, bent


def _to_boundary(step: np.ndarray, direction: np.ndarray, radius: np.ndarray) -> Float64[np.ndarray, " b"]:
    """The positive length at which step + length · direction reaches the radius."""
    a, b, c = _dot(direction, direction), _dot(step, direction), _dot(step, step) - radius**2
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    return np.asarray((root - b) / np.where(a > 0, a, 1.0))


def _choose(taken: Bool[np.ndarray, " b"], new: Point, old: Point) -> Point:
    """Row by row one point or the other."""

    def pick(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(taken.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    rows = Softmax(*(pick(getattr(new.rows, name), getattr(old.rows, name)) for name in ("loss", "own", "p")))
    return Point(
        pick(new.x, old.x),
        rows,
        *(
            pick(getattr(new, name), getattr(old, name))
            for name in ("value", "small", "big", "slope", "pull", "lift", "gap")
        ),
    )


def _select(point: Point, rows: Bool[np.ndarray, " b"] | Int[np.ndarray, " c"]) -> Point:
    kept = Softmax(point.rows.loss[rows], point.rows.own[rows], point.rows.p[rows])
    return Point(
        point.x[rows],
        kept,
        *(getattr(point, name)[rows] for name in ("value", "small", "big", "slope", "pull", "lift", "gap")),
    )
