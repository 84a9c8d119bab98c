"""Projections: the mergeable state of a second pass, the within-class spread along the class-mean directions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.group_sums import class_adder
from equisep.shapes import Float64, Int


@dataclass(frozen=True, slots=True)
class Projections:
    """Per class: count, spread ‖x_i − m_k‖² summed, and of every direction j mean and centered sum of squares of v_jᵀ(x_i − m_k).

    The means are zero up to rounding when the second reading saw the data of the first; if they are not, the data
    changed in between (see `drift`). The squares are centered on the second reading's own mean either way.
    """

    counts: Int[Tensor, " k"]
    means: Float64[Tensor, "k r"]
    squares: Float64[Tensor, "k r"]
    traces: Float64[Tensor, " k"]

    @staticmethod
    def of(
        residuals: Float64[Tensor, "n r"], norms: Float64[Tensor, " n"], labels: Int[Tensor, " n"], *, classes: int
    ) -> Projections:
        """The state of one batch of residuals: projected, and their squared norms."""
        summed, counts = class_adder(labels, classes), torch.bincount(labels, minlength=classes)
        means = summed(residuals) / counts.clamp(min=1).unsqueeze(1)
        centered = residuals - means.index_select(0, labels)
        return Projections(counts, means, summed(centered.square_()), summed(norms.unsqueeze(1)).squeeze(1))

    @staticmethod
    def none(directions: Float64[Tensor, "d r"], *, classes: int) -> Projections:
        """The state before any row."""
        zeros = directions.new_zeros(classes, directions.shape[1])
        counts = torch.zeros(classes, dtype=torch.int64, device=directions.device)
        return Projections(counts, zeros, zeros.clone(), directions.new_zeros(classes))

    def add(self, residuals: Float64[Tensor, "n r"], norms: Float64[Tensor, " n"], labels: Int[Tensor, " n"]) -> None:
        """Add one batch in place: of many classes, those that it holds are all that is touched."""
        present, group = labels.unique(return_inverse=True)
        batch = Projections.of(residuals, norms, group, classes=len(present))
        mine = (self.counts, self.means, self.squares, self.traces)
        joined = Projections(*(part[present] for part in mine)).merge(batch)
        for part, new in zip(mine, (joined.counts, joined.means, joined.squares, joined.traces), strict=True):
            part[present] = new

    def merge(self, other: Projections) -> Projections:
        """The state of both data sets together (Chan, Golub & LeVeque 1979)."""
        counts = self.counts + other.counts
        share = (other.counts.to(torch.float64) / counts.clamp(min=1)).unsqueeze(1)  # k 1
        step = other.means - self.means  # k r
        return Projections(
            counts=counts,
            means=self.means + share * step,
            squares=self.squares + other.squares + step.square() * share * self.counts.unsqueeze(1),
            traces=self.traces + other.traces,
        )

    @property
    def variances(self) -> Float64[Tensor, " k"]:
        """Var_k = (1/n_k) Σ ‖x_ki − m_k‖²; 0 for a class without rows."""
        return self.traces / self.counts.clamp(min=1)

    def drift(self, *, rounding: float = 0.0) -> float:
        """How far class means moved between the readings, in units of the within-class spread; rounding gives ~1e-10.

        Moves of less than `rounding`, that of the means themselves, are none: collapsed classes have no spread.
        """
        n = self.counts.clamp(min=1).to(torch.float64).unsqueeze(1)
        spread, moved = float((self.squares / n).sum().sqrt()), float(self.means.norm())
        return moved / spread if spread > 0 and moved > rounding else 0.0
