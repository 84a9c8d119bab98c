"""TrainSite and TestSite: both passes over one site of the training data, and of the test data beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from equisep.separation.assignments import Assignments
from equisep.separation.blocks import BLOCK_NUMBERS, Block
from equisep.separation.convention import PHD20
from equisep.separation.group_sums import ClassCenters, GroupSums
from equisep.separation.nearest import NearestCounts
from equisep.separation.pairs.directional import DIRECTED_CLASSES, AxisSums
from equisep.separation.pca import Picture
from equisep.separation.site.few import FewRows, few_on_gpu, read_few
from equisep.separation.site.records import Sampled, SiteStatistics, SiteTask, Spread, TestStatistics
from equisep.separation.site.second_pass import (
    SampledSpread,
    SecondPass,
    Seen,
    rounding_of,
    same_for_collapse,
)
from equisep.separation.site.side_by_side import Sites
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Int, Shaped

R_co = TypeVar("R_co", covariant=True)


@runtime_checkable
class TwoPassSite(Protocol[R_co]):
    """A site whose statistics take two passes over its features."""

    task: SiteTask

    @property
    def plain(self) -> bool:
        """Whether the spread and nearest centers are all that is asked for: no fold, no random label, no picture."""

    @property
    def training(self) -> tuple[ClassCenters, ClassSubspace] | None:
        """The training means that rows are near to, and their directions, where these rows are others."""

    def first(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """The first pass, some rows."""

    def turn(self) -> None:
        """Between the passes."""

    def second(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """The second pass, some rows."""

    def of_few(self, few: FewRows, features: Sequence[Shaped[Tensor, "_ d"]]) -> R_co:
        """What both passes found, where they were made over all sites at once."""

    def statistics(self) -> R_co:
        """What both passes found."""


class TrainSite:
    """The training data at one site: `first` for all rows, `turn`, `second` for all rows again, `statistics`.

    Of parts of the data, `sums` add up before `turn`, and what the second pass adds up (`SecondSums`) before `statistics`.
    """

    def __init__(self, task: SiteTask) -> None:
        self.task = task
        self.sums: GroupSums | None = GroupSums(classes=task.classes, folds=task.folds, relabelings=task.relabelings)

    @property
    def plain(self) -> bool:
        """Whether the spread and nearest centers are all that is asked for."""
        return not (self.task.folds or self.task.relabelings or self.task.pictured)

    @property
    def training(self) -> None:
        """These rows are the training data."""

    def first(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """First pass: sums."""
        assert self.sums is not None
        self.sums.add(features, rows)

    def turn(self) -> None:
        """Between the passes: means and subspaces. The sums are let go of."""
        assert self.sums is not None
        self._turn(SampledSpread.of(self.sums, self.task))

    def _turn(self, own: SampledSpread, *, same: bool | None = None) -> None:
        self.own, self.sums, task, main = own, None, self.task, own.main
        self.picture = Picture(main.centers.n, dim=main.centers.dim, most=task.pictured, seed=task.seed)
        self.nearest = NearestCounts(main.subspace, task.layer, task.confusion) if task.centers else None
        directed = task.directional and task.classes <= DIRECTED_CLASSES
        self.axes = AxisSums(main.subspace) if directed else None
        other = task.collapse and not (
            same_for_collapse(main.subspace.counts, task.convention) if same is None else same
        )
        # all means lie on the subspace: their coordinates there are all that another weighting needs
        self.collapse = SecondPass(_on_coordinates(main), PHD20) if other else None

    def second(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """Second pass: the spread along the subspaces, and nearest centers."""
        self.picture.take(features, rows)
        for seen in self.own.look(features, rows):
            self._see(seen)

    def _see(self, seen: Seen, guesses: Int[Tensor, " n"] | None = None) -> None:
        labels = seen.rows.labels
        if self.nearest is not None:
            self.nearest.look(seen.along, seen.block, labels, guesses)
        if self.axes is not None:
            self.axes.look(seen.along, labels)
        if self.collapse is not None:
            points = seen.along + self.own.main.subspace.coordinates.index_select(0, labels)
            for _ in self.collapse.look([points], seen.rows):
                pass

    def of_few(self, few: FewRows, features: Sequence[Shaped[Tensor, "_ d"]]) -> SiteStatistics:
        """The result, where both passes are done: what else the task asks for."""
        spread = few.spread
        main = SecondPass(spread.centers, self.task.convention, spread.subspace)
        self._turn(SampledSpread(self.task, main), same=few.same)
        self._see(Seen(Block(features), Assignments(few.labels), few.along), few.guesses)
        return self._result(Sampled(spread))

    def statistics(self) -> SiteStatistics:
        """The result."""
        return self._result(self.own.statistics())

    def _result(self, sampled: Sampled) -> SiteStatistics:
        collapse = None
        if self.task.collapse:
            collapse = sampled.spread if self.collapse is None else self._collapsed(sampled.spread)
        return SiteStatistics(
            spread=sampled.spread,
            chance=sampled.chance,
            replicates=sampled.replicates,
            noise=sampled.noise,
            nearest=None if self.nearest is None else self.nearest.counts(),
            axes=self.axes,
            collapse=collapse,
            coordinates=self.picture.coordinates(),
        )

    def _collapsed(self, spread: Spread) -> Spread:
        """The spread under PHD20's weighting, its rank judged by the features themselves."""
        assert self.collapse is not None
        variances, task = spread.projections.variances, self.task
        return self.collapse.judged(rounding_of(spread.centers, variances, PHD20, steps=task.steps, offset=task.offset))


