"""Points of the 2-Layer-Peeled Model in closed form, for classes of equal weight: neural collapse, and simplices side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equisep.errors import InputError
from equisep.peeled.problem import Number, Problem, checked_positive
from equisep.peeled.two_layer.solution import TwoLayerSolution, certified, checked_activation
from equisep.shapes import Float64

NOTHING = 1e-12  # of the largest singular value: what rounding leaves of one that is 0


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
