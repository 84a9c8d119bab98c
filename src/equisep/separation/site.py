"""One site's statistics in two passes over its features, which come from memory or from two readings of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from equisep.separation.assignments import Marks
from equisep.separation.blocks import Block, blocks_of, quick_type, residuals_from
from equisep.separation.convention import PHD20, Convention
from equisep.separation.group_sums import GroupSums
from equisep.separation.moments import ClassMoments, class_sums
from equisep.separation.projections import Projections
from equisep.separation.relabeled import Lenses
from equisep.separation.states import HeldOut, SiteStates, Spread, center_counts, same_for_collapse
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64, Int, Shaped

if TYPE_CHECKING:
    from equisep.measuring.options import Options


class Residuals:
    """Second pass over one labeling: the spread around the class means and along their subspace."""

    def __init__(
        self, counts: Int[Tensor, " k"], means: Float64[Tensor, "k d"], convention: Convention, *, offset: float = 0.0
    ) -> None:
        self.counts, self.means, self.convention, self.offset = counts, means, convention, offset
        self.subspace = ClassSubspace.spanned(counts, means, convention)
        self.traces = torch.zeros(len(counts), dtype=torch.float64, device=means.device)
        self.projections: Projections | None = None

    def look(
        self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks, directions: Shaped[Tensor, "m d"] | None = None
    ) -> Iterator[tuple[Block, Marks, Float64[Tensor, "n r"], Shaped[Tensor, "n m"] | None]]:
        """Add rows as they are drawn from this: piece by piece, with their residuals on the subspace and on `directions`."""
        for rows, block in blocks_of(features, across=0 if directions is None else len(directions)):
            part = marks.part(rows).to(self.means.device)
            norms, along, other = _projected(block, part.labels, self.means, self.subspace.directions, directions)
            self.traces += class_sums(norms.unsqueeze(1), part.labels, classes=len(self.counts)).squeeze(1)
            batch = Projections.of(along, part.labels, classes=len(self.counts))
            self.projections = batch if self.projections is None else self.projections.merge(batch)
            yield block, part, along, other

    def spread(self, *, eps: float) -> Spread:
        """What both passes found, for features known to relative `eps`."""
        assert self.projections is not None
        moments = ClassMoments(counts=self.counts, means=self.means, traces=self.traces, eps=eps)
        sizes = self.means.square().sum(dim=1) + self.offset
        subspace = self.subspace.judged(self.convention, traces=self.traces, eps=eps, sizes=sizes)
        return Spread(moments, subspace, self.projections)


def _projected(
    block: Block,
    y: Int[Tensor, " n"],
    means: Float64[Tensor, "k d"],
    directions: Float64[Tensor, "d r"],
    others: Shaped[Tensor, "m d"] | None,
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, "n r"], Shaped[Tensor, "n m"] | None]:
    """‖r_i‖², Vᵀr_i and W r_i of the residuals r_i = x_i − m_{y_i}, W in its own precision; columns in blocks."""
    norms = directions.new_zeros(block.rows)
    along = directions.new_zeros(directions.shape[1], block.rows)  # this way round the thin product is the quicker
    other = None if others is None else others.new_zeros(others.shape[0], block.rows)
    for columns, x in block.columns():
        r = residuals_from(x, means[:, columns], y)
        norms += torch.linalg.vector_norm(r, dim=1).square_()
        along.addmm_(directions[columns].T, r.T)
        if other is not None and others is not None:
            other.addmm_(others[:, columns], r.to(others.dtype).T)
    return norms, along.T, None if other is None else other.T


class TrainSite:
    """The training data at one site: `first` for all rows, `turn`, `second` for all rows again, `states`.

    `offset` is the squared norm of what was taken off all rows before, as centered components are: their rounding is that
    of the features they were.
    """

    def __init__(
        self, *, classes: int, folds: int, permutations: int, options: Options, layer: nn.Linear | None, offset: float
    ) -> None:
        self.folds, self.options, self.layer, self.offset = folds, options, layer, offset
        self.sums: GroupSums | None = GroupSums(classes=classes, folds=folds, permutations=permutations)
        self.hits: int | Tensor = 0
        self.disagreements: int | Tensor = 0

    def first(self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks) -> None:
        """First pass: sums."""
        assert self.sums is not None
        self.kind = quick_type(features[0])
        self.sums.add(features, marks)

    def turn(self) -> None:
        """Between the passes: means and subspaces. The sums are let go of."""
        assert self.sums is not None
        sums, convention = self.sums, self.options.convention
        self.eps = sums.eps
        self.main = Residuals(sums.counts, sums.means, convention, offset=self.offset)
        self.lenses = None
        if self.folds or sums.permutations:
            self.lenses = Lenses(sums, convention=convention, folds=self.folds, kind=self.kind)
        self.sums = None
        other = self.options.wants("collapse") and not same_for_collapse(self.main.counts, convention)
        # all means lie on the subspace: their coordinates there are all that another weighting needs
        self.collapse = Residuals(self.main.counts, self.main.subspace.coordinates, PHD20) if other else None

    def second(self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks) -> None:
        """Second pass: the spread along the subspaces, and nearest centers."""
        directions = None if self.lenses is None else self.lenses.directions
        space = self.main.subspace
        for block, part, along, other in self.main.look(features, marks, directions):
            hits, disagreements = center_counts(along, block, part.labels, space, self.layer)
            self.hits += hits
            self.disagreements += disagreements
            if self.lenses is not None and other is not None:
                self.lenses.look(other, part)
            if self.collapse is not None:
                points = along + space.coordinates[part.labels]
                for _ in self.collapse.look([points], part):
                    pass

    def states(self, *, steady: bool = True) -> SiteStates:
        """The result; what depends on the order of the samples is left out where the order changed."""
        spread = self.main.spread(eps=self.eps)
        null = replicates = None
        if self.lenses is not None and steady:
            n = spread.moments.n
            variance = (float(spread.moments.traces.sum()) + n * self._between()) / n
            null = self.lenses.null(spread=variance, eps=self.eps, offset=self.offset)
            if self.folds and spread.subspace.rank:
                values = self.lenses.left_out(rank=spread.subspace.rank)
                replicates = torch.tensor(values, dtype=torch.float64, device="cpu")
        collapse = None
        if self.options.wants("collapse"):
            collapse = spread if self.collapse is None else self._collapse(spread)
        return SiteStates(
            train=spread,
            collapse=collapse,
            null=null,
            hits=int(self.hits),
            disagreements=int(self.disagreements) if self.layer is not None else None,
            replicates=replicates,
            drift=spread.drift(),
        )

    def _between(self) -> float:
        """Σ n_k ‖m_k − m‖²/n, whatever the convention."""
        counts, points = self.main.counts, self.main.subspace.coordinates
        share = counts.to(torch.float64) / counts.sum()
        return float(share @ (points - share @ points).square().sum(dim=1))

    def _collapse(self, spread: Spread) -> Spread:
        """The spread under PHD20's weighting, its rank judged by the features themselves."""
        assert self.collapse is not None and self.collapse.projections is not None
        moments = spread.moments
        sizes = moments.means.square().sum(dim=1) + self.offset
        space = self.collapse.subspace.judged(PHD20, traces=moments.traces, eps=self.eps, sizes=sizes, dim=moments.dim)
        return Spread(moments, space, self.collapse.projections)


