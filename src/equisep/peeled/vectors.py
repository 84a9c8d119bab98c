"""Classifiers and class means of the solved Layer-Peeled Model as vectors in the few dimensions they span, for drawings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equisep.errors import InputError
from equisep.files import encode
from equisep.peeled.classes import State, group_states
from equisep.peeled.problem import Number, Problem
from equisep.peeled.solve import solve_problem
from equisep.peeled.thresholds import thresholds_of
from equisep.shapes import Float64

MOST_CLASSES = 4  # whose vectors span at most three dimensions


@dataclass(frozen=True, slots=True, eq=False)
class ClassVectors:
    """The optimum at one imbalance ratio: rows of `classifiers` are w_k/√E_W, rows of `features` h_k/√E_H, in K − 1 dimensions.

    The first `majority` rows are the majority's. Any rotation of an optimum is one; this is the one nearest to a regular
    simplex. `cosine` is that between the first two minority classifiers, NaN where there are no two or they are zero.
    """

    majority: int
    minority: int
    ratio: float
    threshold: float | None
    classifiers: Float64[np.ndarray, "k d"]
    features: Float64[np.ndarray, "k d"]
    state: State
    cosine: float
    relative_gap: float

    @property
    def classes(self) -> int:
        """K."""
        return self.majority + self.minority

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; what does not exist is `None`."""
        return dict(encode(self, nonfinite="text"))


def class_vectors(
    classes: int,
    *,
    ratios: Sequence[Number] | None = None,
    feature_energy: Number = 5.0,
    weight_energy: Number = 1.0,
) -> tuple[ClassVectors, ...]:
    """Solve K = 2, 3 or 4 classes, half of them (rounded down) large, at each ratio R; every optimum is certified.

    Without `ratios`: R = 1, the middle of 1 and R* on a logarithmic scale, and twice R*, where minority classes are one
    vector; a minority of one class has no R*, and R is 1, 10 and 100.
    """
    if not isinstance(classes, int) or not 2 <= classes <= MOST_CLASSES:
        raise InputError(
            f"Vectors of {classes} classes were asked for; those of 2, 3 or 4 classes can be drawn. Use `cosine` for more."
        )
    majority = classes // 2
    minority = classes - majority
    limit = thresholds_of(majority, minority, feature_energy, weight_energy).collapse
    if ratios is None:
        ratios = (1.0, 10.0, 100.0) if limit is None else (1.0, math.sqrt(limit), 2 * limit)
    found: list[ClassVectors] = []
    near = simplex(classes)
    for ratio in ratios:
        problem = Problem.two_groups(
            majority, minority, ratio, feature_energy=feature_energy, weight_energy=weight_energy
        )
        solution = solve_problem(problem)
        both = np.concatenate(
            [solution.W / math.sqrt(problem.weight_energy), solution.H / math.sqrt(problem.feature_energy)]
        )
        turned = _turned(both, np.concatenate([near, near]))
        classifiers, features = turned[:classes], turned[classes:]
        near = classifiers
        found.append(
            ClassVectors(
                majority=majority,
                minority=minority,
                ratio=float(ratio),
                threshold=limit,
                classifiers=classifiers,
                features=features,
                state=group_states(solution)[-1],
                cosine=_cosine(classifiers[majority:]),
                relative_gap=solution.certificate.relative_gap,
            )
        )
    return tuple(found)


def simplex(classes: int) -> Float64[np.ndarray, "k d"]:
    """K unit vectors in K − 1 dimensions with cosines −1/(K − 1): a line, a triangle, a tetrahedron; the first points up."""
    vectors = np.ones((1, 0))
    for k in range(2, classes + 1):
        cosine = -1.0 / (k - 1)
        lower = math.sqrt(1 - cosine**2) * vectors if k > 2 else np.zeros((1, 0))
        top = np.zeros((1, k - 1))
        top[0, -1] = 1.0
        vectors = np.concatenate([top, np.concatenate([lower, np.full((k - 1, 1), cosine)], axis=1)])
    return vectors


def _turned(vectors: Float64[np.ndarray, "n p"], target: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
    """The vectors in the d dimensions that hold most of them, rotated as near to the target as they go (Procrustes)."""
    _, _, axes = np.linalg.svd(vectors, full_matrices=False)
    short = vectors @ axes[: target.shape[1]].T
    left, _, right = np.linalg.svd(short.T @ target)
    return np.asarray(short @ left @ right)


def _cosine(vectors: Float64[np.ndarray, "k d"]) -> float:
    if len(vectors) < 2:
        return math.nan
    norms = np.linalg.norm(vectors[:2], axis=1)
    return math.nan if norms.min() < 1e-9 else float(vectors[0] @ vectors[1] / norms.prod())
