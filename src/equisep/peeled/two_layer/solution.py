"""Points of the 2-Layer-Peeled Model: their loss, what is proven of them, and those in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from equisep.display import brief
from equisep.errors import InputError, NumericalError, did_you_mean
from equisep.peeled.problem import Number, Problem, checked_positive
from equisep.peeled.solution import FEASIBLE, TINY, Result, dense_gap
from equisep.peeled.solvers.reduced import solve_reduced
from equisep.shapes import Float64

Activation = Literal["linear", "relu"]
ACTIVATIONS: tuple[Activation, ...] = ("linear", "relu")
PROVEN = 1e-6  # of the value: the gap up to which a stationary point is solved
RANK = 1e-6  # of the largest singular value of the logits: below it, one is 0
NOTHING = 1e-12  # of the largest singular value: what rounding leaves of one that is 0


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


def two_layer_collapse(
    problem: Problem, *, hidden_energy: Number = 1.0, activation: str = "linear"
) -> TwoLayerSolution:
    """Neural collapse with two layers: the logits s (I − 11ᵀ/K) with the largest s that the energies allow.

    Linear: s = τ/(K − 1)^{3/2}, τ = K^{3/2} √(E_W E_1 E_H), features, hidden features and classifiers all simplex ETFs. ReLU:
    s = √(K/(K − 1)) √(E_W E_1 E_H), hidden features at right angles, one axis per class. The loss is log(1 + (K − 1) e^{−s}).

    >>> from equisep import peeled
    >>> four = peeled.Problem.of_sizes([1] * 4, feature_energy=5, weight_energy=1)
    >>> point = peeled.two_layer_collapse(four)
    >>> f"{point.value:.6f}", point.rank, point.collapse_distance < 1e-12
    ('0.091612', 3, True)
    """
    name = checked_activation(activation)
    energy = _equal_classes(problem, hidden_energy)
    K = problem.classes
    if name == "linear":
        return two_layer_simplices(problem, [K], hidden_energy=energy)
    center = np.eye(K) - 1 / K
    return certified(
        problem,
        hidden_energy=energy,
        activation=name,
        W2=math.sqrt(K * problem.weight_energy / (K - 1)) * center,
        W1=math.sqrt(energy) * np.eye(K),
        H=math.sqrt(problem.feature_energy) * np.eye(K),
    )


def two_layer_simplices(problem: Problem, groups: Sequence[int], *, hidden_energy: Number = 1.0) -> TwoLayerSolution:
    """Linear layers: classes in groups of k_g, each group a simplex in dimensions of its own, of rank K − G in all.

    Z is s_g (I − 11ᵀ/k_g) on group g and 0 between groups. With s_g = m k_g/(k_g − 1) the margin against other groups is m for
    every class, and the budget Σ σ^{2/3} ≤ τ^{2/3} allows m^{2/3} = τ^{2/3} / Σ_g (k_g − 1)^{1/3} k_g^{2/3}. One group is neural
    collapse; pairs are the vectors ±e_i. Fewer singular values are cheaper: for K ≥ 6 pairs (and one triple, if K is odd)
    have a smaller loss than neural collapse at every energy.

    >>> from equisep import peeled
    >>> six = peeled.Problem.of_sizes([1] * 6, feature_energy=5, weight_energy=1)
    >>> pairs, collapse = peeled.two_layer_simplices(six, [2, 2, 2]), peeled.two_layer_collapse(six)
    >>> pairs.rank, collapse.rank, pairs.value < collapse.value
    (3, 5, True)
    """
    energy = _equal_classes(problem, hidden_energy)
    K = problem.classes
    if sum(groups) != K or any(size < 2 for size in groups):
        raise InputError(
            f"Groups of 2 classes or more that add up to {K} are needed; found {list(groups)}. Pass [2, 2, 2] for six classes."
        )
    room = problem.budget ** (2 / 3) * (K * energy) ** (1 / 3)  # τ^{2/3}
    blocks = [np.eye(size) - 1 / size for size in groups]
    if len(groups) == 1:
        scales = [(room / (K - 1)) ** 1.5]
    else:
        margin = (room / sum((size - 1) ** (1 / 3) * size ** (2 / 3) for size in groups)) ** 1.5
        scales = [margin * size / (size - 1) for size in groups]
    logits: Float64[np.ndarray, "k k"] = np.zeros((K, K))
    start = 0
    for size, block, scale in zip(groups, blocks, scales, strict=True):
        logits[start : start + size, start : start + size] = scale * block
        start += size
    W2, W1, H = linear_factors(logits, problem, hidden_energy=energy)
    return certified(problem, hidden_energy=energy, activation="linear", W2=W2, W1=W1, H=H)


def pairs_of(classes: int) -> list[int]:
    """As many pairs as there are, and a triple where the number is odd: the groups of least cost."""
    return [2] * (classes // 2) if classes % 2 == 0 else [*[2] * ((classes - 3) // 2), 3]


def linear_factors(
    logits: Float64[np.ndarray, "k k"], problem: Problem, *, hidden_energy: float
) -> tuple[Float64[np.ndarray, "k k"], Float64[np.ndarray, "k k"], Float64[np.ndarray, "k k"]]:
    """W₂, W₁, H of the least norms with W₂ W₁ Hᵀ = Zᵀ, scaled so that each constraint is met in the same share.

    Z = U S Vᵀ: H = U S^{1/3}, W₁ = S^{1/3}, W₂ = V S^{1/3}; each has ‖·‖_F² = Σ σ^{2/3}, and no three factors of Z have norms of
    a smaller product (Hölder's inequality for Schatten norms).
    """
    U, sizes, Vt = np.linalg.svd(logits)
    roots = np.diag(
        np.cbrt(np.where(sizes > NOTHING * sizes[0], sizes, 0.0))
    )  # the cube root of a rounding is no rounding
    each = [problem.weight_energy, hidden_energy, problem.feature_energy]
    mean = math.prod(each) ** (1 / 3)
    W2, W1, H = (
        math.sqrt(energy / mean) * part for energy, part in zip(each, (Vt.T @ roots, roots, U @ roots), strict=True)
    )
    return W2, W1, H


def _equal_classes(problem: Problem, hidden_energy: Number) -> float:
    if problem.groups > 1:
        raise InputError(
            f"The closed forms are of classes of equal weight; found {problem.groups} different weights. Use `solve_two_layer`."
        )
    return checked_positive(hidden_energy, "`hidden_energy`", "Pass the mean squared norm of W₁ per class, 1 say.")