class TestSite:
    """The test data at one site: D by their own means, nearest centers by the training means, which the second pass needs."""

    __test__ = False

    def __init__(self, train: SecondPass | Spread | None, task: SiteTask) -> None:
        # one random labeling: of test data the chance level only says where D of the population cannot be told
        self.task = replace(task, relabelings=min(task.relabelings, 1))
        self.sums: GroupSums | None = GroupSums(
            classes=task.classes, folds=task.folds, relabelings=self.task.relabelings
        )
        if train is not None:
            self.beside(train)

    def beside(self, train: SecondPass | Spread) -> None:
        """The training means that rows are nearest to."""
        self.centers = train.centers
        self.nearest = NearestCounts(train.subspace, self.task.layer, self.task.confusion)

    @property
    def plain(self) -> bool:
        """Whether the spread and nearest centers are all that is asked for."""
        return not (self.task.folds or self.task.relabelings)

    @property
    def training(self) -> tuple[ClassCenters, ClassSubspace]:
        """The training means and their directions."""
        return self.centers, self.nearest.space

    def first(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """First pass: sums."""
        assert self.sums is not None
        self.sums.add(features, rows)

    def turn(self) -> None:
        """Between the passes: means and subspaces."""
        assert self.sums is not None
        self.own = SampledSpread.of(self.sums, self.task)
        if self.own.relabelings is not None:
            self.own.relabelings.replicated = False  # of test data D has no interval of its own
        self.sums = None

    def second(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """Second pass: the spread along the subspaces, and nearest training centers."""
        mine, theirs, directions = self.own.main.centers, self.centers, self.nearest.space.directions
        # a row less the training mean of its class is that row less the mean here, and what the two means differ by
        moved = ((mine.about - theirs.about) + (mine.shift - theirs.shift)) @ directions  # k q
        for seen in self.own.look(features, rows, directions):
            assert seen.beside is not None
            y = seen.rows.labels
            self.nearest.look(seen.beside + moved.index_select(0, y), seen.block, y)

    def of_few(self, few: FewRows, features: Sequence[Shaped[Tensor, "_ d"]]) -> TestStatistics:
        """The result, where both passes are done, with the nearest training centers."""
        assert few.beside is not None
        self.nearest.look(few.beside, Block(features), few.labels)
        return self._result(Sampled(few.spread))

    def statistics(self) -> TestStatistics:
        """The result."""
        return self._result(self.own.statistics())

    def _result(self, sampled: Sampled) -> TestStatistics:
        return TestStatistics(
            sampled.spread,
            chance=sampled.chance,
            noise=sampled.noise,
            nearest=self.nearest.counts(),
        )


def at_once(sites: Sequence[TwoPassSite[R_co]], features: Sites) -> bool:
    """Whether all sites can be read at once: few rows on a GPU."""
    pairs = zip(sites, features, strict=True)
    return all(site.plain and few_on_gpu(parts, site.task.classes) for site, parts in pairs)


def whole_sites(sites: Sequence[TwoPassSite[R_co]], features: Sites, rows: Assignments) -> list[R_co]:
    """Both passes over sites whose features are all there, those of the same rows; at once where they can be."""
    if at_once(sites, features):
        training = [site.training for site in sites if site.training is not None]
        few = read_few(features, rows.labels, [site.task for site in sites], training)
        return [site.of_few(each, parts) for site, each, parts in zip(sites, few, features, strict=True)]
    for site, given in zip(sites, features, strict=True):
        parts = _joined(given, site.task)
        site.first(parts, rows)
        site.turn()
        site.second(parts, rows)
    return [site.statistics() for site in sites]


def _joined(parts: Sequence[Shaped[Tensor, "_ d"]], task: SiteTask) -> Sequence[Shaped[Tensor, "_ d"]]:
    """Small batches as one tensor, where both passes take all rows together anyway: a step is then one, not one a batch."""
    n, d, alike = sum(map(len, parts)), parts[0].shape[1], {(part.device.type, part.dtype) for part in parts}
    across = (task.folds + task.relabelings) * min(task.classes - 1, d)
    few = len(parts) > 1 and n * max(1, d, across) <= BLOCK_NUMBERS
    return [torch.cat(list(parts))] if few and alike == {("cpu", parts[0].dtype)} else parts


def _on_coordinates(main: SecondPass) -> ClassCenters:
    """The class means as points of their own subspace."""
    points = main.subspace.coordinates
    shift = points.new_zeros(points.shape[1])
    return ClassCenters(main.centers.counts, shift, points, points, main.centers.eps, narrow=False)
