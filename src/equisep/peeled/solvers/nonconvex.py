"""The Layer-Peeled problem as it was written, in W and H, by projected gradient descent from random starts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from equisep.peeled.problem import Number, Problem, Whole, checked_count
from equisep.peeled.solution import FEASIBLE, Certificate, Factors, Result, Solution, dense_gap, proves
from equisep.peeled.solvers.descent import (
    Descent,
    Objective,
    Projection,
    checked_power,
    descend,
    project_on_ball,
    scale_to_edge,
    spread,
)
from equisep.peeled.solvers.reduced import solve_reduced
from equisep.shapes import Float64

STARTS = 8
TOLERANCE = 1e-9  # stationarity as `stationarity_of` has it
SIEVE = 1e-5  # stationarity to which all starts are brought, before the best one alone goes on
ITERATIONS = 20_000
CORNERS = 1.0  # the q up to which the ball has corners
PROVEN = 1e-6  # of the value: the gap, or distance to the convex form, up to which a stationary point is solved


def solve_nonconvex(
    problem: Problem,
    *,
    dimension: Whole | None = None,
    q: Number = 2.0,
    starts: Whole = STARTS,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    max_iterations: int = ITERATIONS,
    device: str | torch.device = "cpu",
    throw: bool = True,
) -> Solution:
    """Minimize Σ ω_k CE(W h_k, k) with (1/K) Σ‖w_k‖² ≤ E_W and (1/K) Σ‖h_k‖_q^q ≤ E_H in `dimension` p, K where not given.

    That is the Layer-Peeled Model of Fang et al. 2021 with class means for features, which by convexity lose nothing, and
    for q ≠ 2 its q-norm variant. The best of `starts` random starts is kept. `STATIONARY` means so to `tolerance` and
    feasible, which for a nonconvex problem is no proof; `SOLVED`, that the certificate also proves it to 1e-6 of the
    value. For q = 2 it has the distance to the least value of the convex form, which p ≥ K − 1 can reach and smaller p in
    general cannot. Its gap holds for any q, because the q-norm ball lies in a 2-norm ball (`enclosing_energy`), for which
    the convex form gives a bound.

    For q ≤ 1, where the ball has corners, the numbers of H are u|u|^{2/q − 1} with u in a 2-norm ball: then 0 is stationary for
    each of them, and only the best of several starts means something. For q < 1 the mean of a class may be dearer than its
    samples, and this is the problem of one sample per class.

    >>> from equisep import peeled
    >>> four = peeled.Problem.of_sizes([1] * 4, feature_energy=5, weight_energy=1)
    >>> solution = peeled.solve_nonconvex(four, q=3, dimension=6)
    >>> f"{solution.value:.6f}", f"{solution.geometry.feature_cosines[0][0]:.4f}"
    ('0.129966', '-0.3333')
    """
    width = problem.classes if dimension is None else dimension
    p = checked_count(width, "`dimension`", "Pass p, the width of H, 10 say.")
    power = checked_power(q)
    count = checked_count(starts, "`starts`", "Pass how many random starts to take, 8 say.")
    ball = power if power > CORNERS else 2.0
    x = _random_starts(problem.classes, p, ball, starts=count, seed=seed).to(device)
    found = best_of(
        x,
        objective=_log_loss(problem, power),
        project=_into_constraints(problem.classes, ball),
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    H, W = found.x[0].cpu().numpy().reshape(2, problem.classes, p)
    H = H if power > CORNERS else np.sign(H) * np.abs(H) ** (2 / power)
    factors = Factors(W=math.sqrt(problem.weight_energy) * W, H=problem.feature_energy ** (1 / power) * H)
    value, certificate = _certified(problem, factors, power, stationarity=float(found.stationarity[0]))
    still = float(found.stationarity[0]) <= tolerance and certificate.feasibility <= FEASIBLE and value > 0
    return Solution(
        problem=problem,
        value=value,
        result=Result.STOPPED if not still else Result.SOLVED if _proven(certificate, value) else Result.STATIONARY,
        certificate=certificate,
        solver="nonconvex",
        iterations=int(found.iterations[0]),
        form=factors,
    ).or_raise(throw=throw)


def _proven(certificate: Certificate, value: float) -> bool:
    distance = certificate.distance_to_convex
    return proves(certificate, PROVEN) or (distance is not None and distance <= PROVEN * value)


def enclosing_energy(problem: Problem, *, dimension: int, q: float) -> float:
    """The least E with (1/K) Σ‖h_k‖² ≤ E wherever (1/K) Σ‖h_k‖_q^q ≤ E_H.

    Hölder over the K·p numbers of H: E = p^{1−2/q} E_H^{2/q} for q ≥ 2, reached by features of one size everywhere, and
    E = K^{2/q−1} E_H^{2/q} for q < 2, reached by a single number.
    """
    room = dimension ** (1 - 2 / q) if q >= 2 else problem.classes ** (2 / q - 1)
    return float(room * problem.feature_energy ** (2 / q))


def _random_starts(classes: int, dimension: int, q: float, *, starts: int, seed: int) -> Float64[Tensor, "b m p"]:
    """Normal H and W, scaled so that both constraints are active; in units in which each allows a sum of K."""
    generator = torch.Generator("cpu").manual_seed(seed)
    noise = torch.randn(starts, 2 * classes, dimension, generator=generator, dtype=torch.float64, device="cpu")
    H, W = noise.chunk(2, dim=1)
    total = float(classes)
    return torch.cat([scale_to_edge(H, q=q, total=total), scale_to_edge(W, q=2.0, total=total)], dim=1)


def _log_loss(problem: Problem, q: float) -> Objective:
    """Return ln f and its gradient by (H, W) in those units, Z = E_H^{1/q} √E_W H Wᵀ; scale-free, unlike f itself."""
    weights = torch.tensor(problem.class_weights, dtype=torch.float64, device="cpu")
    scale = problem.feature_energy ** (1 / q) * math.sqrt(problem.weight_energy)

    def objective(x: Float64[Tensor, "b m p"]) -> tuple[Float64[Tensor, " b"], Float64[Tensor, "b m p"]]:
        H, W = x.chunk(2, dim=1)
        if q > CORNERS:
            value, G = loss_and_gradient(scale * (H @ W.mT), weights.to(x.device))
            return value.log(), spread(scale / value) * torch.cat([G @ W, G.mT @ H], dim=1)
        steep = H.abs().pow(2 / q - 1)  # h = u |u|^{2/q − 1}, dh/du = (2/q) |u|^{2/q − 1}
        value, G = loss_and_gradient(scale * (H * steep @ W.mT), weights.to(x.device))
        slopes = torch.cat([2 / q * steep * (G @ W), G.mT @ (H * steep)], dim=1)
        return value.log(), spread(scale / value) * slopes

    return objective


def loss_and_gradient(
    Z: Float64[Tensor, "b k k"], weights: Float64[Tensor, " k"]
) -> tuple[Float64[Tensor, " b"], Float64[Tensor, "b k k"]]:
    """Σ_k ω_k CE(z_k, k) of each batch of logits, class k in row k, and its gradient ω_k (p_kj − [k=j]).

    Well-separated classes have losses far below the rounding of 1. So everything is made of the margins z_kj − z_kk:
    CE = log1p(Σ_{j≠k} exp(z_kj − z_kk)), and p_kk − 1 is −Σ_{j≠k} p_kj, never a difference from 1.
    """
    margins = Z - Z.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    top = margins.amax(dim=-1)  # b k; at least 0, the margin of the class itself
    powers = torch.exp(margins - top.unsqueeze(-1))
    total = powers.sum(dim=-1)
    powers.diagonal(dim1=-2, dim2=-1).zero_()
    others = powers.sum(dim=-1)
    entropy = torch.where(top == 0, torch.log1p(others), top + torch.log(total))
    gradient = (weights / total).unsqueeze(-1) * powers
    gradient.diagonal(dim1=-2, dim2=-1).copy_(-gradient.sum(dim=-1))
    return (weights * entropy).sum(dim=-1), gradient


def _into_constraints(classes: int, q: float) -> Projection:
    total = float(classes)

    def project(x: Float64[Tensor, "b m p"]) -> Float64[Tensor, "b m p"]:
        H, W = x.chunk(2, dim=1)
        return torch.cat([project_on_ball(H, q=q, total=total), project_on_ball(W, q=2.0, total=total)], dim=1)

    return project


def best_of(
    x: Float64[Tensor, "b m p"], *, objective: Objective, project: Projection, tolerance: float, max_iterations: int
) -> Descent:
    """Bring all starts near a stationary point, then the best of them to it."""
    rough = descend(
        x, objective=objective, project=project, tolerance=max(tolerance, SIEVE), max_iterations=max_iterations
    )
    best = int(rough.values.nan_to_num(nan=math.inf).argmin())
    spent = int(rough.iterations[best])
    fine = descend(
        rough.x[best : best + 1],
        objective=objective,
        project=project,
        tolerance=tolerance,
        max_iterations=max_iterations - spent,
    )
    return replace(fine, iterations=fine.iterations + spent)


def _certified(problem: Problem, factors: Factors, q: float, *, stationarity: float) -> tuple[float, Certificate]:
    W, H = factors.W, factors.H
    room = replace(problem, feature_energy=enclosing_energy(problem, dimension=H.shape[1], q=q))
    value, certificate = dense_gap(problem.class_weights, H @ W.T, room.budget)
    spent = [
        float((np.abs(H) ** q).sum()) / (problem.classes * problem.feature_energy),
        float((W**2).sum()) / (problem.classes * problem.weight_energy),
    ]
    distance = None
    if q == 2:
        convex = solve_reduced([problem], throw=False)[0]
        distance = value - convex.value if convex.result is Result.SOLVED else None
    certificate = replace(
        certificate,
        feasibility=max(0.0, *(share - 1 for share in spent)),
        distance_to_convex=distance,
        stationarity=stationarity,
    )
    return value, certificate
