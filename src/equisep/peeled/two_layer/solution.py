"""A point of the 2-Layer-Peeled Model: two layers and features, its loss, and what is proven of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from equisep.display import brief
from equisep.errors import InputError, NumericalError, did_you_mean
from equisep.peeled.problem import Problem
from equisep.peeled.solution import FEASIBLE, TINY, Result, dense_gap
from equisep.peeled.solvers.reduced import solve_reduced
from equisep.shapes import Float64

Activation = Literal["linear", "relu"]
ACTIVATIONS: tuple[Activation, ...] = ("linear", "relu")
PROVEN = 1e-6  # of the value: the gap up to which a stationary point is solved
RANK = 1e-6  # of the largest singular value of the logits: below it, one is 0


@brief
@dataclass(frozen=True, slots=True)
class TwoLayerCertificate:
    """What is known of a point: that it is feasible, how stationary it is, and how far the least value can be below.

    feasibility     the greatest excess over one of the three constraints, in its units; 0 where all are met
    stationarity    how far a projected gradient step still moves the point; 0 where stationary. None: not searched
    lower_bound     no feasible point has a smaller value: the optimum of the convex problem ‖Z‖_* ≤ τ that contains this one,
                    τ = K √(E_W E_H) √(K E_1), less its own duality gap
    gap             value − lower_bound. `relative_gap`: over the value
    """

    feasibility: float
    stationarity: float | None
    lower_bound: float
    gap: float
    relative_gap: float


@brief
@dataclass(frozen=True, slots=True, eq=False)
class TwoLayerSolution:
    """W₂, W₁ and H with the loss Σ_k ω_k CE(W₂ σ(W₁ h_k), k); classes in rows of H and W₂.

    `result` is `SOLVED` where the lower bound proves it (two classes, linear layers), `STATIONARY` where a search came to rest,
    `STOPPED` where it ended before, and None for a closed form that is neither proven nor searched.
    """

    problem: Problem
    hidden_energy: float
    activation: Activation
    W2: Float64[np.ndarray, "k p"]
    W1: Float64[np.ndarray, "p p"]
    H: Float64[np.ndarray, "k p"]
    value: float
    result: Result | None
    certificate: TwoLayerCertificate
    iterations: int = 0

    @property
    def hidden(self) -> Float64[np.ndarray, "k p"]:
        """σ(W₁ h_k), one class a row."""
        inputs: Float64[np.ndarray, "k p"] = self.H @ self.W1.T
        return inputs if self.activation == "linear" else np.maximum(inputs, 0.0)

    @property
    def Z(self) -> Float64[np.ndarray, "k k"]:  # noqa: N802
        """The logits, one class a row, less the mean of the row, which no loss sees."""
        logits = self.hidden @ self.W2.T
        centered: Float64[np.ndarray, "k k"] = logits - logits.mean(axis=1, keepdims=True)
        return centered

    @property
    def rank(self) -> int:
        """Of the logits; K − 1 where they are those of neural collapse."""
        sizes = np.linalg.svd(self.Z, compute_uv=False)
        return int((sizes > RANK * sizes[0]).sum())

    @property
    def collapse_distance(self) -> float:
        """‖Z/‖Z‖_F − P/‖P‖_F‖_F, P = I − 11ᵀ/K: 0 where the logits are those of a simplex ETF."""
        K = self.problem.classes
        simplex = (np.eye(K) - 1 / K) / math.sqrt(K - 1)
        return float(np.linalg.norm(self.Z / np.linalg.norm(self.Z) - simplex))

    def or_raise(self, *, throw: bool = True) -> TwoLayerSolution:
        """The point itself; where the search stopped early, and unless `throw` is false, a `NumericalError`."""
        if self.result is not Result.STOPPED or not throw:
            return self
        raise NumericalError(
            f"A stationary point of the 2-Layer-Peeled Model was asked for; the best of all starts still moves by "
            f"{self.certificate.stationarity:.3g} after {self.iterations} iterations, at the value {self.value:.6g}. Use more "
            "`starts` or `max_iterations`, or smaller energies."
        )


def certified(
    problem: Problem,
    *,
    hidden_energy: float,
    activation: Activation,
    W2: Float64[np.ndarray, "k p"],
    W1: Float64[np.ndarray, "p p"],
    H: Float64[np.ndarray, "k p"],
    result: Result | None = None,
    stationarity: float | None = None,
    iterations: int = 0,
) -> TwoLayerSolution:
    """The point with its value and certificate; `SOLVED` where the lower bound proves it, whatever the search says."""
    K = problem.classes
    bound = lower_bound(problem, hidden_energy=hidden_energy)
    spent = [
        float((part**2).sum()) / (K * energy) - 1
        for part, energy in ((W2, problem.weight_energy), (W1, hidden_energy), (H, problem.feature_energy))
    ]
    inputs = H @ W1.T
    hidden = inputs if activation == "linear" else np.maximum(inputs, 0.0)
    value, _ = dense_gap(problem.class_weights, hidden @ W2.T, problem.budget)
    gap = max(value - bound, 0.0)
    certificate = TwoLayerCertificate(
        feasibility=max(0.0, *spent),
        stationarity=stationarity,
        lower_bound=bound,
        gap=gap,
        relative_gap=gap / max(value, TINY),
    )
    proven = value > 0 and certificate.feasibility <= FEASIBLE and certificate.relative_gap <= PROVEN
    return TwoLayerSolution(
        problem=problem, hidden_energy=hidden_energy, activation=activation, W2=W2, W1=W1, H=H, value=value,
        result=Result.SOLVED if proven else result, certificate=certificate, iterations=iterations,
    )  # fmt: skip


def lower_bound(problem: Problem, *, hidden_energy: float) -> float:
    """A value that no feasible point is below, for every activation with |σ(x)| ≤ |x|.

    ‖A W₂ᵀ‖_* ≤ ‖A‖_F ‖W₂‖_F and ‖A‖_F = ‖σ(H W₁ᵀ)‖_F ≤ ‖H W₁ᵀ‖_F ≤ ‖H‖_F ‖W₁‖_F, so that ‖Z‖_* ≤ τ: the problem of one layer with
    the feature energy K E_1 E_H, which is convex and solved with a proof.
    """
    around = replace(problem, feature_energy=problem.classes * hidden_energy * problem.feature_energy)
    solution = solve_reduced([around], throw=False)[0]
    return max(solution.value - solution.certificate.gap, 0.0)


def checked_activation(name: str) -> Activation:
    """`linear` or `relu`."""
    for known in ACTIVATIONS:
        if name == known:
            return known
    raise InputError(f"No activation `{name}`.{did_you_mean(name, ACTIVATIONS)} Known: {', '.join(ACTIVATIONS)}.")
