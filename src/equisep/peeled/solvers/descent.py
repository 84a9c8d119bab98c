"""Projected gradient descent with spectral step lengths, for many starts at once (Birgin, Martínez & Raydan 2000)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Float64, Int

MEMORY = 10  # values back that a new one must be below the largest of: spectral steps need room to rise now and then
SUFFICIENT = 1e-4  # decrease asked for, in units of ‖move‖²/step
ROUNDING = 1e-14  # of a value of order 1: below it, decreases are noise
SHRINK = 0.3
HALVINGS = 60
CHECKS = 5  # iterations from one test for stationarity to the next, since it costs a projection of its own
STEPS = (1e-10, 1e10)

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
    places = torch.arange(len(x), device=x.device)
    out = Descent(torch.empty_like(x), x.new_empty(len(x)), x.new_empty(len(x)), torch.empty_like(places))
    values, gradient = objective(x)
    step = reach * norm(x) / norm(gradient).clamp(min=1e-300)
    recent = values.unsqueeze(0).expand(MEMORY, -1).clone()
    for iteration in range(max_iterations + 1):
        if iteration % CHECKS == 0 or iteration == max_iterations:
            stationarity = stationarity_of(x, gradient, project=project, reach=reach)
            over = ~(stationarity > tolerance) | (iteration == max_iterations)
            done = places[over]
            out.x[done], out.values[done], out.stationarity[done] = x[over], values[over], stationarity[over]
            out.iterations[done] = iteration
            places, x, values, gradient, step = (each[~over] for each in (places, x, values, gradient, step))
            recent = recent[:, ~over]
            if len(places) == 0:
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