class HeldOutSite:
    """The test data at one site: D by their own means, nearest centers by the training means."""

    def __init__(self, train: ClassSubspace, *, options: Options, layer: nn.Linear | None, offset: float) -> None:
        self.train, self.options, self.layer, self.offset = train, options, layer, offset
        self.sums: GroupSums | None = GroupSums(classes=len(train.counts), folds=0, permutations=0)
        self.hits: int | Tensor = 0
        self.disagreements: int | Tensor = 0

    def first(self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks) -> None:
        """First pass: sums, and nearest training centers."""
        assert self.sums is not None
        self.sums.add(features, marks)
        for rows, block in blocks_of(features):
            y = marks.labels[rows].to(self.train.means.device)
            _, along, _ = _projected(block, y, self.train.means, self.train.directions, None)
            hits, disagreements = center_counts(along, block, y, self.train, self.layer)
            self.hits += hits
            self.disagreements += disagreements

    def turn(self) -> None:
        """Between the passes: means and subspace."""
        assert self.sums is not None
        self.eps = self.sums.eps
        self.own = Residuals(self.sums.counts, self.sums.means, self.options.convention, offset=self.offset)
        self.sums = None

    def second(self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks) -> None:
        """Second pass: the spread along the subspace."""
        for _ in self.own.look(features, marks):
            pass

    def states(self) -> HeldOut:
        """The result."""
        disagreements = int(self.disagreements) if self.layer is not None else None
        return HeldOut(self.own.spread(eps=self.eps), int(self.hits), disagreements)
