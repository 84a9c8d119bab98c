"""One site's statistics in two passes over its features, which come from memory, from two readings, or from plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from equisep.results import Coordinates
from equisep.separation.assignments import Assignments
from equisep.separation.blocks import Block, blocks_of, quick_type
from equisep.separation.convention import PAPER, PHD20, Convention
from equisep.separation.few import few_on_gpu, read_few
from equisep.separation.group_sums import ClassCenters, GroupSums
from equisep.separation.nearest import CenterCounts, NearestCounts
from equisep.separation.noise.mean_noise import MOST_CLASSES, MeanNoise, PopulationEstimate
from equisep.separation.pairs.directional import DIRECTED_CLASSES, AxisSums
from equisep.separation.pca import Picture
from equisep.separation.projections import Projections
from equisep.separation.relabeled import Relabelings
from equisep.separation.subspace import COMPUTED, ClassSubspace, rounding_cut
from equisep.shapes import Float64, Int, Shaped

TOUCHED_CLASSES = 512  # beyond, a batch touches the sums of its own classes only
ROUNDINGS = 16  # steps of float64 by which a mean may be off


@dataclass(frozen=True, slots=True)
class SiteTask:
    """What is asked of one site.

    `collapse` asks for PHD20's weighting beside, `confusion` for who is taken for whom by nearest centers, `directional` for
    the spread along the lines between class means; `layer` is the classifier that reads the site. `steps` is how often its
    numbers were rounded; `offset` the squared norm of what was taken off all rows before, as centered components are;
    `pictured` how many rows are to be shown on a plane.
    """

    classes: int
    convention: Convention = PAPER
    folds: int = 0
    relabelings: int = 0
    collapse: bool = False
    centers: bool = True
    confusion: bool = False
    directional: bool = False
    layer: nn.Linear | None = None
    steps: float = COMPUTED
    offset: float = 0.0
    pictured: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Spread:
    """Class means, their subspace and the within-class spread along it: all that D needs."""

    centers: ClassCenters
    subspace: ClassSubspace
    projections: Projections

    def drift(self) -> float:
        """How far class means moved between two readings, beyond the rounding of the means."""
        size = float(self.centers.means.norm())
        return self.projections.drift(rounding=ROUNDINGS * torch.finfo(torch.float64).eps * size)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A spread, and what the samples it is of say about its noise.

    `chance` is D under random labels, `replicates` D without each fold (or of resamples), `population` what the noise of
    class means leaves of D.
    """

    spread: Spread
    chance: float | None = None
    replicates: tuple[float, ...] | None = None
    population: PopulationEstimate | None = None


@dataclass(frozen=True, slots=True)
class SiteStatistics(Sampled):
    """What two passes over the training data found at one site.

    `axes` is the spread along the lines between class means, `collapse` that under PHD20's convention, `coordinates` are for
    plots.
    """

    nearest: CenterCounts | None = None
    axes: AxisSums | None = None
    collapse: Spread | None = None
    coordinates: Coordinates | None = None


@dataclass(frozen=True, slots=True)
class TestStatistics(Sampled):
    """The test data at one site: their own spread, and nearest *training* centers."""

    __test__ = False  # no test case, whatever pytest makes of the name

    nearest: CenterCounts = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """Some rows of a second pass: as they came, and their residuals on the subspace and on further directions."""

    block: Block
    rows: Assignments
    along: Float64[Tensor, "n r"]
    other: Shaped[Tensor, "n m"] | None = None


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
    ) -> Iterator[Seen]:
        """Add rows as they are drawn from this: piece by piece, with their residuals on the subspace and on `directions`."""
        for span, block in blocks_of(features, across=0 if directions is None else len(directions)):
            part = rows.part(span).to(self.centers.about.device)
            norms, along, other = projected(block, part.labels, self.centers, self.subspace.directions, directions)
            self.add(along, norms, part.labels)
            yield Seen(block, part, along, other)

    def add(self, along: Float64[Tensor, "n r"], norms: Float64[Tensor, " n"], labels: Int[Tensor, " n"]) -> None:
        """Add rows by their residuals on the subspace and the squared norms of these."""
        k = self.centers.classes
        if k > TOUCHED_CLASSES:
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
    norms = directions.new_zeros(block.rows)
    along = directions.new_zeros(directions.shape[1], block.rows)  # this way round the thin product is the quicker
    other = None if others is None else others.new_zeros(others.shape[0], block.rows)
    for columns, x in block.columns():
        r = centers.residuals(x, y, columns)
        norms += torch.linalg.vecdot(r, r)
        along.addmm_(directions[columns].T, r.T)
        if other is not None and others is not None:
            other.addmm_(others[:, columns], r.to(others.dtype).T)
    return norms, along.T, None if other is None else other.T


