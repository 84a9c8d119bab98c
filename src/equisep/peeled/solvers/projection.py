"""The nearest point of the ball Σ|x_i|^q ≤ total, for any q > 1 and many points at once."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.peeled.checks import Number, checked_positive
from equisep.shapes import Float64

INNER = 60  # Newton steps for ln x; some five are taken
OUTER = 200  # Newton or bisection steps for ln λ; some four are taken
QUADRATIC = 1e-9  # Newton's error squares: once a step is this short, the next one would be below rounding
TINY = torch.finfo(torch.float64).tiny


def checked_power(q: Number) -> float:
    """The q of the norm that bounds the features: a finite number above 1."""
    power = checked_positive(q, "`q`", "Pass the q of ‖h‖_q^q, 2 for the problem itself.")
    if power <= 1:
        raise InputError(
            f"`q` must be above 1, where the ball of the q-norm is smooth; found {power:g}. Pass 1.5, say."
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
