"""SecondPass: the spread around class means and along their subspace, piece by piece; SampledSpread: and its noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from equisep.separation.assignments import Assignments
from equisep.separation.blocks import Block, Room, blocks_of
from equisep.separation.convention import PHD20, Convention
from equisep.separation.gpu import FEW_DIRECTIONS, RunSpread, few_fit, kernels_fit
from equisep.separation.group_sums import ClassCenters, GroupSums
from equisep.separation.noise.mean_noise import MOST_CLASSES, MeanNoise, population_estimates
from equisep.separation.relabeled import Relabelings
from equisep.separation.site.products import projected
from equisep.separation.site.quick import QuickProducts
from equisep.separation.site.records import Sampled, SiteTask, Spread
from equisep.separation.subspace import ClassSubspace, Projections, rounding_cut
from equisep.shapes import Float64, Int, Shaped

S = TypeVar("S", bound=Sampled)

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
    """The spread around the class means and along their subspace, as rows come; by float32 products where asked for."""

    def __init__(
        self,
        centers: ClassCenters,
        convention: Convention,
        subspace: ClassSubspace | None = None,
        *,
        precision: str = "float64",
        offset: float = 0.0,
    ) -> None:
        self.centers, self.convention, self.precision, self.offset = centers, convention, precision, offset
        self.subspace = subspace or ClassSubspace.spanned(centers.counts, centers.about, convention)
        self.projections: Projections | None = None
        self._quick: QuickProducts | None = None

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
        quick = self._quickly(exact)
        few = directions is None and self.centers.narrow and all(kernels_fit(x) and few_fit(x, r) for x in features)
        across, room = max(r, FEW_DIRECTIONS) if few else others, Room()
        trusted = quick is not None and quick.trusted
        for span, block in blocks_of(features, across=across, as_given=few, quick=trusted):
            part = rows.part(span).to(self.centers.about.device)
            found = None if quick is None else quick.projected(block, part.labels, directions, room)
            found = found or projected(block, part.labels, self.centers, exact, directions, room)
            along, further = found.along[:, :own], found.along[:, own:]
            self.add(along, found.norms, part.labels, found.spread)
            yield Seen(block, part, along, found.other, None if beside is None else further)

    def _quickly(self, directions: Float64[Tensor, "d q"]) -> QuickProducts | None:
        """Products in float32, where they were asked for and fit; one bound for all rows of a pass."""
        if self._quick is None and self.precision == "float32" and QuickProducts.fit(self.centers, directions):
            self._quick = QuickProducts(self.centers, directions, self.subspace, self.convention, offset=self.offset)
        return self._quick

    def forget_rows(self) -> None:
        """Let go of what only more rows would need."""
        self._quick = None

    def add(
        self,
        along: Float64[Tensor, "n r"],
        norms: Float64[Tensor, " n"],
        labels: Int[Tensor, " n"],
        spread: RunSpread | None = None,
    ) -> None:
        """Add rows by their residuals on the subspace and the squared norms of these, or by their `spread` where it is known."""
        k = self.centers.classes
        # what a GPU is told depends on which classes a batch holds, and has to be waited for
        if k > (max(TOUCHED_CLASSES, len(labels)) if labels.is_cuda else TOUCHED_CLASSES):
            if self.projections is None:
                self.projections = Projections.none(self.subspace.directions, classes=k)
            self.projections.add(along, norms, labels)
            return
        if spread is None:
            batch = Projections.of(along, norms, labels, classes=k)
        else:
            batch = Projections.summed(spread, directions=along.shape[1])
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


def same_for_collapse(counts: Int[Tensor, " k"], convention: Convention) -> bool:
    """Whether D and NC1 see the same matrices: equal class sizes make all weightings one."""
    present = counts[counts > 0]
    balanced = bool((present == present[0]).all())
    plain = convention.center is None and convention.normalization == "none" and convention.tol is None
    return plain and (balanced or convention.weighting == PHD20.weighting)


class SampledSpread:
    """The spread of one data set, and beside it what folds and random labels show of its noise."""

    def __init__(self, task: SiteTask, main: SecondPass) -> None:
        self.task, self.main = task, main
        self.relabelings: Relabelings | None = None
        self.noise: MeanNoise | None = None

    @staticmethod
    def of(sums: GroupSums, task: SiteTask) -> SampledSpread:
        """Between the passes, from the sums of the first."""
        main = SecondPass(sums.centers, task.convention, precision=task.precision, offset=task.offset)
        self = SampledSpread(task, main)
        corrected = task.folds > 0 and task.relabelings > 0 and len(sums.centers.present) <= MOST_CLASSES
        if task.folds or task.relabelings:
            # float32 directions are not the same for every division into parts: only where the user gives up digits
            quick = task.precision == "float32" and QuickProducts.fit(sums.centers, self.main.subspace.directions)
            self.relabelings = Relabelings(
                sums,
                convention=task.convention,
                folds=task.folds,
                kind=torch.float32 if quick else torch.float64,
                scatter=corrected,
            )
        if corrected:
            self.noise = MeanNoise(sums, self.main.subspace, task.convention, folds=task.folds)
        return self

    def look(
        self,
        features: Sequence[Shaped[Tensor, "_ d"]],
        rows: Assignments,
        beside: Float64[Tensor, "d q"] | None = None,
    ) -> Iterator[Seen]:
        """Add rows as they are drawn from this: piece by piece, with their residuals on the subspace and on those beside."""
        directions = None if self.relabelings is None else self.relabelings.directions
        for seen in self.main.look(features, rows, directions, beside):
            if self.noise is not None:
                self.noise.look(seen.along, seen.rows.labels)
            if self.relabelings is not None and seen.other is not None:
                self.relabelings.look(seen.other, seen.rows)
            yield seen

    def statistics(self) -> Sampled:
        """The result."""
        spread = self.main.spread(steps=self.task.steps, offset=self.task.offset)
        rank, others = spread.subspace.rank, self.relabelings
        if others is None:
            return Sampled(spread)
        noise = None if self.noise is None else self.noise.gathered(spread.projections.variances, rank, others)
        return Sampled(
            spread,
            chance=self._chance(spread, others),
            replicates=tuple(others.left_out(rank=rank)) if self.task.folds and rank else None,
            noise=noise,
        )

    def _chance(self, spread: Spread, relabelings: Relabelings) -> float | None:
        """D under random labels: every random class has the mean and the spread of all rows."""
        centers, shares = spread.centers, spread.centers.counts.double() / spread.centers.n
        middle = shares @ centers.about
        between = (centers.about - middle).square().sum(dim=1)
        variance = float(shares @ (spread.projections.variances + between))
        size = float((middle + centers.shift).square().sum()) + variance + self.task.offset
        return relabelings.chance(size=size, variance=variance, eps=centers.eps, steps=self.task.steps)


def estimated(sites: Sequence[S]) -> tuple[S, ...]:
    """The sites with D of the population, where folds were read."""
    estimates = population_estimates([site.noise for site in sites])
    return tuple(replace(site, noise=None, population=each) for site, each in zip(sites, estimates, strict=True))
