"""Projected gradient descent with spectral step lengths, for many starts at once (Birgin, Martínez & Raydan 2000).

And the projection on the ball Σ|x_i|^q ≤ total, for any q > 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.peeled.problem import Number, checked_positive
from equisep.shapes import Float64, Int

MEMORY = 10  # values back that a new one must be below the largest of: spectral steps need room to rise now and then
SUFFICIENT = 1e-4  # decrease asked for, in units of ‖move‖²/step
ROUNDING = 1e-14  # of a value of order 1: below it, decreases are noise
SHRINK = 0.3
HALVINGS = 60
CHECKS = 5  # iterations from one test for stationarity to the next, since it costs a projection of its own
STEPS = (1e-10, 1e10)
LEAST_POWER = 0.1
INNER = 60  # Newton steps for ln x; some five are taken
OUTER = 200  # Newton or bisection steps for ln λ; some four are taken
QUADRATIC = 1e-9  # Newton's error squares: once a step is this short, the next one would be below rounding
TINY = torch.finfo(torch.float64).tiny

Objective = Callable[[Float64[Tensor, "b m p"]], tuple[Float64[Tensor, " b"], Float64[Tensor, "b m p"]]]
"""Value and gradient at each point."""
Projection = Callable[[Float64[Tensor, "b m p"]], Float64[Tensor, "b m p"]]


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Where each start came to, and how stationary that is."""

    x: Float64[Tensor, "b m p"]
    values: Float64[Tensor, " b"]
    stationarity: Float64[Tensor, " b"]
    iterations: Int[Tensor, " b"]


def descend(
    x: Float64[Tensor, "b m p"],
    *,
    objective: Objective,
    project: Projection,
    tolerance: float,
    max_iterations: int,
    reach: float = 1.0,
) -> Descent:
    """Minimize from each feasible start x until its stationarity is at most `tolerance`.

    x ← Π(x − t∇f(x)), t the Barzilai–Borwein length ⟨s, s⟩/⟨s, y⟩ or ⟨s, y⟩/⟨y, y⟩ in turn, shortened until f is below
    the largest of its last ten values. A start that is done costs nothing more.
    """
    rows = torch.arange(len(x), device=x.device)
    out = Descent(torch.empty_like(x), x.new_empty(len(x)), x.new_empty(len(x)), torch.empty_like(rows))
    values, gradient = objective(x)
    step = reach * norm(x) / norm(gradient).clamp(min=1e-300)
    recent = values.unsqueeze(0).expand(MEMORY, -1).clone()
    for iteration in range(max_iterations + 1):
        if iteration % CHECKS == 0 or iteration == max_iterations:
            stationarity = stationarity_of(x, gradient, project=project, reach=reach)
            over = ~(stationarity > tolerance) | (iteration == max_iterations)
            done = rows[over]
            out.x[done], out.values[done], out.stationarity[done] = x[over], values[over], stationarity[over]
            out.iterations[done] = iteration
            rows, x, values, gradient, step = (each[~over] for each in (rows, x, values, gradient, step))
            recent = recent[:, ~over]
            if len(rows) == 0:
                break
        new_x, new_values, new_gradient = _lower(x, gradient, step, recent.amax(dim=0), objective, project)
        moved, turned = new_x - x, new_gradient - gradient
        along = inner(moved, turned)
        longer, shorter = inner(moved, moved) / along, along / inner(turned, turned)
        spectral = torch.where(along > 0, longer if iteration % 2 == 0 else shorter, 2 * step)
        step = torch.where(torch.isfinite(spectral), spectral, step).clamp(*STEPS)
        x, values, gradient = new_x, new_values, new_gradient
        recent[iteration % MEMORY] = values
    return out


def stationarity_of(
    x: Float64[Tensor, "b m p"], gradient: Float64[Tensor, "b m p"], *, project: Projection, reach: float = 1.0
) -> Float64[Tensor, " b"]:
    """‖x − Π(x − t∇f)‖/‖x‖ with t = reach · ‖x‖/‖∇f‖: how far a step as long as x itself would move, 0 where stationary.

    It does not change when f, or x and its constraints, are scaled. Where f has no slope at all it is 0.
    """
    size = norm(gradient)
    t = torch.where(size > 0, reach * norm(x) / size.clamp(min=1e-300), torch.zeros_like(size))
    return norm(x - project(x - spread(t) * gradient)) / norm(x)


def _lower(
    x: Float64[Tensor, "b m p"],
    gradient: Float64[Tensor, "b m p"],
    step: Float64[Tensor, " b"],
    ceiling: Float64[Tensor, " b"],
    objective: Objective,
    project: Projection,
) -> tuple[Float64[Tensor, "b m p"], Float64[Tensor, " b"], Float64[Tensor, "b m p"]]:
    """Each point after the longest of step, 0.3 step, … that brings it well below its ceiling; itself where none does."""
    trial = project(x - spread(step) * gradient)
    values, slopes = objective(trial)
    for _ in range(HALVINGS):
        moved = trial - x
        high = ~(values <= ceiling - SUFFICIENT * inner(moved, moved) / step + ROUNDING)  # NaN counts as high
        if not bool(high.any()):
            break
        step = torch.where(high, SHRINK * step, step)
        trial[high] = project(x[high] - spread(step[high]) * gradient[high])
        values[high], slopes[high] = objective(trial[high])
    return trial, values, slopes


