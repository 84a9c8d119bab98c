"""Directional CDNV: the spread of a class along the lines to the other class means, over the distances squared."""

from __future__ import annotations

import torch
from torch import Tensor

from equisep.separation.group_sums import ClassCenters, row_adder
from equisep.separation.pairs.means import squared_distances, squared_rounding
from equisep.separation.subspace import ClassSubspace, Projections
from equisep.shapes import Float64, Int

DIRECTED_CLASSES = 1024  # up to here the K × K sums of a site are kept (8 MiB)


class AxisSums:
    """Σ_i (r_iᵀ(m_j − m_k))² of every class k towards every class j, r_i = x_i − m_k: sums that add up over batches.

    All m_j lie on the subspace, so residuals on it are enough: n·K·r products, as nearest centers take. In units of the largest
    singular value of the means, so that features of any size keep their squares.
    """

    def __init__(self, subspace: ClassSubspace) -> None:
        self.subspace, k = subspace, len(subspace.counts)
        s = subspace.singular_values
        self.unit = float(s[0]) if s.numel() else 1.0
        self.points = subspace.coordinates / self.unit  # k r
        self.sums = self.points.new_zeros(k, k)

    def look(self, residuals: Float64[Tensor, "n r"], labels: Int[Tensor, " n"]) -> None:
        """Add rows by their residuals on the subspace."""
        towards = residuals @ self.points.T  # n k
        towards -= towards.gather(1, labels.unsqueeze(1))
        row_adder(labels, len(self.sums))(self.sums, towards.square_())

    def merge(self, other: AxisSums) -> AxisSums:
        """The sums of both parts of the data; of the same first pass, so of the same subspace."""
        joined = AxisSums(self.subspace)
        joined.sums = self.sums + other.sums
        return joined

    def mean_cdnv(self, projections: Projections, centers: ClassCenters) -> float | None:
        """Mean over ordered pairs i ≠ j of uᵀ Σ_i u / ‖m_i − m_j‖², u = (m_i − m_j)/‖m_i − m_j‖; None where means coincide.

        Σ_i = (1/n_i) Σ (x − m_i)(x − m_i)ᵀ (Luthra, Salunkhe & Galanti 2026). With the whole variance in place of that along
        u it is the CDNV, which is never smaller. Residuals are about the second reading's own means, as those of D are.
        """
        present = centers.present
        n = centers.counts[present].to(torch.float64).unsqueeze(1)
        # what the means moved by between two readings: rounding, where both saw the same data
        moved = (projections.means @ self.points.T)[present][:, present]
        moved -= moved.diagonal().unsqueeze(1).clone()
        along = (self.sums[present][:, present] / n - moved.square()).clamp_(min=0)  # p p
        nothing, total = squared_rounding(centers), 0.0
        for rows, columns, squared in squared_distances(self.subspace.coordinates[present]):
            if not bool((squared > nothing).all()):
                return None
            both = along[rows, columns] + along.T[rows, columns]
            total += float((both / (squared / self.unit**2) / squared).sum())
        return total / (len(present) * (len(present) - 1))