class SampledSpread:
    """The spread of one data set, and beside it what folds and random labels show of its noise."""

    def __init__(self, task: SiteTask, main: SecondPass) -> None:
        self.task, self.main = task, main
        self.relabelings: Relabelings | None = None
        self.noise: MeanNoise | None = None

    @staticmethod
    def of(sums: GroupSums, task: SiteTask, kind: torch.dtype) -> SampledSpread:
        """Between the passes, from the sums of the first."""
        self = SampledSpread(task, SecondPass(sums.centers, task.convention))
        corrected = task.folds > 0 and task.relabelings > 0 and len(sums.centers.present) <= MOST_CLASSES
        if task.folds or task.relabelings:
            self.relabelings = Relabelings(
                sums, convention=task.convention, folds=task.folds, kind=kind, scatter=corrected
            )
        if corrected:
            self.noise = MeanNoise(sums, self.main.subspace, task.convention, folds=task.folds)
        return self

    def look(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> Iterator[Seen]:
        """Add rows as they are drawn from this: piece by piece, with their residuals on the subspace."""
        directions = None if self.relabelings is None else self.relabelings.directions
        for seen in self.main.look(features, rows, directions):
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
        population = None if self.noise is None else self.noise.estimate(spread.projections.variances, rank, others)
        return Sampled(
            spread,
            chance=self._chance(spread, others),
            replicates=tuple(others.left_out(rank=rank)) if self.task.folds and rank else None,
            population=population,
        )

    def _chance(self, spread: Spread, relabelings: Relabelings) -> float | None:
        """D under random labels: every random class has the mean and the spread of all rows."""
        centers, shares = spread.centers, spread.centers.counts.double() / spread.centers.n
        middle = shares @ centers.about
        between = (centers.about - middle).square().sum(dim=1)
        variance = float(shares @ (spread.projections.variances + between))
        size = float((middle + centers.shift).square().sum()) + variance + self.task.offset
        return relabelings.chance(size=size, variance=variance, eps=centers.eps, steps=self.task.steps)


class TrainSite:
    """The training data at one site: `first` for all rows, `turn`, `second` for all rows again, `statistics`.

    Of parts of the data, `sums` add up before `turn`, and what the second pass adds up (`equisep.separation.parts`) before
    `statistics`.
    """

    def __init__(self, task: SiteTask) -> None:
        self.task = task
        self.kind: torch.dtype | None = None
        self.sums: GroupSums | None = GroupSums(classes=task.classes, folds=task.folds, relabelings=task.relabelings)

    def first(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """First pass: sums."""
        assert self.sums is not None
        self.kind = quick_type(features[0])
        self.sums.add(features, rows)

    def turn(self) -> None:
        """Between the passes: means and subspaces. The sums are let go of."""
        assert self.sums is not None and self.kind is not None
        self._turn(SampledSpread.of(self.sums, self.task, self.kind))

    def _turn(self, own: SampledSpread) -> None:
        self.own, self.sums, task, main = own, None, self.task, own.main
        self.picture = Picture(main.centers.n, dim=main.centers.dim, most=task.pictured, seed=task.seed)
        self.nearest = NearestCounts(main.subspace, task.layer, task.confusion) if task.centers else None
        directed = task.directional and task.classes <= DIRECTED_CLASSES
        self.axes = AxisSums(main.subspace) if directed else None
        other = task.collapse and not same_for_collapse(main.subspace.counts, task.convention)
        # all means lie on the subspace: their coordinates there are all that another weighting needs
        self.collapse = SecondPass(_on_coordinates(main), PHD20) if other else None

    def second(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """Second pass: the spread along the subspaces, and nearest centers."""
        self.picture.take(features, rows)
        for seen in self.own.look(features, rows):
            self._see(seen)

    def _see(self, seen: Seen) -> None:
        labels = seen.rows.labels
        if self.nearest is not None:
            self.nearest.look(seen.along, seen.block, labels)
        if self.axes is not None:
            self.axes.look(seen.along, labels)
        if self.collapse is not None:
            points = seen.along + self.own.main.subspace.coordinates.index_select(0, labels)
            for _ in self.collapse.look([points], seen.rows):
                pass

    def whole(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> SiteStatistics:
        """Both passes over features that are all there; of few on a GPU at once."""
        task = self.task
        if few_on_gpu(features, task.classes) and not (task.folds or task.relabelings or task.pictured):
            main, seen = both_at_once(features, rows, task)
            self._turn(SampledSpread(task, main))
            self._see(seen)
        else:
            _both(self, features, rows)
        return self.statistics()

    def statistics(self) -> SiteStatistics:
        """The result."""
        sampled = self.own.statistics()
        collapse = None
        if self.task.collapse:
            collapse = sampled.spread if self.collapse is None else self._collapsed(sampled.spread)
        return SiteStatistics(
            spread=sampled.spread,
            chance=sampled.chance,
            replicates=sampled.replicates,
            population=sampled.population,
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
        self.kind: torch.dtype | None = None
        self.sums: GroupSums | None = GroupSums(
            classes=task.classes, folds=task.folds, relabelings=self.task.relabelings
        )
        if train is not None:
            self.beside(train)

    def beside(self, train: SecondPass | Spread) -> None:
        """The training means that rows are nearest to."""
        self.centers = train.centers
        self.nearest = NearestCounts(train.subspace, self.task.layer, self.task.confusion)

    def first(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """First pass: sums."""
        assert self.sums is not None
        self.kind = quick_type(features[0])
        self.sums.add(features, rows)

    def turn(self) -> None:
        """Between the passes: means and subspaces."""
        assert self.sums is not None and self.kind is not None
        self.own = SampledSpread.of(self.sums, self.task, self.kind)
        self.sums = None

    def second(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """Second pass: the spread along the subspaces, and nearest training centers."""
        for _ in self.own.look(features, rows):
            pass
        for span, block in blocks_of(features):
            y = rows.labels[span].to(self.centers.about.device)
            _, along, _ = projected(block, y, self.centers, self.nearest.space.directions)
            self.nearest.look(along, block, y)

    def whole(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> TestStatistics:
        """Both passes over features that are all there; of few on a GPU at once."""
        task = self.task
        if few_on_gpu(features, task.classes) and not (task.folds or task.relabelings):
            main, seen = both_at_once(features, rows, task)
            self.own = SampledSpread(task, main)
            _, along, _ = projected(seen.block, rows.labels, self.centers, self.nearest.space.directions)
            self.nearest.look(along.to(seen.along.device), seen.block, seen.rows.labels)
        else:
            _both(self, features, rows)
        return self.statistics()

    def statistics(self) -> TestStatistics:
        """The result."""
        sampled = self.own.statistics()
        return TestStatistics(
            sampled.spread,
            chance=sampled.chance,
            replicates=sampled.replicates,
            population=sampled.population,
            nearest=self.nearest.counts(),
        )


def _both(site: TrainSite | TestSite, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
    site.first(features, rows)
    site.turn()
    site.second(features, rows)


def both_at_once(
    features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments, task: SiteTask
) -> tuple[SecondPass, Seen]:
    """Both passes over few rows on a GPU, and the rows on the CPU: see `equisep.separation.few`."""
    few = read_few(features, rows.labels, classes=task.classes, convention=task.convention)
    main = SecondPass(few.centers, task.convention, few.subspace)
    main.projections = Projections.of(few.along, few.norms, few.labels, classes=task.classes)
    return main, Seen(Block(features), Assignments(few.labels), few.along)


def same_for_collapse(counts: Int[Tensor, " k"], convention: Convention) -> bool:
    """Whether D and NC1 see the same matrices: equal class sizes make all weightings one."""
    present = counts[counts > 0]
    balanced = bool((present == present[0]).all())
    plain = convention.center is None and convention.normalization == "none" and convention.tol is None
    return plain and (balanced or convention.weighting == PHD20.weighting)


def _on_coordinates(main: SecondPass) -> ClassCenters:
    """The class means as points of their own subspace."""
    points = main.subspace.coordinates
    shift = points.new_zeros(points.shape[1])
    return ClassCenters(main.centers.counts, shift, points, points, main.centers.eps, narrow=False)
