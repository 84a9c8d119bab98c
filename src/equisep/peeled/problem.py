"""The Layer-Peeled problem (Fang, He, Long & Su 2021): classes in groups of equal weight, and two energies."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equisep.display import brief
from equisep.errors import InputError
from equisep.shapes import Float64, Int

# E_H and E_W of the figures in Fang, He, Long & Su 2021, taken where none are given
FEATURE_ENERGY, WEIGHT_ENERGY = 5.0, 1.0
# weights that differ by no more than the rounding of n_k · loss weight / N are one weight
SAME = 1e-13
ROUNDING = 1e-9  # of a count that was computed, 1000 · 0.7² say

if TYPE_CHECKING:
    Numbers = Iterable[Any]
    Number = float
    Whole = int
else:
    Numbers = Number = Whole = Any  # so that what is no number reaches the sentences below, whoever checks types


@brief
@dataclass(frozen=True, slots=True)
class Problem:
    """min_Z Σ_k ω_k CE(z_k, k)  subject to  ‖Z‖_* ≤ τ = K √(E_W E_H), for classes in groups of equal ω.

    `weights` are the ω of *one* class of each group: loss weight · n_k/N, or any positive numbers. A weight of 0 stands
    for a group that is absent from the loss (an infinite imbalance ratio). `membership` is the group of each class in
    the order the classes were given; `None` where they stand in the order of the groups.

    >>> from equisep import peeled
    >>> problem = peeled.Problem.of_sizes([500] * 5 + [50] * 5, feature_energy=5, weight_energy=1)
    >>> problem.classes, problem.groups
    (10, 2)
    """

    group_sizes: tuple[int, ...]
    weights: tuple[float, ...]
    feature_energy: float
    weight_energy: float
    membership: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        checked_energy(self.feature_energy, "feature_energy")
        checked_energy(self.weight_energy, "weight_energy")
        checked_class_count(sum(self.group_sizes))
        if len(self.weights) != len(self.group_sizes):
            raise InputError(
                f"A problem needs one weight per group; found {len(self.weights)} weights for {len(self.group_sizes)} "
                "groups. Pass lists of one length."
            )
        if not all(0 <= weight < math.inf for weight in self.weights) or max(self.weights) == 0:
            raise InputError(
                f"The weights of a problem must be finite, not negative and not all 0; found {list(self.weights)}. "
                "Pass loss weight · class size / samples for each group."
            )
        if not (0 < self.budget < math.inf):
            raise InputError(
                f"The budget K·√(E_W·E_H) must be a finite number above 0; found {self.budget:g}. "
                "Pass energies of ordinary size."
            )

    @property
    def classes(self) -> int:
        """K, the number of classes."""
        return sum(self.group_sizes)

    @property
    def groups(self) -> int:
        """G, the number of groups."""
        return len(self.group_sizes)

    @property
    def budget(self) -> float:
        """τ = K √(E_W E_H), the largest nuclear norm of the logits."""
        return self.classes * math.sqrt(self.weight_energy) * math.sqrt(self.feature_energy)

    @property
    def class_groups(self) -> Int[np.ndarray, " k"]:
        """The group of each class, in the order the classes were given."""
        if self.membership is None:
            return np.repeat(np.arange(self.groups), self.group_sizes)
        return np.asarray(self.membership)

    @property
    def class_weights(self) -> Float64[np.ndarray, " k"]:
        """ω_k of each class, in the order the classes were given."""
        omegas: Float64[np.ndarray, " g"] = np.asarray(self.weights, dtype=np.float64)
        return np.take(omegas, self.class_groups)

    @classmethod
    def of_sizes(
        cls, sizes: Numbers, *, feature_energy: Number, weight_energy: Number, loss_weights: Numbers | None = None
    ) -> Problem:
        """Class sizes n_k (and loss weights): ω_k = loss weight · n_k/N; classes of equal ω form one group."""
        counts = np.asarray(checked_sizes(sizes), dtype=np.float64)
        checked_class_count(len(counts))
        factors = np.ones(len(counts))
        if loss_weights is not None:
            factors = np.asarray(
                checked_weights(loss_weights, "Loss weights", "The loss weight of class", count=len(counts))
            )
        return _grouped(factors * counts / counts.sum(), feature_energy, weight_energy)

    @classmethod
    def of_weights(cls, weights: Numbers, *, feature_energy: Number, weight_energy: Number) -> Problem:
        """Weights ω_k as they are, one a class; classes of equal ω form one group."""
        omegas = np.asarray(checked_weights(weights, "Class weights", "The weight of class"))
        checked_class_count(len(omegas))
        return _grouped(omegas, feature_energy, weight_energy)

    @classmethod
    def of_groups(
        cls, group_sizes: Numbers, weights: Numbers, *, feature_energy: Number, weight_energy: Number
    ) -> Problem:
        """Groups as they are: k_g classes of weight ω_g each, in this order, joined or not."""
        advice = "Pass the number of classes of each group, [5, 5] say."
        entries = checked_list(group_sizes, "Group sizes", advice)
        counts = tuple(checked_count(size, f"The size of group {index}", advice) for index, size in enumerate(entries))
        omegas = checked_weights(weights, "Group weights", "The weight of group", count=len(counts))
        return cls(counts, omegas, *_energies(feature_energy, weight_energy))

    @classmethod
    def two_groups(
        cls, majority: Whole, minority: Whole, ratio: Number, *, feature_energy: Number, weight_energy: Number
    ) -> Problem:
        """`majority` classes of weight 1 and `minority` classes of weight 1/R; R = inf leaves those out of the loss."""
        advice = "Pass the number of classes, 5 say."
        counts = (
            checked_count(majority, "The number of majority classes", advice),
            checked_count(minority, "The number of minority classes", advice),
        )
        return cls(counts, (1.0, 1.0 / checked_ratio(ratio)), *_energies(feature_energy, weight_energy))


def _energies(feature_energy: Number, weight_energy: Number) -> tuple[float, float]:
    return checked_energy(feature_energy, "feature_energy"), checked_energy(weight_energy, "weight_energy")


def _grouped(omegas: Float64[np.ndarray, " k"], feature_energy: Number, weight_energy: Number) -> Problem:
    """One group for each distinct weight, the largest first."""
    order = np.argsort(-omegas, kind="stable")
    falling = omegas[order]
    starts = np.concatenate(([True], falling[1:] < falling[:-1] * (1 - SAME)))
    group_of_sorted = np.cumsum(starts) - 1
    membership = np.empty(len(omegas), dtype=np.int64)
    membership[order] = group_of_sorted
    return Problem(
        group_sizes=tuple(np.bincount(group_of_sorted).tolist()),
        weights=tuple(falling[starts].tolist()),
        feature_energy=checked_energy(feature_energy, "feature_energy"),
        weight_energy=checked_energy(weight_energy, "weight_energy"),
        membership=tuple(membership.tolist()),
    )


# what the numbers of a problem may be, and the sentence for each that may not
def checked_energy(value: Any, name: str) -> float:
    """An energy (E_H or E_W): a finite number above 0."""
    return checked_positive(value, f"`{name}`", "Pass the mean squared norm that is allowed, 5 say.")


def checked_positive(value: Any, what: str, advice: str) -> float:
    """A finite number above 0, or an `InputError` that names `what` it should have been."""
    number = _real(value)
    if number is None or not math.isfinite(number) or number <= 0:
        raise InputError(f"{what} must be a finite number above 0; found {_shown(value)}. {advice}")
    return number


def checked_ratio(value: Any) -> float:
    """An imbalance ratio R: above 0, and `inf` where the minority is absent from the loss."""
    number = _real(value)
    if number is None or math.isnan(number) or number <= 0:
        raise InputError(
            f"The imbalance ratio must be above 0; found {_shown(value)}. "
            "Pass majority over minority class size, or inf to leave the minority out of the loss."
        )
    return number


def checked_count(value: Any, what: str, advice: str) -> int:
    """A whole number, 1 or more; 500.0 counts as whole and so does 499.99999999999994, 2.5 and `True` do not."""
    number = _real(value)
    whole = round(number) if number is not None and math.isfinite(number) else 0
    if number is None or whole < 1 or abs(number - whole) > ROUNDING * whole:
        raise InputError(f"{what} must be a whole number, 1 or more; found {_shown(value)}. {advice}")
    return int(value) if number == whole else whole


def checked_list(values: Any, what: str, advice: str) -> list[Any]:
    """The entries of a list that is not empty."""
    no_list = isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable)
    if no_list or getattr(values, "ndim", 1) == 0:  # an array of no dimension says that it can be iterated
        raise InputError(f"{what} must be a list of numbers; found {_shown(values)}. {advice}")
    entries = list(values)
    if not entries:
        raise InputError(f"{what} must not be empty; found no entry. {advice}")
    return entries


def checked_sizes(sizes: Any) -> tuple[int, ...]:
    """Class sizes n_k, one a class."""
    advice = "Pass the number of samples of each class, [500, 500, 50] say."
    entries = checked_list(sizes, "Class sizes", advice)
    return tuple(checked_count(size, f"The size of class {index}", advice) for index, size in enumerate(entries))


def checked_weights(weights: Any, what: str, one: str, *, count: int | None = None) -> tuple[float, ...]:
    """Weights above 0, `count` of them where that is known; `one` names one of them in the sentence."""
    advice = "Pass one weight above 0 for each."
    entries = checked_list(weights, what, advice)
    if count is not None and len(entries) != count:
        raise InputError(f"{what} must be {count} numbers, one for each; found {len(entries)}. {advice}")
    return tuple(checked_positive(entry, f"{one} {index}", advice) for index, entry in enumerate(entries))


def checked_class_count(classes: int) -> None:
    """A classifier has at least two classes."""
    if classes < 2:
        raise InputError(
            f"A Layer-Peeled problem needs at least 2 classes; found {classes}. Pass the sizes of all classes."
        )


def _real(value: Any) -> float | None:
    """The value as a float, or `None` for what is no real number: text, booleans, complex numbers, arrays."""
    if isinstance(value, bool | np.bool_ | str | bytes) or np.ndim(value) > 0:
        return None
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | bytes) or value is None else " ".join(str(value).split())
    return text if len(text) <= 40 else f"{text[:37]}…"
