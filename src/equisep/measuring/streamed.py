"""Measuring without keeping features: the data are read twice, memory is O(K·d) a site."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.labels import check_two_classes
from equisep.law.intervals import ResampleKind
from equisep.measuring.options import FOLDS
from equisep.measuring.reading import Read, Subject, read
from equisep.measuring.site import HeldOutSite, TrainSite
from equisep.measuring.states import HeldOut, SiteStates
from equisep.progress import Progress
from equisep.results import Note
from equisep.shapes import Int
from equisep.stats import ClassSubspace, Marks
from equisep.taps import random_state_kept

MIXED = 1.5  # labels permuted inside batches stay right this many times as often as by chance, at the most
DRIFT = 1e-6  # class means that moved by more than this share of the spread moved by more than rounding


@dataclass(slots=True)
class BatchMarks:
    """How the samples of the batch under way are marked beside their labels: permuted labels, and jackknife folds."""

    folds: int
    seed: int
    seen: Tensor
    marks: Marks | None = None

    def start(self, index: int, labels: Int[Tensor, " b"]) -> None:
        """Marks depend on the labels read so far alone, so a second reading in the same order repeats them.

        The i-th sample of class k goes to fold i + k: every fold leaves out its share of every class, however the
        labels are ordered.
        """
        y = labels.cpu()
        generator = torch.Generator("cpu").manual_seed((self.seed * 1_000_003 + index) % 2**63)
        permuted = labels[torch.randperm(len(y), generator=generator, device="cpu").to(labels.device)]
        order = y.argsort(stable=True)
        counts = torch.bincount(y, minlength=len(self.seen))
        before = counts.cumsum(0) - counts  # where each class begins in the sorted batch
        rank = torch.empty_like(y)
        rank[order] = torch.arange(len(y), device="cpu") - before[y[order]]
        folds = ((self.seen[y] + rank + y) % max(self.folds, 1)).to(labels.device)
        self.marks = Marks(labels, folds, permuted.unsqueeze(0))
        self.seen = self.seen + counts

    def of_rows(self, owners: Int[Tensor, " r"] | None) -> Marks:
        """The marks of rows of the batch under way."""
        assert self.marks is not None
        return self.marks.of_rows(owners)


def stream_train(
    subject: Subject, feed: Feed, *, progress: Progress
) -> tuple[list[SiteStates], Read, ResampleKind | None, list[Note]]:
    """Both passes over the training data."""
    probe, options = subject.probe, subject.options
    folds, notes = _affordable_folds(subject)
    null = int(options.wants("null"))
    sites = [TrainSite(classes=probe.classes, folds=folds, permutations=null, options=options) for _ in probe.sites]
    marks = _marks(folds, subject)
    feed.restart()
    with random_state_kept(feed.source):
        one = read(
            subject, feed, start=marks.start, take=lambda i, rows: sites[i].first([rows.features], marks.of_rows(rows.owners)),
            progress=progress, what="first reading",
        )  # fmt: skip
    check_two_classes(one.counts, asked="`measure`")
    for site in sites:
        site.turn()
    again = _marks(folds, subject)
    with random_state_kept(feed.source):
        two = read(
            subject, feed, start=again.start,
            take=lambda i, rows: sites[i].second([rows.features], again.of_rows(rows.owners), subject.layer_at(i)),
            progress=progress, what="second reading", scored=False,
        )  # fmt: skip
    steady = check_same(one, two, feed)
    states = [site.states(steady=steady, layer=subject.layer_at(i)) for i, site in enumerate(sites)]
    notes += _changes(max(state.drift for state in states), steady=steady, what=feed.what)
    if options.wants("null") and one.sortedness > MIXED:
        states = [replace(state, null=None) for state in states]
        text = "The batches are not class-mixed, so permuting labels inside them is no null; it is left out."
        notes.append(Note("no-null", text))
    return states, one, "jackknife" if states[0].replicates is not None else None, notes


def stream_test(
    subject: Subject, feed: Feed, *, train: list[ClassSubspace], progress: Progress
) -> tuple[list[HeldOut], Read, list[Note]]:
    """Both passes over the test data: its own D, and nearest *training* centers."""
    feed.restart()
    sites = [HeldOutSite(space, options=subject.options) for space in train]
    marks = _marks(0, subject)
    with random_state_kept(feed.source):
        one = read(
            subject, feed, start=marks.start,
            take=lambda i, rows: sites[i].first([rows.features], marks.of_rows(rows.owners), subject.layer_at(i)),
            progress=progress, what="first reading of the test data",
        )  # fmt: skip
    for site in sites:
        site.turn()
    with random_state_kept(feed.source):
        two = read(
            subject, feed, start=marks.start,
            take=lambda i, rows: sites[i].second([rows.features], marks.of_rows(rows.owners)),
            progress=progress, what="second reading of the test data", scored=False,
        )  # fmt: skip
    steady = check_same(one, two, feed)
    found = [site.states(layer=subject.layer_at(i)) for i, site in enumerate(sites)]
    moved = max(entry.spread.drift() for entry in found)
    return found, one, _changes(moved, steady=steady, what=feed.what)


def check_same(one: Read, two: Read, feed: Feed) -> bool:
    """Whether both readings saw the samples in one order; raise where they did not even see the same labels."""
    if not torch.equal(one.counts, two.counts):
        raise DataError(
            f"The {feed.what} data cannot be read twice: {one.n} samples in the first reading, {two.n} in the second, "
            f"classes {one.counts.tolist()[:10]} and {two.counts.tolist()[:10]}. Pass data that repeat, or more `memory`."
        )
    return one.order == two.order


def _marks(folds: int, subject: Subject) -> BatchMarks:
    seen = torch.zeros(subject.probe.classes, dtype=torch.int64, device="cpu")
    return BatchMarks(folds=folds, seed=subject.options.seed, seen=seen)


def _affordable_folds(subject: Subject) -> tuple[int, list[Note]]:
    """Jackknife folds, unless their states would outgrow the memory budget: float64 sums, and directions beside them."""
    options = subject.options
    if options.intervals == "none" or not options.wants("fuzziness"):
        return 0, []
    need = 2 * 8 * FOLDS * subject.probe.classes * sum(subject.probe.dims)
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
