"""The general K×K program, min Σ ω_k CE(z_k, k) over ‖Z‖_* ≤ τ, for many problems at once, with no use of symmetry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.peeled.certificate import dense_gap, verdict
from equisep.peeled.problem import Problem
from equisep.peeled.solution import DENSE_LIMIT, Solution
from equisep.peeled.solvers.logits import Losses, curvature_along, gaps_of, losses_of
from equisep.peeled.solvers.trust_region import inner, newton_step, norm, spread
from equisep.shapes import Bool, Float64, Int

TOLERANCE = 1e-9  # of the value: what the duality gap of a solved problem is at most
ITERATIONS = 300
ENTRIES = 2**22  # logits held at once; a problem holds some 25 times its K² numbers
NUDGE = 0.1  # size of the noise in the start, without which a start at the simplex ETF could stay at a saddle
ACCEPTED = 0.05  # share of the promised decrease that a step must bring
ROUNDING = 1e-13  # of ln f: below it decreases, promised or brought, are noise
SMALLEST = 1e-12  # trust radius on the unit sphere below which no step changes anything
PATIENCE = 20  # steps in a row that promise less than rounding before a problem is given up; two or three are usual


@dataclass(frozen=True, slots=True, eq=False)
class Minimizers:
    """The logits found for a batch of problems, the Newton steps each took, and whether its gap came below the goal."""

    Z: Float64[Tensor, "b k k"]
    steps: Int[Tensor, " b"]
    converged: Bool[Tensor, " b"]


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A batch of factors x = (H, W) on the unit sphere, Z = 2τ H Wᵀ, and the gradient of ln f by x there.

    `slope` is the part of that gradient along the sphere, `radial` = ⟨x, ∇ ln f⟩ = 2⟨∇f, Z⟩/f the part across it.
    """

    weights: Float64[Tensor, "b k"]
    budgets: Float64[Tensor, " b"]
    x: Float64[Tensor, "b m k"]
    Z: Float64[Tensor, "b k k"]
    losses: Losses
    slope: Float64[Tensor, "b m k"]
    radial: Float64[Tensor, " b"]


def solve_general(
    problems: Sequence[Problem],
    *,
    tolerance: float = TOLERANCE,
    max_iterations: int = ITERATIONS,
    device: str | torch.device = "cpu",
) -> list[Solution]:
    """Solve every problem by its K×K program; problems with one number of classes are solved together.

    A `Solution` is `solved` where its duality gap is at most `tolerance` of its value, otherwise `stopped`.
    """
    solutions: dict[int, Solution] = {}
    for places in _batches(problems):
        weights = np.stack([problems[place].class_weights for place in places])
        budgets = np.array([problems[place].budget for place in places])
        found = minimize_logits(
            torch.tensor(weights, dtype=torch.float64, device=device),
            torch.tensor(budgets, dtype=torch.float64, device=device),
            tolerance=tolerance / 2,  # so that the certificate, taken anew from singular values, keeps to it
            max_iterations=max_iterations,
        )
        for place, Z, steps in zip(places, found.Z.cpu().numpy(), found.steps.tolist(), strict=True):
            solutions[place] = _certified(problems[place], Z, steps=steps, tolerance=tolerance)
    return [solutions[place] for place in range(len(problems))]


def minimize_logits(
    weights: Float64[Tensor, "b k"],
    budgets: Float64[Tensor, " b"],
    *,
    tolerance: float = TOLERANCE,
    max_iterations: int = ITERATIONS,
) -> Minimizers:
    """Minimize every problem of a batch on the device its weights are on, until its gap is `tolerance` of its value.

    ‖Z‖_* ≤ τ holds iff Z = 2τ H Wᵀ with ‖H‖_F² + ‖W‖_F² ≤ 1, and at the optimum with equality. So we minimize over a
    sphere, by Newton's method in a trust region: products of K×K matrices only, where a projected gradient would take
    a singular value decomposition a step. H and W have K columns, more than the rank of Z*, so a point of descent with
    no further descent is a global minimum; the duality gap is what proves it. We minimize ln f, whose curvature stays
    moderate where f itself falls by many orders of magnitude. A problem that is done costs nothing more.
    """
    batch, classes = weights.shape
    places = torch.arange(batch, device=weights.device)
    found = Minimizers(
        Z=weights.new_zeros(batch, classes, classes),
        steps=torch.zeros(batch, dtype=torch.int64, device=weights.device),
        converged=torch.zeros(batch, dtype=torch.bool, device=weights.device),
    )
    x, radius, idle = _start(weights), torch.full_like(budgets, 0.5), torch.zeros_like(places)
    for step in range(max_iterations + 1):
        points = _points_at(x, weights=weights, budgets=budgets)
        solved = _within(points, tolerance)
        lost = (radius < SMALLEST) | (idle > PATIENCE) | ~torch.isfinite(points.slope).all(dim=(-2, -1))
        over = solved | lost | (step == max_iterations)
        done = places[over]
        found.Z[done], found.steps[done], found.converged[done] = points.Z[over], step, solved[over]
        left = ~over
        places, x, radius, idle, weights, budgets = (e[left] for e in (places, x, radius, idle, weights, budgets))
        if len(places) == 0:
            break
        x, radius, promised = _improved(_points_at(x, weights=weights, budgets=budgets), radius)
        idle = torch.where(promised > ROUNDING, 0, idle + 1)
    return found


