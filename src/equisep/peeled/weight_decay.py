"""Minority collapse under weight decay instead of energy constraints: thresholds in closed form.

    min (1/N) Σ_i w_i CE(W h_i) + (λ_W/2)‖W‖² + (λ_H/2) Σ_i ‖h_i‖²      (unconstrained features, all N samples)

All samples of a class share one feature, and with h̃_k = √n_k h_k the two penalties are λ_Z‖Z̃‖_*, λ_Z = √(λ_W λ_H), Z̃ = H̃Wᵀ. The
multiplier of the energy-constrained problem is thus a given number, λ_Z, and the weight of a class is w_k √n_k/N: classes of
one size and loss weight coincide iff w_k √n_k ≤ N λ_Z. Where the loss is divided by Σ_i w_i, as torch's weighted mean
does, that sum takes the place of N.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from equisep.display import brief
from equisep.errors import InputError
from equisep.peeled.problem import (
    Number,
    Numbers,
    Whole,
    checked_class_count,
    checked_count,
    checked_positive,
    checked_sizes,
    checked_weights,
)

MEANS = ("samples", "weights")


@brief
@dataclass(frozen=True, slots=True)
class WeightDecayRescue:
    """What weight decay makes of one class of `size` samples and a loss weight, `alike` classes being like it.

    collapsed          whether the classifiers of these classes coincide; one class alone cannot
    least_loss_weight  the loss weight above which they do not, all else equal; `None` where no weight is enough, or for
                       one class alone
    oversampling       the factor on their samples above which they do not; `None` likewise
    """

    size: int
    loss_weight: float
    alike: int
    collapsed: bool
    least_loss_weight: float | None
    oversampling: float | None


def weight_decay_threshold(
    majority: Whole, minority: Whole, minority_size: Whole, *, classifier_decay: Number, feature_decay: Number
) -> float | None:
    """R* = (1/(λ_Z √n_B) − k_B)/k_A, the ratio n_A/n_B from which on minority collapse is the optimum.

    n_B = `minority_size` samples a minority class stay, the majority grows; λ_W is `classifier_decay`, λ_H `feature_decay`,
    each with the factor ½ in front of its square, as `weight_decay` of an optimizer has it. `None` where the minority
    collapses at every ratio, however few samples the majority has.

    >>> from equisep import peeled
    >>> f"{peeled.weight_decay_threshold(5, 5, 10, classifier_decay=5e-4, feature_decay=5e-4):.3f}"
    '125.491'
    """
    advice = "Pass the number of classes, 5 say."
    k = checked_count(majority, "The number of majority classes", advice)
    m = checked_count(minority, "The number of minority classes", advice)
    if m == 1:
        raise InputError(
            "The threshold of minority collapse needs at least 2 minority classes; found 1, which has no other to "
            "coincide with. Pass 2 or more."
        )
    n = checked_count(minority_size, "The size of a minority class", "Pass its number of samples, 50 say.")
    ratio = (1 / (_decay(classifier_decay, feature_decay) * math.sqrt(n)) - m) / k
    return ratio if ratio > 0 else None


def weight_decay_rescue(
    sizes: Numbers,
    *,
    classifier_decay: Number,
    feature_decay: Number,
    loss_weights: Numbers | None = None,
    mean: str = "samples",
) -> tuple[WeightDecayRescue, ...]:
    """What becomes of each class under weight decay, and what would save it together with the classes like it.

    `mean` says what the weighted losses are divided by: the number of samples, or the sum of their weights, as torch does.

    >>> from equisep import peeled
    >>> small = peeled.weight_decay_rescue([2000] * 5 + [10] * 5, classifier_decay=5e-4, feature_decay=5e-4)[-1]
    >>> small.collapsed, small.least_loss_weight > 1
    (True, True)
    """
    counts = checked_sizes(sizes)
    checked_class_count(len(counts))
    weights = (1.0,) * len(counts)
    if loss_weights is not None:
        weights = checked_weights(loss_weights, "Loss weights", "The loss weight of class", count=len(counts))
    if mean not in MEANS:
        raise InputError(f"A loss is divided by `samples` or by `weights`; found `{mean}`. Pass one of the two.")
    decay = _decay(classifier_decay, feature_decay)
    pairs = list(zip(counts, weights, strict=True))
    found = {pair: _rescue(pair, alike, pairs, decay, mean) for pair, alike in Counter(pairs).items()}
    return tuple(found[pair] for pair in pairs)


def _rescue(
    pair: tuple[int, float], alike: int, pairs: list[tuple[int, float]], decay: float, mean: str
) -> WeightDecayRescue:
    size, weight = pair
    by_weights = mean == "weights"
    total = math.fsum(n * w if by_weights else n for n, w in pairs)
    if alike == 1:
        return WeightDecayRescue(size, weight, alike, False, None, None)
    root = math.sqrt(size)
    own = alike * size * (weight if by_weights else 1.0)
    others = math.fsum([total, -own])
    return WeightDecayRescue(
        size=size,
        loss_weight=weight,
        alike=alike,
        collapsed=weight * root <= total * decay,
        least_loss_weight=_least_weight(root, others, alike * size, decay) if by_weights else total * decay / root,
        oversampling=_oversampling(weight * root, others, own, decay),
    )


def _least_weight(root: float, others: float, samples: int, decay: float) -> float | None:
    """The w with w√n = λ_Z (Σ of the other weights + w k n)."""
    left = root - decay * samples
    return decay * others / left if left > 0 else None


def _oversampling(strength: float, others: float, own: float, decay: float) -> float | None:
    """The least m with w√(m n) = λ_Z (others + m · own), a quadratic in √m; copies of samples count in N and in λ_H too."""
    square = strength**2 - 4 * decay**2 * own * others
    if square < 0:
        return None
    root = 2 * decay * others / (strength + math.sqrt(square))  # the smaller root, without cancellation
    return root**2


def _decay(classifier_decay: Number, feature_decay: Number) -> float:
    advice = "Pass the factor λ of (λ/2)‖·‖², 5e-4 say."
    classifier = checked_positive(classifier_decay, "`classifier_decay`", advice)
    return math.sqrt(classifier) * math.sqrt(checked_positive(feature_decay, "`feature_decay`", advice))
