"""SampledSpread: a spread with what folds and random labels show of its noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from equisep.separation.assignments import Assignments
from equisep.separation.group_sums import GroupSums
from equisep.separation.noise.mean_noise import MOST_CLASSES, MeanNoise, population_estimates
from equisep.separation.relabeled import Relabelings
from equisep.separation.site.records import Sampled, SiteTask, Spread
from equisep.separation.site.second_pass import SecondPass, Seen
from equisep.shapes import Float64, Shaped

S = TypeVar("S", bound=Sampled)


def estimated(sites: Sequence[S]) -> tuple[S, ...]:
    """The sites with D of the population, where folds were read."""
    estimates = population_estimates([site.noise for site in sites])
    return tuple(replace(site, noise=None, population=each) for site, each in zip(sites, estimates, strict=True))


class SampledSpread:
    """The spread of one data set, and beside it what folds and random labels show of its noise."""

    def __init__(self, task: SiteTask, main: SecondPass) -> None:
        self.task, self.main = task, main
        self.relabelings: Relabelings | None = None
        self.noise: MeanNoise | None = None

    @staticmethod
    def of(sums: GroupSums, task: SiteTask, kind: torch.dtype) -> SampledSpread:
        """Between the passes, from the sums of the first."""
        self = SampledSpread(task, SecondPass(sums.centers, task.convention, precision=task.precision))
        corrected = task.folds > 0 and task.relabelings > 0 and len(sums.centers.present) <= MOST_CLASSES
        if task.folds or task.relabelings:
            self.relabelings = Relabelings(
                sums, convention=task.convention, folds=task.folds, kind=kind, scatter=corrected
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
