"""Projections: second-pass state of one site, the within-class spread along the class-mean directions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.moments import as_float64, class_sums
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64, Int, Shaped


@dataclass(frozen=True, slots=True)
class Projections:
    """Per class and direction j: count, mean and centered sum of squares of v_jᵀ(x_i − m_{y_i}).

    The means are zero up to rounding when the second reading saw the data of the first; if they are not, the data
    changed in between (see `drift`). The squares are centered on the second reading's own mean either way.
    """

    counts: Int[Tensor, " k"]
    means: Float64[Tensor, "k r"]
    squares: Float64[Tensor, "k r"]

    @staticmethod
    def of(residuals: Float64[Tensor, "n r"], labels: Int[Tensor, " n"], *, classes: int) -> Projections:
        """The state of one batch of projected residuals (see `project`)."""
        y = labels.to(residuals.device)
        counts = torch.bincount(y, minlength=classes)
        means = class_sums(residuals, y, classes=classes) / counts.clamp(min=1).unsqueeze(1)
        centered = residuals - means[y]
        return Projections(counts=counts, means=means, squares=class_sums(centered.square(), y, classes=classes))

    def merge(self, other: Projections) -> Projections:
        """The state of both data sets together (Chan, Golub & LeVeque 1979)."""
        counts = self.counts + other.counts
        share = (other.counts.to(torch.float64) / counts.clamp(min=1)).unsqueeze(1)  # k 1
        step = other.means - self.means  # k r
        return Projections(
            counts=counts,
            means=self.means + share * step,
            squares=self.squares + other.squares + step.square() * share * self.counts.unsqueeze(1),
        )

    def drift(self, *, rounding: float = 0.0) -> float:
        """How far class means moved between the readings, in units of the within-class spread; rounding gives ~1e-10.

        Moves of less than `rounding`, that of the means themselves, are none: collapsed classes have no spread.
        """
        n = self.counts.clamp(min=1).to(torch.float64).unsqueeze(1)
        spread, moved = float((self.squares / n).sum().sqrt()), float(self.means.norm())
        return moved / spread if spread > 0 and moved > rounding else 0.0


def project(
    features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"], *, subspace: ClassSubspace
) -> Float64[Tensor, "n r"]:
    """v_jᵀ(x_i − m_{y_i}): subtracted before projecting, so that a tight class far from the origin keeps its digits."""
    x = as_float64(features)
    return (x - subspace.means[labels.to(x.device)]) @ subspace.directions


def nearest_centers(
    residuals: Float64[Tensor, "n r"], labels: Int[Tensor, " n"], *, subspace: ClassSubspace
) -> Int[Tensor, " n"]:
    """argmin_k ‖x − m_k‖ of every sample, among the classes that have samples.

    All m_k lie in the center plus the span of the directions, so distances differ only inside it: with z the sample's
    coordinates and c_k the class's, argmin ‖c_k‖² − 2 z·c_k.
    """
    y = labels.to(residuals.device)
    z = residuals + subspace.coordinates[y]  # n r
    norms = subspace.coordinates.square().sum(dim=1)  # k
    distances = norms - 2 * (z @ subspace.coordinates.T)  # n k
    distances[:, subspace.counts == 0] = torch.inf
    return distances.argmin(dim=1)
