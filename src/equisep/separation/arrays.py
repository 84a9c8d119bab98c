"""Plain tensors and arrays through the same two passes that a model's sites go through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from equisep.errors import FeatureError, InputError
from equisep.labels import as_tensor, class_indices, distinct
from equisep.separation.assignments import Assignments
from equisep.separation.blocks import with_float64
from equisep.separation.convention import Convention
from equisep.separation.group_sums import ClassCenters, GroupSums
from equisep.separation.site import SecondPass, Spread
from equisep.separation.subspace import AS_GIVEN
from equisep.shapes import Int, Shaped

SQUARED = 1e150, 1e-150  # numbers beyond these have no square in float64
COMMON = 1e30, 1e-30  # … and between these no common scale is needed


@dataclass(frozen=True, slots=True)
class LabeledRows:
    """Checked features with class indices 0 … K−1, and the names of the classes in that order."""

    features: Shaped[Tensor, "n d"]
    labels: Int[Tensor, " n"]
    names: Int[Tensor, " k"]

    @property
    def classes(self) -> int:
        """K."""
        return self.names.numel()

    def centers(self) -> ClassCenters:
        """First pass."""
        sums = GroupSums(classes=self.classes)
        sums.add([self.features], Assignments(self.labels))
        return sums.centers

    def spread(self, convention: Convention, *, precision: str = "float64") -> Spread:
        """Both passes; `float32` products where they are seen to keep six digits of D."""
        second = SecondPass(self.centers(), convention, precision=precision)
        for _ in second.look([self.features], Assignments(self.labels)):
            pass
        return second.spread(steps=AS_GIVEN)


def labeled_rows(x: Any, y: Any, *, asked: str) -> LabeledRows:
    """Features as n × d and labels as class indices, at least two classes, or one sentence that says what is wrong."""
    features, names = checked_arrays(x, y, asked=asked)
    labels, _ = distinct(names, asked=asked)
    return LabeledRows(scaled(features), labels.to(features.device), names.unique())


def checked_arrays(x: Any, y: Any, *, asked: str) -> tuple[Shaped[Tensor, "n d"], Int[Tensor, " n"]]:
    """Features as n × d and n integer labels, or one sentence that says what is wrong."""
    features = as_tensor(x, what="The features")
    labels, _ = class_indices(y)
    if features.ndim < 2:
        raise InputError(f"{asked} needs features of shape n × d; found shape {tuple(features.shape)}.")
    if features.is_complex():
        raise InputError(
            f"{asked} needs real features; found {features.dtype}. Pass real and imaginary parts side by side."
        )
    if features.shape[0] != labels.shape[0]:
        raise InputError(
            f"{asked} needs one label per sample; found {features.shape[0]} samples and {labels.shape[0]} labels."
        )
    if features.shape[0] == 0 or features[0].numel() == 0:
        raise InputError(f"{asked} needs at least one sample and one feature; found shape {tuple(features.shape)}.")
    flat = with_float64(features.detach().flatten(1))
    if flat.is_floating_point() and not bool(
        flat.sum(dtype=_summed(flat)).isfinite()
    ):  # any NaN or Inf makes the sum one
        bad = int((~torch.isfinite(flat)).sum())
        if bad:
            raise FeatureError(f"{asked} needs finite features; {bad} of {flat.numel()} numbers are NaN or Inf.")
    return flat, labels


def _summed(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def scaled(x: Shaped[Tensor, "n d"], *, like: Tensor | None = None) -> Shaped[Tensor, "n d"]:
    """The features by a common power of two, where their squares would leave float64: no metric sees a common scale.

    `like` are the features whose scale is to be taken, so that two data sets stay comparable.
    """
    if x.dtype != torch.float64:
        return x  # float32 has no number whose square float64 has not
    low, high = (like if like is not None else x).aminmax()
    size = max(abs(float(low)), abs(float(high)))
    if COMMON[1] < size < COMMON[0] or size == 0:
        return x
    exponent = int(torch.frexp(torch.tensor(size, dtype=torch.float64)).exponent)
    half = exponent // 2  # in two steps: 2^−1100 is no number
    return x * 2.0**-half * 2.0 ** (half - exponent)
