"""ClassMoments: counts, means and within-class traces of every class, in float64, mergeable in any order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.shapes import Float64, Int, Shaped

MATMUL_CLASSES = 256  # up to here a one-hot product is faster than scattered adds, and bit-reproducible on a GPU


@dataclass(frozen=True, slots=True)
class ClassMoments:
    """First-pass state of one site: n_k, m_k and Σ_i ‖x_ki − m_k‖², plus the rounding unit of the features.

    Merging is the centered update of Chan, Golub & LeVeque (1979); Σx² − n·m² never appears, since it cancels.
    """

    counts: Int[Tensor, " k"]
    means: Float64[Tensor, "k d"]
    traces: Float64[Tensor, " k"]
    eps: float

    @staticmethod
    def of(features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"], *, classes: int) -> ClassMoments:
        """The moments of one batch."""
        x = as_float64(features)
        y = labels.to(x.device)
        counts = torch.bincount(y, minlength=classes)
        divisor = counts.clamp(min=1).to(torch.float64).unsqueeze(1)  # k 1
        means = class_sums(x, y, classes=classes) / divisor  # k d
        residuals = x - means[y]  # n d
        traces = class_sums(torch.linalg.vecdot(residuals, residuals).unsqueeze(1), y, classes=classes).squeeze(1)
        return ClassMoments(counts=counts, means=means, traces=traces, eps=rounding_unit(features.dtype))

    def merge(self, other: ClassMoments) -> ClassMoments:
        """The moments of both data sets together."""
        if self.means.shape != other.means.shape:
            raise InputError(
                f"Only moments of one shape merge; found {tuple(self.means.shape)} and {tuple(other.means.shape)} "
                "(classes × features). Measure both with the same sites and `classes=`."
            )
        counts = self.counts + other.counts
        share = other.counts.to(torch.float64) / counts.clamp(min=1)  # k
        step = other.means - self.means  # k d
        gap = step.square().sum(dim=1)  # k
        return ClassMoments(
            counts=counts,
            means=self.means + share.unsqueeze(1) * step,
            traces=self.traces + other.traces + gap * share * self.counts,
            eps=max(self.eps, other.eps),
        )

    @property
    def classes(self) -> int:
        """K, absent classes included."""
        return self.counts.shape[0]

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.means.shape[1]

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.counts.sum())

    @property
    def present(self) -> Int[Tensor, " p"]:
        """The classes that have samples."""
        return self.counts.nonzero().flatten()


def merge_all(parts: list[ClassMoments]) -> ClassMoments:
    """All parts merged, left to right."""
    return reduce(ClassMoments.merge, parts)


def class_sums(x: Float64[Tensor, "n d"], y: Int[Tensor, " n"], *, classes: int) -> Float64[Tensor, "k d"]:
    """Σ_{i: y_i = k} x_i for every class k."""
    if classes <= MATMUL_CLASSES:
        one_hot = torch.nn.functional.one_hot(y, classes).to(x.dtype)  # n k
        return one_hot.T @ x
    return x.new_zeros(classes, x.shape[1]).index_add_(0, y, x)


def as_float64(features: Shaped[Tensor, "*m n d"]) -> Float64[Tensor, "*m n d"]:
    """Features in float64, on the CPU where the device has no float64."""
    if features.device.type == "mps":
        features = features.cpu()
    return features.detach().to(torch.float64)


def rounding_unit(dtype: torch.dtype) -> float:
    """The relative rounding step of the numbers as they came; integers came exact."""
    return torch.finfo(dtype).eps if dtype.is_floating_point else torch.finfo(torch.float64).eps