def _start(weights: Float64[Tensor, "b k"]) -> Float64[Tensor, "b m k"]:
    """H = W = the simplex ETF and some noise, the same for all problems, so that no answer depends on its batch."""
    batch, classes = weights.shape
    etf = torch.eye(classes, dtype=torch.float64, device="cpu") - 1 / classes
    generator = torch.Generator("cpu").manual_seed(0)
    noise = torch.randn(2 * classes, classes, generator=generator, dtype=torch.float64, device="cpu")
    both = torch.cat([etf, etf])
    both = both / both.norm() + NUDGE * noise / noise.norm()
    start: Float64[Tensor, "m k"] = (both / both.norm()).to(weights.device)
    return start.expand(batch, -1, -1)


def _points_at(
    x: Float64[Tensor, "b m k"], *, weights: Float64[Tensor, "b k"], budgets: Float64[Tensor, " b"]
) -> Points:
    H, W = x.chunk(2, dim=1)
    Z = spread(2 * budgets) * (H @ W.mT)
    losses = losses_of(Z, weights)
    G = losses.gradient
    whole = spread(2 * budgets / losses.value) * torch.cat([G @ W, G.mT @ H], dim=1)
    radial = inner(x, whole)
    return Points(weights, budgets, x, Z, losses, whole - spread(radial) * x, radial)


def _within(points: Points, tolerance: float) -> Bool[Tensor, " b"]:
    """Whether the duality gap is at most `tolerance` of the value.

    ‖∇ ln f‖ ≤ (2τ/f)‖∇f‖_op bounds the gap from below by ½ f (‖∇ ln f‖ + radial): only where that is small enough is
    the operator norm worth its cost.
    """
    bound = 0.5 * (torch.hypot(norm(points.slope), points.radial) + points.radial)
    near = bound <= tolerance
    gaps = gaps_of(points.Z[near], gradient=points.losses.gradient[near], budgets=points.budgets[near])
    near[near.clone()] = gaps <= tolerance * points.losses.value[near]
    return near


def _improved(
    points: Points, radius: Float64[Tensor, " b"]
) -> tuple[Float64[Tensor, "b m k"], Float64[Tensor, " b"], Float64[Tensor, " b"]]:
    """The points after one step, where it brought what its model promised; the next trust radii; and what it promised."""
    step = newton_step(points.slope, hessian_of=lambda rows: _hessian(points, rows), radius=radius)
    trial = points.x + step.move
    trial = trial / spread(norm(trial))
    H, W = trial.chunk(2, dim=1)
    value = losses_of(spread(2 * points.budgets) * (H @ W.mT), points.weights).value
    brought = torch.log(points.losses.value / value)
    share = (brought + ROUNDING) / (step.decrease + ROUNDING)
    shorter = 0.25 * norm(step.move)
    longer = torch.where(step.at_edge, (2 * radius).clamp(max=1.0), radius)
    radius = torch.where(share > 0.75, longer, torch.where(share >= 0.25, radius, shorter))  # NaN counts as failed
    return torch.where(spread(share) > ACCEPTED, trial, points.x), radius, step.decrease


def _hessian(points: Points, rows: Int[Tensor, " r"]) -> Callable[[Float64[Tensor, "r m k"]], Float64[Tensor, "r m k"]]:
    """The Hessian of ln f along the sphere: that of f over f, less slope ⊗ slope, less radial · I from the curved sphere."""
    weights, scale, x = points.weights[rows], spread(2 * points.budgets[rows]), points.x[rows]
    losses, slope, radial = points.losses.of(rows), points.slope[rows], spread(points.radial[rows])
    (H, W), G = x.chunk(2, dim=1), losses.gradient
    rate = scale / spread(losses.value)

    def apply(move: Float64[Tensor, "r m k"]) -> Float64[Tensor, "r m k"]:
        dH, dW = move.chunk(2, dim=1)
        dG = curvature_along(scale * (dH @ W.mT + H @ dW.mT), losses=losses, weights=weights)
        bent = rate * torch.cat([dG @ W + G @ dW, dG.mT @ H + G.mT @ dH], dim=1)
        bent = bent - radial * move - spread(inner(slope, move)) * slope
        return bent - spread(inner(bent, x)) * x

    return apply


def _certified(problem: Problem, Z: Float64[np.ndarray, "k k"], *, steps: int, tolerance: float) -> Solution:
    value, certificate = dense_gap(problem.class_weights, Z, problem.budget)
    return Solution(
        problem=problem,
        value=value,
        result=verdict(value, certificate, tolerance),
        certificate=certificate,
        solver="general",
        iterations=steps,
        form=Z,
    )


def _batches(problems: Sequence[Problem]) -> Iterator[list[int]]:
    """The places of problems that have one number of classes, in pieces that fit memory."""
    by_classes: dict[int, list[int]] = {}
    for place, problem in enumerate(problems):
        if problem.classes > DENSE_LIMIT:
            raise InputError(
                f"The general solver holds K×K logits and takes at most {DENSE_LIMIT} classes; problem {place} has "
                f"{problem.classes}. Use the reduced solver, whose cost does not depend on the number of classes."
            )
        by_classes.setdefault(problem.classes, []).append(place)
    for classes, places in by_classes.items():
        size = max(1, ENTRIES // classes**2)
        yield from (places[first : first + size] for first in range(0, len(places), size))
