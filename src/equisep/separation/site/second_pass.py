"""SecondPass: the spread around class means and along their subspace, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.assignments import Assignments
from equisep.separation.blocks import Block, blocks_of
from equisep.separation.convention import PHD20, Convention
from equisep.separation.gpu import FEW_DIRECTIONS, kernels_fit, residual_products, residuals_of
from equisep.separation.group_sums import ClassCenters
from equisep.separation.projections import Projections
from equisep.separation.site.records import Spread
from equisep.separation.subspace import ClassSubspace, rounding_cut
from equisep.shapes import Float64, Int, Shaped

ALIGNED = 16  # directions that a GPU multiplies by at once
WIDE = 128  # directions from which on a product of rows is the quicker one
TOUCHED_CLASSES = 512  # beyond, a batch touches the sums of its own classes only


@dataclass(frozen=True, slots=True)
class Seen:
    """Some rows of a second pass: as they came, and their residuals on the subspace and on further directions.

    `beside` are directions that need all digits, `other` such as do not.
    """

    block: Block
    rows: Assignments
    along: Float64[Tensor, "n r"]
    other: Shaped[Tensor, "n m"] | None = None
    beside: Float64[Tensor, "n q"] | None = None


class SecondPass:
    """The spread around the class means and along their subspace, as rows come."""

    def __init__(self, centers: ClassCenters, convention: Convention, subspace: ClassSubspace | None = None) -> None:
        self.centers, self.convention = centers, convention
        self.subspace = subspace or ClassSubspace.spanned(centers.counts, centers.about, convention)
        self.projections: Projections | None = None

    def look(
        self,
        features: Sequence[Shaped[Tensor, "_ d"]],
        rows: Assignments,
        directions: Shaped[Tensor, "m d"] | None = None,
        beside: Float64[Tensor, "d q"] | None = None,
    ) -> Iterator[Seen]:
        """Add rows as they are drawn from this: piece by piece, with residuals on the subspace and on further directions."""
        own = self.subspace.directions.shape[1]
        exact = self.subspace.directions if beside is None else torch.cat([self.subspace.directions, beside], dim=1)
        r, others = exact.shape[1], 0 if directions is None else len(directions)
        few = directions is None and r <= FEW_DIRECTIONS and self.centers.narrow and all(map(kernels_fit, features))
        for span, block in blocks_of(features, across=max(r, FEW_DIRECTIONS) if few else others, as_given=few):
            part = rows.part(span).to(self.centers.about.device)
            norms, both, other = projected(block, part.labels, self.centers, exact, directions)
            along, further = both[:, :own], both[:, own:]
            self.add(along, norms, part.labels)
            yield Seen(block, part, along, other, None if beside is None else further)

    def add(self, along: Float64[Tensor, "n r"], norms: Float64[Tensor, " n"], labels: Int[Tensor, " n"]) -> None:
        """Add rows by their residuals on the subspace and the squared norms of these."""
        k = self.centers.classes
        # what a GPU is told depends on which classes a batch holds, and has to be waited for
        if k > (max(TOUCHED_CLASSES, len(labels)) if labels.is_cuda else TOUCHED_CLASSES):
            if self.projections is None:
                self.projections = Projections.none(self.subspace.directions, classes=k)
            self.projections.add(along, norms, labels)
            return
        batch = Projections.of(along, norms, labels, classes=k)
        self.projections = batch if self.projections is None else self.projections.merge(batch)

    def spread(self, *, steps: float, offset: float = 0.0) -> Spread:
        """What both passes found."""
        assert self.projections is not None
        variances = self.projections.variances
        return self.judged(rounding_of(self.centers, variances, self.convention, steps=steps, offset=offset))

    def judged(self, rounding: float) -> Spread:
        """The spread, with the directions that stand above the rounding of the features."""
        assert self.projections is not None
        return Spread(self.centers, self.subspace.judged(self.convention, rounding=rounding), self.projections)


def rounding_of(
    centers: ClassCenters, variances: Float64[Tensor, " k"], convention: Convention, *, steps: float, offset: float
) -> float:
    """The rounding of the features, as a singular value of their class means."""
    between = convention.weights(centers.counts).between
    sizes = centers.sizes + variances + offset
    return float(
        rounding_cut(
            centers.counts, between, sizes=sizes, variances=variances, eps=centers.eps, dim=centers.dim, steps=steps
        )
    )


def projected(
    block: Block,
    y: Int[Tensor, " n"],
    centers: ClassCenters,
    directions: Float64[Tensor, "d r"],
    others: Shaped[Tensor, "m d"] | None = None,
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, "n r"], Shaped[Tensor, "n m"] | None]:
    """‖r_i‖², Vᵀr_i and W r_i of the residuals r_i = x_i − m_{y_i}, W in its own precision; columns in blocks."""
    if centers.narrow and all(map(kernels_fit, block.parts)) and block.rows:
        return _projected_on_gpu(block, y, centers, directions, others)
    norms = directions.new_zeros(block.rows)
    wide = directions.shape[1] >= WIDE
    along = directions.new_zeros(block.rows, directions.shape[1])
    if not wide:
        along = directions.new_zeros(
            directions.shape[1], block.rows
        ).T  # this way round the thin product is the quicker
    other = None if others is None else others.new_zeros(others.shape[0], block.rows)
    for columns, x in block.columns():
        r = centers.residuals(x, y, columns)
        norms += torch.linalg.vecdot(r, r)
        if wide:
            along.addmm_(r, directions[columns])
        else:
            along.T.addmm_(directions[columns].T, r.T)
        if other is not None and others is not None:
            other.addmm_(others[:, columns], r.to(others.dtype).T)
    return norms, along, None if other is None else other.T


def _projected_on_gpu(
    block: Block,
    y: Int[Tensor, " n"],
    centers: ClassCenters,
    directions: Float64[Tensor, "d r"],
    others: Shaped[Tensor, "m d"] | None,
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, "n r"], Shaped[Tensor, "n m"] | None]:
    """The same by kernels that read features as they came: few products while they are read, many from residuals."""
    if others is None and directions.shape[1] <= FEW_DIRECTIONS:
        norms, along = residual_products(block.whole(), y, centers.means, directions)
        return norms, along, None
    width = directions.shape[1]
    padded = torch.nn.functional.pad(directions, (0, -width % ALIGNED))  # d w: odd widths are slow
    norms, along = directions.new_zeros(block.rows), directions.new_zeros(block.rows, padded.shape[1])
    other = None if others is None else others.new_zeros(block.rows, others.shape[0])
    for columns, x in block.columns():
        r, squares = residuals_of(x, y, centers.means[:, columns])
        norms += squares
        along.addmm_(r, padded[columns])
        if other is not None and others is not None:
            other.addmm_(r.to(others.dtype), others[:, columns].T)
    return norms, along[:, :width], other


def same_for_collapse(counts: Int[Tensor, " k"], convention: Convention) -> bool:
    """Whether D and NC1 see the same matrices: equal class sizes make all weightings one."""
    present = counts[counts > 0]
    balanced = bool((present == present[0]).all())
    plain = convention.center is None and convention.normalization == "none" and convention.tol is None
    return plain and (balanced or convention.weighting == PHD20.weighting)
