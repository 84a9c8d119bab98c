"""Plain tensors and arrays through the same two passes that a model's sites go through."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import torch
from torch import Tensor

from equisep.errors import FeatureError, InputError
from equisep.labels import as_tensor, class_indices, distinct
from equisep.separation.assignments import Assignments
from equisep.separation.blocks import with_float64
from equisep.separation.convention import Convention
from equisep.separation.group_sums import ClassCenters, GroupSums
from equisep.separation.site import SecondPass, Spread
from equisep.separation.subspace import AS_GIVEN, Projections
from equisep.shapes import Int, Shaped
from equisep.workers import parallel_map, torch_threads

Result = TypeVar("Result")

PART_NUMBERS = 2**20  # of the features of a part, at least: for fewer, threads take as long to start as to work
PART_ROWS = 8  # of a class in a part on average, at least: the sums of all parts are not more than the features
SHARED_PRODUCTS = 2**26  # of a decomposition, from which on torch's threads are worth their waiting for one another
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

    def of_parts(self, work: Callable[[LabeledRows], Result]) -> list[Result]:
        """`work` of consecutive rows, of all parts at the same time; of all rows where they are few."""

        def of_rows(rows: slice) -> Result:
            return work(LabeledRows(self.features[rows], self.labels[rows], self.names))

        return in_parts(of_rows, self.features, least=PART_ROWS * self.classes)

    @property
    def _threads(self) -> int:
        """Of torch's threads, as many as the decomposition of K × d numbers is worth."""
        return torch.get_num_threads() if self.classes**2 * self.features.shape[1] >= SHARED_PRODUCTS else 1

    def centers(self) -> ClassCenters:
        """First pass."""

        def summed(rows: LabeledRows) -> GroupSums:
            sums = GroupSums(classes=self.classes)
            sums.add([rows.features], Assignments(rows.labels))
            return sums

        parts = self.of_parts(summed)
        with torch_threads(self._threads):
            return reduce(GroupSums.merge, parts).centers

    def spread(self, convention: Convention, *, precision: str = "float64") -> Spread:
        """Both passes; `float32` products where they are proven to keep six digits of D."""
        centers = self.centers()
        with torch_threads(self._threads):
            whole = SecondPass(centers, convention, precision=precision)

        def looked(rows: LabeledRows) -> Projections:
            second = SecondPass(whole.centers, convention, whole.subspace, precision=precision)
            for _ in second.look([rows.features], Assignments(rows.labels)):
                pass
            assert second.projections is not None
            return second.projections

        parts = self.of_parts(looked)
        with torch_threads(self._threads):
            whole.projections = reduce(Projections.merge, parts)
            return whole.spread(steps=AS_GIVEN)


@dataclass(frozen=True, slots=True)
class CheckedArrays:
    """Features as n × d, n integer labels, and the norm of all features: infinite beyond their range, 0 of whole numbers."""

    features: Shaped[Tensor, "n d"]
    labels: Int[Tensor, " n"]
    norm: float


def labeled_rows(x: Any, y: Any, *, asked: str) -> LabeledRows:
    """Features as n × d and labels as class indices, at least two classes, or one sentence that says what is wrong."""
    return labeled(checked_arrays(x, y, asked=asked), asked=asked)


def labeled(arrays: CheckedArrays, *, asked: str) -> LabeledRows:
    """Checked arrays as rows of at least two classes, of a size whose squares float64 has."""
    labels, names = distinct(arrays.labels, asked=asked)
    return LabeledRows(scaled(arrays.features, like=arrays), labels.to(arrays.features.device), names)


def checked_arrays(x: Any, y: Any, *, asked: str) -> CheckedArrays:
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
    norm = 0.0
    if flat.is_floating_point():  # any NaN or Inf makes the norm one
        kind = torch.promote_types(flat.dtype, torch.float32)
        norm = math.hypot(*in_parts(lambda rows: float(torch.linalg.vector_norm(flat[rows], dtype=kind)), flat))
    if not math.isfinite(norm):
        bad = int((~torch.isfinite(flat)).sum())
        if bad:
            raise FeatureError(f"{asked} needs finite features; {bad} of {flat.numel()} numbers are NaN or Inf.")
    return CheckedArrays(flat, labels, norm)


def in_parts(work: Callable[[slice], Result], features: Shaped[Tensor, "n d"], *, least: int = 1) -> list[Result]:
    """`work` of consecutive rows, `least` of them at least, in order: each thread of torch's has a part of its own.

    Torch's threads would share every operation instead and wait for one another at its end: blocks that fit a cache are then no
    quicker on two quiet cores than on one, and far slower on busy ones. Few numbers have one thread.
    """
    n, threads, worth = len(features), torch.get_num_threads(), features.numel() // PART_NUMBERS
    parts = min(threads, worth, n // least)
    if features.device.type != "cpu" or parts < 2:
        with torch_threads(threads if worth > 1 else 1):
            return [work(slice(0, n))]
    size = -(-n // parts)
    return parallel_map(work, [slice(start, start + size) for start in range(0, n, size)], threads=parts)


def scaled(x: Shaped[Tensor, "n d"], *, like: CheckedArrays) -> Shaped[Tensor, "n d"]:
    """The features by a common power of two, where their squares would leave float64: no metric sees a common scale.

    `like` are the features whose scale is to be taken, so that two data sets stay comparable. Their norm lies between the
    largest number in size and √(nd) times it, or is none: most often nothing more is to be looked at.
    """
    if x.dtype != torch.float64:
        return x  # float32 has no number whose square float64 has not
    if COMMON[1] * math.sqrt(like.features.numel()) < like.norm < COMMON[0]:
        return x
    low, high = like.features.aminmax()
    size = max(abs(float(low)), abs(float(high)))
    if COMMON[1] < size < COMMON[0] or size == 0:
        return x
    exponent = int(torch.frexp(torch.tensor(size, dtype=torch.float64)).exponent)
    half = exponent // 2  # in two steps: 2^−1100 is no number
    return x * 2.0**-half * 2.0 ** (half - exponent)