def inner(a: Float64[Tensor, "b m p"], b: Float64[Tensor, "b m p"]) -> Float64[Tensor, " b"]:
    """⟨a, b⟩ of each problem."""
    return (a * b).sum(dim=(-2, -1))


def norm(a: Float64[Tensor, "b m p"]) -> Float64[Tensor, " b"]:
    """‖a‖_F of each problem."""
    return inner(a, a).sqrt()


def spread(numbers: Float64[Tensor, " b"]) -> Float64[Tensor, "b 1 1"]:
    """One number per problem, to multiply matrices with."""
    return numbers[:, None, None]


def checked_power(q: Number) -> float:
    """The q of the norm that bounds the features: a finite number above 0, and large enough for |h|^q to be told from 1."""
    power = checked_positive(q, "`q`", "Pass the q of ‖h‖_q^q, 2 for the problem itself.")
    if power < LEAST_POWER:
        raise InputError(
            f"`q` must be at least {LEAST_POWER:g}: below, ‖h‖_q^q counts entries rather than measuring them; found {power:g}."
        )
    return power


def project_on_ball(points: Float64[Tensor, "b m p"], *, q: float, total: float) -> Float64[Tensor, "b m p"]:
    """The nearest point of {Σ|x_i|^q ≤ total} to each y, the m × p numbers of a point taken together.

    Outside the ball the nearest point has the signs of y and x_i + λ q x_i^{q−1} = |y_i| with the one λ > 0 that puts it
    on the edge. For q = 2 that is y scaled. Otherwise both equations are solved by Newton's method in logarithms, where
    the first is ln(e^u + e^{ln λq + (q−1)u}) = ln|y|, convex with slopes between 1 and q − 1, so that Newton cannot fail;
    and the second, ln Σ x^q against ln λ, falls.
    """
    flat = points.flatten(1)
    sums = flat.abs().pow(q).sum(dim=1)
    outside = sums > total
    if q == 2:
        return points * torch.where(outside, (total / sums).sqrt(), torch.ones_like(sums))[:, None, None]
    projected = flat.clone()
    if bool(outside.any()):
        projected[outside] = flat[outside].sign() * _on_edge(flat[outside].abs(), q=q, total=total)
    return projected.view_as(points)


def scale_to_edge(points: Float64[Tensor, "b m p"], *, q: float, total: float) -> Float64[Tensor, "b m p"]:
    """Each point times the number that makes Σ|x_i|^q = total."""
    sums = points.abs().pow(q).sum(dim=(-2, -1))
    return points * (total / sums).pow(1 / q)[:, None, None]


def _on_edge(y: Float64[Tensor, "b n"], *, q: float, total: float) -> Float64[Tensor, "b n"]:
    """The projections of points y ≥ 0 that lie outside the ball."""
    logs = y.clamp(min=TINY).log()
    scaled = y * (total / y.pow(q).sum(dim=1, keepdim=True)).pow(1 / q)
    # multiplied by x and summed, the first equation is Σ(y − x)x = λ q total; the scaled point makes a good guess of it
    guess = ((y - scaled) * scaled).sum(dim=1).clamp(min=TINY) / (q * total)
    t = guess.log()
    low, high = torch.full_like(t, -math.inf), torch.full_like(t, math.inf)
    u = torch.minimum(logs, (logs - (t + math.log(q)).unsqueeze(1)) / (q - 1))
    for _ in range(OUTER):
        u = _log_shrunk(u, logs, t + math.log(q), q=q)
        share = (u - logs).exp()  # x/y; what is left of 1 is the share of λ q x^{q−1}
        rates = -(1 - share) / (share + (q - 1) * (1 - share))  # du/dt
        excess = torch.logsumexp(q * u, dim=1) - math.log(total)
        slope = q * (torch.softmax(q * u, dim=1) * rates).sum(dim=1)
        low, high = torch.where(excess > 0, t, low), torch.where(excess > 0, high, t)
        new = t - excess / slope
        lost = ~((new >= low) & (new <= high))
        new = torch.where(lost, _between(low, high), new)
        u = u + rates * (new - t).unsqueeze(1)
        close = bool(((new - t).abs() <= QUADRATIC).all())
        t = new
        if close:
            break
    x = u.exp() * (y > 0)
    return x * (total / x.pow(q).sum(dim=1, keepdim=True)).pow(1 / q)


def _log_shrunk(
    u: Float64[Tensor, "b n"], logs: Float64[Tensor, "b n"], log_rate: Float64[Tensor, " b"], *, q: float
) -> Float64[Tensor, "b n"]:
    """The u = ln x with x + rate · x^{q−1} = e^logs, from a guess."""
    for _ in range(INNER):
        other = log_rate.unsqueeze(1) + (q - 1) * u
        both = torch.logaddexp(u, other)
        share = (u - both).exp()
        step = (both - logs) / (share + (q - 1) * (1 - share))
        u = u - step
        if bool((step.abs() <= QUADRATIC).all()):
            break
    return u


def _between(low: Float64[Tensor, " b"], high: Float64[Tensor, " b"]) -> Float64[Tensor, " b"]:
    """A point inside the bracket; where it is open on one side, a stride beyond the other."""
    middle = 0.5 * (low + high)
    middle = torch.where(torch.isinf(low), high - 4, middle)
    return torch.where(torch.isinf(high), low + 4, middle)
