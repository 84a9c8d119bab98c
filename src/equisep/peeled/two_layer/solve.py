"""The 2-Layer-Peeled Model searched in W₂, W₁ and H, from random starts and from its closed forms."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from equisep.peeled.problem import Number, Problem, Whole, checked_count, checked_positive
from equisep.peeled.solution import FEASIBLE, Result
from equisep.peeled.solvers.descent import Objective, project_on_ball, scale_to_edge, spread
from equisep.peeled.solvers.nonconvex import best_of, loss_and_gradient
from equisep.peeled.two_layer.solution import (
    Activation,
    TwoLayerSolution,
    certified,
    checked_activation,
    pairs_of,
    two_layer_collapse,
    two_layer_simplices,
)
from equisep.shapes import Float64

STARTS = 16
TOLERANCE = 1e-8
ITERATIONS = 2000


def solve_two_layer(
    problem: Problem,
    *,
    hidden_energy: Number = 1.0,
    activation: str = "linear",
    dimension: Whole | None = None,
    starts: Whole = STARTS,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    max_iterations: int = ITERATIONS,
    throw: bool = True,
) -> TwoLayerSolution:
    """Minimize Σ ω_k CE(W₂ σ(W₁ h_k), k) with (1/K)‖W₂‖² ≤ E_W, (1/K)‖W₁‖² ≤ E_1 and (1/K) Σ‖h_k‖² ≤ E_H.

    That is the model of Fang et al. 2021 with two layers in place of one, E_1 being `hidden_energy`; h_k and σ(W₁ h_k) have
    `dimension` p numbers (K where not given). With linear layers class means lose nothing, as with one layer; with ReLU this
    is the problem of one sample per class. Neither is convex: the best of `starts` random starts and, for classes of equal
    weight, of the closed forms is kept. `STATIONARY` is no proof that it is the least, and the certificate says how much lower
    the least can be at most; with two classes and linear layers that is nothing.

    >>> from equisep import peeled
    >>> six = peeled.Problem.of_sizes([1] * 6, feature_energy=5, weight_energy=1)
    >>> solution = peeled.solve_two_layer(six, starts=4)
    >>> collapse = peeled.two_layer_collapse(six)
    >>> solution.rank, solution.value < 0.8 * collapse.value  # three pairs ±e_i: no neural collapse
    (3, True)
    """
    name = checked_activation(activation)
    energy = checked_positive(hidden_energy, "`hidden_energy`", "Pass the mean squared norm of W₁ per class, 1 say.")
    K = problem.classes
    p = checked_count(K if dimension is None else dimension, "`dimension`", "Pass p, the width of H, 10 say.")
    count = checked_count(starts, "`starts`", "Pass how many random starts to take, 16 say.")
    scales = [math.sqrt(each) for each in (problem.feature_energy, energy, problem.weight_energy)]
    x = torch.cat([_random(K, p, starts=count, seed=seed), *_known(problem, energy, name, p, scales)])
    best = best_of(
        x,
        objective=_log_loss(problem, p, math.prod(scales), name),
        project=lambda each: _parts_on_balls(each, K, p),
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    H, W1, W2 = (
        scale * part for scale, part in zip(scales, np.split(best.x[0].cpu().numpy(), [K, K + p]), strict=True)
    )
    moves = float(best.stationarity[0])
    solution = certified(
        problem, hidden_energy=energy, activation=name, W2=W2, W1=W1, H=H, stationarity=moves,
        iterations=int(best.iterations[0]), result=Result.STATIONARY if moves <= tolerance else Result.STOPPED,
    )  # fmt: skip
    assert solution.certificate.feasibility <= FEASIBLE  # the search projects every point
    return solution.or_raise(throw=throw)


def _log_loss(problem: Problem, p: int, scale: float, activation: Activation) -> Objective:
    """Return ln f and its gradient by (H, W₁, W₂), in units in which each constraint allows a sum of squares of K."""
    weights = torch.tensor(problem.class_weights, dtype=torch.float64, device="cpu")
    K = problem.classes

    def objective(x: Float64[Tensor, "b m p"]) -> tuple[Float64[Tensor, " b"], Float64[Tensor, "b m p"]]:
        H, W1, W2 = x[:, :K], x[:, K : K + p], x[:, K + p :]
        inputs = H @ W1.mT
        open_ = torch.ones_like(inputs) if activation == "linear" else (inputs > 0).double()
        hidden = inputs * open_
        value, G = loss_and_gradient(scale * (hidden @ W2.mT), weights)
        pull = (G @ W2) * open_
        return value.log(), spread(scale / value) * torch.cat([pull @ W1, pull.mT @ H, G.mT @ hidden], dim=1)

    return objective


def _parts_on_balls(x: Float64[Tensor, "b m p"], K: int, p: int) -> Float64[Tensor, "b m p"]:
    parts = (x[:, :K], x[:, K : K + p], x[:, K + p :])
    return torch.cat([project_on_ball(part, q=2.0, total=float(K)) for part in parts], dim=1)


def _random(K: int, p: int, *, starts: int, seed: int) -> Float64[Tensor, "b m p"]:
    generator = torch.Generator("cpu").manual_seed(seed)
    noise = torch.randn(starts, 2 * K + p, p, generator=generator, dtype=torch.float64, device="cpu")
    parts = (noise[:, :K], noise[:, K : K + p], noise[:, K + p :])
    return torch.cat([scale_to_edge(part, q=2.0, total=float(K)) for part in parts], dim=1)


def _known(
    problem: Problem, energy: float, activation: Activation, p: int, scales: list[float]
) -> list[Float64[Tensor, "1 m p"]]:
    """The closed forms as starts, where the classes are equal and there is room for them."""
    K = problem.classes
    if problem.groups > 1 or p < K:
        return []
    points = [two_layer_collapse(problem, hidden_energy=energy, activation=activation)]
    if activation == "linear" and K > 3:
        points.append(two_layer_simplices(problem, pairs_of(K), hidden_energy=energy))
    starts = []
    for point in points:
        room = [np.zeros((rows, p)) for rows in (K, p, K)]
        for block, part, scale in zip(room, (point.H, point.W1, point.W2), scales, strict=True):
            block[: part.shape[0], : part.shape[1]] = part / scale
        starts.append(torch.tensor(np.concatenate(room), dtype=torch.float64, device="cpu").unsqueeze(0))
    return starts
