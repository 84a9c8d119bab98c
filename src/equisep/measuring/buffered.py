"""Measuring from kept features: the data are read once, every site is worked off from memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.law.intervals import ResampleKind
from equisep.measuring.options import BOOTSTRAP_WORK, FEW_NUMBERS, FOLDS, PERMUTATIONS, Options
from equisep.measuring.plane import plane_of
from equisep.measuring.reading import Read, Stop, Subject, read
from equisep.measuring.site import HeldOutSite, TrainSite
from equisep.measuring.states import HeldOut, SiteStates
from equisep.progress import Progress
from equisep.results import Note
from equisep.shapes import Float64, Int, Shaped
from equisep.stats import ClassSubspace, FeatureBuffer, Marks
from equisep.stats.resample import bootstrap_weights, draw_folds, resampling_cost, reweighted_fuzziness
from equisep.taps import Rows


@dataclass(frozen=True, slots=True)
class Kept:
    """All features of one data set, the sample that each row belongs to where a sample has several, and the labels."""

    features: FeatureBuffer
    owners: dict[int, list[Int[Tensor, " b"]]]
    labels: Int[Tensor, " n"]
    read: Read

    def rows_of(self, index: int) -> Int[Tensor, " r"] | None:
        """The sample of every row at one site; None where every sample has one."""
        return torch.cat(self.owners[index]) if index in self.owners else None


class Keeping:
    """The consumer that keeps features, and the labels beside them."""

    def __init__(self, budget: int) -> None:
        self.features = FeatureBuffer(budget)
        self.owners: dict[int, list[Tensor]] = {}
        self.labels: list[Tensor] = []
        self.before = 0  # samples of the batches before the one under way

    def start(self, index: int, labels: Int[Tensor, " b"]) -> None:
        """A batch begins."""
        self.before += len(self.labels[-1]) if self.labels else 0
        self.labels.append(labels)

    def take(self, index: int, rows: Rows) -> None:
        """Keep what a site gave."""
        self.features.add(str(index), rows.features)
        if rows.owners is not None:
            self.owners.setdefault(index, []).append(rows.owners + self.before)

    def kept(self, done: Read) -> Kept:
        """Everything, when all batches have been read."""
        return Kept(self.features, self.owners, torch.cat(self.labels), done)


def keep(subject: Subject, feed: Feed, *, progress: Progress) -> Kept | None:
    """Read the data once and keep all features; None where they outgrow the budget (and can be read again)."""
    budget = subject.options.memory
    if feed.again and foreseen(feed, subject) > budget:
        return None
    keeping = Keeping(budget)

    def take(index: int, rows: Rows) -> None:
        keeping.take(index, rows)
        if keeping.features.overflowed:
            raise Stop

    try:
        done = read(
            subject, feed, take=take, start=keeping.start, progress=progress, what=f"reading the {feed.what} data"
        )
    except Stop:
        if feed.again:
            return None
        raise read_once(feed, subject) from None
    return keeping.kept(done)


def read_once(feed: Feed, subject: Subject) -> DataError:
    """The error of features that do not fit, of data that cannot be read again."""
    return DataError(
        f"The {feed.what} data can be read only once (they are an iterator), and the features of "
        f"{len(subject.probe.sites)} sites need more than `memory={subject.options.memory}` bytes. "
        "Pass a loader that can be read twice, fewer sites, or more memory."
    )


def foreseen(feed: Feed, subject: Subject) -> float:
    """Bytes that the features will need, as far as the loader tells its size (4 bytes a number)."""
    size = max(feed.batch_sizes, default=1)  # of the first batch, which the probe has seen
    return 4.0 * (feed.batches or 0) * size * subject.numbers


@dataclass(frozen=True, slots=True)
class Replicates:
    """How D is resampled, the same for all sites: weights of every bootstrap resample, or the fold of every sample."""

    kind: ResampleKind
    weights: Float64[Tensor, "m n"] | None = None
    folds: Int[Tensor, " n"] | None = None


def plan_replicates(kept: Kept, subject: Subject) -> tuple[Replicates | None, list[Note]]:
    """Bootstrap where it is affordable, jackknife otherwise, or as asked."""
    options, probe = subject.options, subject.probe
    if options.intervals == "none" or not options.wants("fuzziness"):
        return None, []
    n, y, seed = kept.labels.numel(), kept.labels, options.seed
    cost = sum(
        resampling_cost(n=round(n * numbers / d), dims=[d], classes=probe.classes, replicates=options.resamples)
        for numbers, d in zip(probe.numbers, probe.dims, strict=True)
    )
    most = max(numbers / d for numbers, d in zip(probe.numbers, probe.dims, strict=True))  # rows a sample
    fits = 3 * 8 * options.resamples * n * most <= options.memory  # the weights of all resamples are held at once
    if options.intervals == "bootstrap" or (options.intervals == "auto" and fits and cost <= BOOTSTRAP_WORK):
        return Replicates("bootstrap", weights=bootstrap_weights(y, resamples=options.resamples, seed=seed)), []
    if n < 2 * FOLDS:
        return None, [Note("no-intervals", f"Intervals were left out: {FOLDS} folds of {n} samples are too small.")]
    return Replicates("jackknife", folds=draw_folds(y, folds=FOLDS, seed=seed)), []


def train_states(index: int, *, kept: Kept, subject: Subject, replicates: Replicates | None) -> SiteStates:
    """All statistics of one site from its kept training features, which are let go of."""
    return states_of(kept.features.parts(str(index)), index, kept=kept, subject=subject, replicates=replicates)


def states_of(
    parts: list[Shaped[Tensor, "b d"]], index: int, *, kept: Kept, subject: Subject, replicates: Replicates | None
) -> SiteStates:
    """All statistics of one site from features in pieces."""
    options, layer = subject.options, subject.layer_at(index)
    owners = kept.rows_of(index)
    permutations = _permutations(sum(part.numel() for part in parts)) if options.wants("null") else 0
    folds = replicates.folds if replicates is not None else None
    marks = Marks(
        kept.labels,
        None if folds is None else folds.to(kept.labels.device),
        _permuted(kept.labels, permutations, seed=options.seed) if permutations else None,
    ).of_rows(owners)
    site = TrainSite(
        classes=subject.probe.classes, folds=0 if folds is None else FOLDS, permutations=permutations, options=options
    )
    site.first(parts, marks)
    site.turn()
    site.second(parts, marks, layer)
    found = site.states(layer=layer)
    again = _bootstrap(parts, marks.labels, owners, found.train.subspace, replicates, options)
    return replace(
        found,
        replicates=found.replicates if again is None else again,
        coordinates=plane_of(parts, marks.labels, most=options.coordinates, seed=options.seed),
    )


def _permutations(numbers: int) -> int:
    """In many numbers one permutation averages over enough of them."""
    return PERMUTATIONS if numbers <= FEW_NUMBERS else 1


def _permuted(labels: Int[Tensor, " n"], count: int, *, seed: int) -> Int[Tensor, "p n"]:
    generator = torch.Generator("cpu").manual_seed(seed)
    orders = [torch.randperm(labels.numel(), generator=generator, device="cpu") for _ in range(count)]
    return torch.stack([labels[order.to(labels.device)] for order in orders])


def _bootstrap(
    parts: list[Shaped[Tensor, "b d"]],
    labels: Int[Tensor, " r"],
    owners: Int[Tensor, " r"] | None,
    subspace: ClassSubspace,
    replicates: Replicates | None,
    options: Options,
) -> Float64[Tensor, " m"] | None:
    if replicates is None or replicates.weights is None or subspace.rank == 0:
        return None
    weights = replicates.weights if owners is None else replicates.weights[:, owners.cpu()]
    return reweighted_fuzziness(
        torch.cat(parts),
        labels,
        weights=weights,
        classes=len(subspace.counts),
        rank=subspace.rank,
        convention=options.convention,
    ).cpu()


def held_out_states(index: int, *, kept: Kept, train: ClassSubspace, subject: Subject) -> HeldOut:
    """The test data at one site: D by their own means, nearest centers by the training means."""
    parts = kept.features.parts(str(index))
    marks = Marks(kept.labels).of_rows(kept.rows_of(index))
    layer = subject.layer_at(index)
    site = HeldOutSite(train, options=subject.options)
    site.first(parts, marks, layer)
    site.turn()
    site.second(parts, marks)
    return site.states(layer=layer)
