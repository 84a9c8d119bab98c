"""Measuring without keeping features: the data are read twice, memory is O(K·d) a site."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.labels import check_two_classes
from equisep.law.intervals import ResampleKind
from equisep.measuring.options import FOLDS, Options
from equisep.measuring.probe import Probe
from equisep.measuring.reading import Read, read
from equisep.measuring.states import HeldOut, SiteStates, Spread, center_counts, same_for_collapse
from equisep.metrics.fuzziness import fuzziness_of
from equisep.progress import Progress
from equisep.results import Note
from equisep.shapes import Int, Shaped
from equisep.stats import PHD20, ClassMoments, ClassSubspace, Convention, Projections, merge_all, project
from equisep.taps import random_state_kept

MIXED = 1.5  # labels permuted inside batches stay right this many times as often as by chance, at the most
DRIFT = 1e-6  # class means that moved by more than this share of the spread moved by more than rounding


class Lens:
    """One labeling of the samples at one site, looked at twice: first its moments, then the spread along its subspace."""

    def __init__(self, moments: ClassMoments, convention: Convention) -> None:
        self.moments = moments
        self.subspace = ClassSubspace.of(moments, convention)
        self.projections: Projections | None = None

    def look(self, features: Shaped[Tensor, "b d"], labels: Int[Tensor, " b"]) -> Tensor:
        """Second pass: add a batch, and return its projected residuals."""
        residuals = project(features, labels, subspace=self.subspace)
        batch = Projections.of(residuals, labels, classes=self.moments.classes)
        self.projections = batch if self.projections is None else self.projections.merge(batch)
        return residuals

    def spread(self) -> Spread:
        """What both passes found."""
        assert self.projections is not None
        return Spread(self.moments, self.subspace, self.projections)


@dataclass(slots=True)
class Marks:
    """How the samples of the batch under way are marked beside their labels: permuted labels, and jackknife folds."""

    folds: int
    seed: int
    seen: Tensor
    permuted: Tensor | None = None
    fold: Tensor | None = None

    def start(self, index: int, labels: Int[Tensor, " b"]) -> None:
        """Marks depend on the labels read so far alone, so a second reading in the same order repeats them.

        The i-th sample of class k goes to fold i + k: every fold leaves out its share of every class, however the
        labels are ordered.
        """
        y = labels.cpu()
        generator = torch.Generator("cpu").manual_seed((self.seed * 1_000_003 + index) % 2**63)
        self.permuted = labels[torch.randperm(len(y), generator=generator, device="cpu").to(labels.device)]
        order = y.argsort(stable=True)
        counts = torch.bincount(y, minlength=len(self.seen))
        before = counts.cumsum(0) - counts  # where each class begins in the sorted batch
        rank = torch.empty_like(y)
        rank[order] = torch.arange(len(y), device="cpu") - before[y[order]]
        self.fold = ((self.seen[y] + rank + y) % max(self.folds, 1)).to(labels.device)
        self.seen = self.seen + counts


class StreamedSite:
    """The states of one site while the training data stream past."""

    def __init__(self, *, classes: int, folds: int, options: Options) -> None:
        self.classes, self.folds, self.options = classes, folds, options
        self.parts: ClassMoments | None = None  # by fold and class
        self.permuted: ClassMoments | None = None
        self.hits = 0
        self.disagreements = 0

    def first(self, x: Shaped[Tensor, "b d"], y: Int[Tensor, " b"], marks: Marks) -> None:
        """First pass: moments."""
        groups = max(self.folds, 1)
        keys = y if marks.fold is None or self.folds == 0 else marks.fold * self.classes + y
        batch = ClassMoments.of(x, keys, classes=groups * self.classes)
        self.parts = batch if self.parts is None else self.parts.merge(batch)
        if self.options.wants("null") and marks.permuted is not None:
            shuffled = ClassMoments.of(x, marks.permuted, classes=self.classes)
            self.permuted = shuffled if self.permuted is None else self.permuted.merge(shuffled)

    def turn(self) -> None:
        """Between the passes: the subspaces."""
        assert self.parts is not None
        convention, groups = self.options.convention, max(self.folds, 1)
        parts = [self.parts.group(groups, g) for g in range(groups)]
        self.main = Lens(merge_all(parts), convention)
        self.null = Lens(self.permuted, convention) if self.permuted is not None else None
        other = self.options.wants("collapse") and not same_for_collapse(self.main.moments.counts, convention)
        self.collapse = Lens(self.main.moments, PHD20) if other else None
        self.left_out = [
            Lens(merge_all(parts[:g] + parts[g + 1 :]), convention) for g in range(groups) if self.folds > 0
        ]
        self.parts = self.permuted = None

    def second(self, x: Shaped[Tensor, "b d"], y: Int[Tensor, " b"], marks: Marks, layer: nn.Linear | None) -> None:
        """Second pass: spread along the subspaces, nearest centers."""
        hits, disagreements = center_counts(self.main.look(x, y), x, y, self.main.subspace, layer)
        self.hits += hits
        self.disagreements += disagreements
        if self.collapse is not None:
            self.collapse.look(x, y)
        if self.null is not None and marks.permuted is not None:
            self.null.look(x, marks.permuted)
        for g, lens in enumerate(self.left_out):
            stays = marks.fold != g
            lens.look(x[stays], y[stays])

    def states(self, *, steady: bool, layer: nn.Linear | None) -> SiteStates:
        """The result; what depends on the order of the samples is left out where the order changed."""
        convention = self.options.convention
        spread = self.main.spread()
        collapse = self.collapse.spread() if self.collapse is not None else spread
        null = self.null.spread() if self.null is not None and steady else None
        values = [fuzziness_of(lens.subspace, lens.spread().projections, convention) for lens in self.left_out]
        usable = steady and values and all(value is not None for value in values)
        return SiteStates(
            train=spread,
            collapse=collapse if self.options.wants("collapse") else None,
            null=fuzziness_of(null.subspace, null.projections, convention) if null else None,
            hits=self.hits,
            disagreements=self.disagreements if layer is not None else None,
            replicates=torch.tensor(values, dtype=torch.float64) if usable else None,
            drift=spread.projections.drift(),
        )


def stream_train(
    model: nn.Module, feed: Feed, probe: Probe, options: Options, *, progress: Progress, layer: nn.Linear | None
) -> tuple[list[SiteStates], Read, ResampleKind | None, list[Note]]:
    """Both passes over the training data."""
    folds, notes = _affordable_folds(probe, options)
    sites = [StreamedSite(classes=probe.classes, folds=folds, options=options) for _ in probe.sites]
    last = len(sites) - 1
    marks = _marks(folds, probe, options)
    feed.restart()
    with random_state_kept(feed.source):
        one = read(
            model, feed, probe, options, start=marks.start,
            take=lambda i, x, y: sites[i].first(x, y, marks), progress=progress, what="first reading",
        )  # fmt: skip
    check_two_classes(one.counts, asked="`measure`")
    for site in sites:
        site.turn()
    marks = _marks(folds, probe, options)
    with random_state_kept(feed.source):
        two = read(
            model, feed, probe, options, start=marks.start,
            take=lambda i, x, y: sites[i].second(x, y, marks, layer if i == last else None),
            progress=progress, what="second reading",
        )  # fmt: skip
    steady = check_same(one, two, feed)
    states = [site.states(steady=steady, layer=layer if i == last else None) for i, site in enumerate(sites)]
    notes += _changes(max(state.drift for state in states), steady=steady, what=feed.what)
    if options.wants("null") and one.sortedness > MIXED:
        states = [replace(state, null=None) for state in states]
        notes.append(
            Note(
                "no-null",
                "The batches are not class-mixed, so permuting labels inside them is no null; it is left out.",
            )
        )
    return states, one, "jackknife" if states[0].replicates is not None else None, notes


def stream_test(
    model: nn.Module,
    feed: Feed,
    probe: Probe,
    options: Options,
    *,
    train: list[ClassSubspace],
    progress: Progress,
    layer: nn.Linear | None,
) -> tuple[list[HeldOut], Read, list[Note]]:
    """Both passes over the test data: its own D, and nearest *training* centers."""
    feed.restart()
    moments: list[ClassMoments | None] = [None] * len(train)
    counts = [[0, 0] for _ in train]
    last = len(train) - 1

    def first(i: int, x: Tensor, y: Tensor) -> None:
        batch, before = ClassMoments.of(x, y, classes=probe.classes), moments[i]
        moments[i] = batch if before is None else before.merge(batch)
        residuals = project(x, y, subspace=train[i])
        found = center_counts(residuals, x, y, train[i], layer if i == last else None)
        counts[i] = [counts[i][0] + found[0], counts[i][1] + found[1]]

    with random_state_kept(feed.source):
        one = read(model, feed, probe, options, take=first, progress=progress, what="first reading of the test data")
    lenses = [Lens(state, options.convention) for state in moments if state is not None]

    def second(i: int, x: Tensor, y: Tensor) -> None:
        lenses[i].look(x, y)

    with random_state_kept(feed.source):
        two = read(model, feed, probe, options, take=second, progress=progress, what="second reading of the test data")
    steady = check_same(one, two, feed)
    found = [
        HeldOut(lens.spread(), hits, wrong if layer is not None and i == last else None)
        for i, (lens, (hits, wrong)) in enumerate(zip(lenses, counts, strict=True))
    ]
    moved = max(entry.spread.projections.drift() for entry in found)
    return found, one, _changes(moved, steady=steady, what=feed.what)


def check_same(one: Read, two: Read, feed: Feed) -> bool:
    """Whether both readings saw the samples in one order; raise where they did not even see the same labels."""
    if not torch.equal(one.counts, two.counts):
        raise DataError(
            f"The {feed.what} data cannot be read twice: {one.n} samples in the first reading, {two.n} in the second, "
            f"classes {one.counts.tolist()[:10]} and {two.counts.tolist()[:10]}. Pass data that repeat, or more `memory`."
        )
    return one.order == two.order


def _marks(folds: int, probe: Probe, options: Options) -> Marks:
    return Marks(folds=folds, seed=options.seed, seen=torch.zeros(probe.classes, dtype=torch.int64, device="cpu"))


def _affordable_folds(probe: Probe, options: Options) -> tuple[int, list[Note]]:
    """Jackknife folds, unless their states would outgrow the memory budget."""
    if options.intervals == "none" or not options.wants("fuzziness"):
        return 0, []
    need = 3 * 8 * FOLDS * probe.classes * sum(probe.dims)
    if need > options.memory:
        text = (
            f"Intervals were left out: {FOLDS} folds need {need:,} bytes, the budget is {options.memory:,} (`memory=`)."
        )
        return 0, [Note("no-intervals", text)]
    if options.intervals == "bootstrap":
        text = "The features were not kept, so intervals are by jackknife over folds instead of the bootstrap."
        return FOLDS, [Note("jackknife", text)]
    return FOLDS, []


def _changes(moved: float, *, steady: bool, what: str) -> list[Note]:
    if moved > DRIFT:
        text = (
            f"The {what} features changed between the two readings (class means moved by up to {moved:.2g} of the "
            "within-class spread): the loader augments, or shuffles in `batch` mode. D is of both readings mixed."
        )
        return [Note("changed", text)]
    if not steady:
        lost = "" if what == "test" else ", the null and intervals are left out"
        text = f"The {what} loader shuffles between readings; D is not affected{lost}."
        return [Note("shuffled", text)]
    return []
