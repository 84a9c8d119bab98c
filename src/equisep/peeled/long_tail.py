"""Long-tailed classes: sizes that fall by one factor from class to class, and what the optimum makes of each class."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from equisep.display import brief
from equisep.errors import InputError
from equisep.files import encode
from equisep.peeled.classes import ClassPrediction, predict_classes
from equisep.peeled.problem import (
    FEATURE_ENERGY,
    WEIGHT_ENERGY,
    Number,
    Numbers,
    Problem,
    Whole,
    checked_class_count,
    checked_count,
    checked_positive,
    checked_sizes,
)
from equisep.peeled.solution import Solution
from equisep.peeled.solvers.reduced import solve_reduced

ROUND_UP = 1e-9  # n·r^(−k/(K−1)) that should be whole comes out a rounding below


@brief
@dataclass(frozen=True, slots=True, eq=False)
class LongTail:
    """Unequal class sizes, and what the optimum makes of each class; `ratio` is the largest size over the smallest."""

    ratio: float
    sizes: tuple[int, ...]
    solution: Solution
    prediction: ClassPrediction

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        problem = self.solution.problem
        return {
            "classes": problem.classes,
            "ratio": self.ratio,
            "feature_energy": problem.feature_energy,
            "weight_energy": problem.weight_energy,
            "value": self.solution.value,
            "result": self.solution.result.word,
            "relative_gap": self.solution.certificate.relative_gap,
            "multiplier": self.solution.certificate.multiplier,
            "sizes": list(self.sizes),
            "weights": encode(problem.class_weights, nonfinite="text"),
            **self.prediction.to_dict(),
        }


def long_tail_sizes(classes: Whole, largest: Whole, ratio: Number) -> tuple[int, ...]:
    """The exponential profile n_k = n_max · ratio^(−k/(K−1)), cut to whole numbers as the long-tailed CIFAR sets are.

    (Cui et al. 2019.) Every class keeps at least one sample.

    >>> from equisep import peeled
    >>> peeled.long_tail_sizes(10, 5000, 100)
    (5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50)
    """
    total = checked_count(classes, "The number of classes", "Pass K, 100 say.")
    checked_class_count(total)
    most = checked_count(largest, "The size of the largest class", "Pass its number of samples, 500 say.")
    factor = checked_positive(ratio, "The ratio of a long tail", "Pass largest over smallest class size, 100 say.")
    if factor < 1:
        raise InputError(
            f"The ratio of a long tail must be 1 or more; found {factor:g}. Pass largest over smallest size."
        )
    exact = (most * math.exp(-math.log(factor) * k / (total - 1)) for k in range(total))
    return tuple(max(1, math.floor(size * (1 + ROUND_UP))) for size in exact)


def long_tail(
    classes: Whole = 100,
    largest: Whole = 500,
    ratio: Number = 100.0,
    *,
    feature_energy: Number = FEATURE_ENERGY,
    weight_energy: Number = WEIGHT_ENERGY,
    loss_weights: Numbers | None = None,
) -> LongTail:
    """Solve a long-tailed problem and say what becomes of each class; a `NumericalError` where that is not proven.

    >>> from equisep import peeled
    >>> peeled.long_tail(classes=10, largest=5000, ratio=100).prediction.lost
    (7, 8, 9)
    """
    sizes = long_tail_sizes(classes, largest, ratio)
    tail = tail_of_sizes(sizes, feature_energy=feature_energy, weight_energy=weight_energy, loss_weights=loss_weights)
    return replace(tail, ratio=float(ratio))


def tail_of_sizes(
    sizes: Numbers,
    *,
    feature_energy: Number = FEATURE_ENERGY,
    weight_energy: Number = WEIGHT_ENERGY,
    loss_weights: Numbers | None = None,
) -> LongTail:
    """The same for class sizes as they are, in their order.

    >>> from equisep import peeled
    >>> peeled.tail_of_sizes([500, 300, 40, 4]).prediction.lost
    (3,)
    """
    counts = checked_sizes(sizes)
    problem = Problem.of_sizes(
        counts, feature_energy=feature_energy, weight_energy=weight_energy, loss_weights=loss_weights
    )
    solution = solve_reduced([problem])[0]
    return LongTail(max(counts) / min(counts), counts, solution, predict_classes(solution))
