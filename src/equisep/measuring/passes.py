"""Both data sets, from the first reading to the statistics of every site; a second reading for those that were not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.labels import check_two_classes
from equisep.law.intervals import ResampleKind
from equisep.measuring.buffered import few_samples, held_out_states, marked_states, plan_replicates, states_of
from equisep.measuring.forward import exact_arithmetic
from equisep.measuring.keeping import Kept
from equisep.measuring.options import FOLDS
from equisep.measuring.reading import Read, Subject, read
from equisep.measuring.sharing import Division, S, Sharing, divide, state_bytes, wanted_folds
from equisep.measuring.workers import site_threads
from equisep.progress import Progress
from equisep.results import Note
from equisep.separation import ClassSubspace
from equisep.separation.marking import BatchMarks
from equisep.separation.site import HeldOutSite, TrainSite
from equisep.separation.states import HeldOut, SiteStates
from equisep.taps import random_state_kept
from equisep.workers import parallel_map

MIXED = 1.5  # labels permuted inside batches stay right this many times as often as by chance, at the most
DRIFT = 1e-6  # class means that moved by more than this share of the spread moved by more than rounding

T = TypeVar("T")
Trained = tuple[list[SiteStates], Read, ResampleKind | None, list[Note]]


def train_states(subject: Subject, feed: Feed, *, progress: Progress) -> Trained:
    """The training data at every site."""
    probe, options = subject.probe, subject.options
    division = divide(subject, feed, folds=wanted_folds(subject))
    null = int(options.wants("null"))

    def site(place: int) -> TrainSite:
        return TrainSite(
            classes=probe.classes, folds=division.folds, permutations=null, options=options, layer=subject.layer_at(place),
            offset=subject.offset_at(place),
        )  # fmt: skip

    sharing = Sharing(subject, feed, division, site)
    one = _first_reading(sharing, division, progress)
    check_two_classes(one.counts, asked="`measure`")
    kept = sharing.kept(one)
    if not sharing.summed:
        return _from_memory(subject, kept, progress)
    two = _second_reading(sharing, progress, whole=one.random)
    steady = check_same(one, two, feed)
    marks = sharing.marks.so_far()
    states = _in_order(
        {place: sharing.summed.pop(place).states(steady=steady) for place in sorted(sharing.summed)},
        lambda place: marked_states(
            kept.features.parts(place), place, kept=kept, subject=subject, marks=marks, folds=division.folds, permutations=null
        ),
        sharing, progress,
    )  # fmt: skip
    few = division.folds > 0 and one.n < 2 * FOLDS
    if few:
        states = [replace(state, replicates=None) for state in states]
    if not steady:  # what depends on the order of the samples: also where features were kept, so that curves are whole
        states = [replace(state, null=None, replicates=None) for state in states]
    notes = [few_samples(one.n)] if few else _interval_notes(subject, division)
    notes += _changes(max(state.drift for state in states), steady=steady, what=feed.what)
    if options.wants("null") and one.sortedness > MIXED:
        states = [replace(state, null=None) for state in states]
        text = "The batches are not class-mixed, so permuting labels inside them is no null; it is left out."
        notes.append(Note("no-null", text))
    whole = all(state.replicates is not None for state in states)
    return states, one, "jackknife" if whole else None, notes


def held_out(
    subject: Subject, feed: Feed, *, train: list[ClassSubspace], progress: Progress
) -> tuple[list[HeldOut], Read, list[Note]]:
    """The test data at every site: their own D, and nearest *training* centers."""
    division = divide(subject, feed, folds=0)

    def site(place: int) -> HeldOutSite:
        layer, offset = subject.layer_at(place), subject.offset_at(place)
        return HeldOutSite(train[place], options=subject.options, layer=layer, offset=offset)

    sharing = Sharing(subject, feed, division, site)
    one = _first_reading(sharing, division, progress)
    kept = sharing.kept(one)
    steady, summed = True, {}
    if sharing.summed:
        two = _second_reading(sharing, progress, whole=one.random)
        steady = check_same(one, two, feed)
        summed = {place: sharing.summed.pop(place).states() for place in sorted(sharing.summed)}
    found = _in_order(
        summed,
        lambda place: held_out_states(place, kept=kept, train=train[place], subject=subject),
        sharing, progress,
    )  # fmt: skip
    moved = max((entry.spread.drift() for entry in summed.values()), default=0.0)
    return found, one, _changes(moved, steady=steady, what=feed.what)


def _first_reading(sharing: Sharing[S], division: Division, progress: Progress) -> Read:
    subject, feed = sharing.subject, sharing.feed
    whole = len(division.held) == len(subject.probe.sites)
    if not whole:
        feed.restart()  # so that a second reading repeats it
    words = f"reading the {feed.what} data" if whole else _words("first", feed)
    with random_state_kept(feed.source):
        return read(subject, feed, take=sharing.take, start=sharing.start, progress=progress, what=words)


def _second_reading(sharing: Sharing[S], progress: Progress, *, whole: bool) -> Read:
    """The second pass over the sites that were not kept; the forward pass ends after the last of them.

    Not so where it is to be `whole`: a model that draws random numbers must draw as many as it did before.
    """
    subject, feed, sites = sharing.subject, sharing.feed, sharing.summed
    for site in sites.values():
        site.turn()
    marks = BatchMarks(classes=subject.probe.classes, folds=sharing.folds, seed=subject.options.seed, kept=False)
    with random_state_kept(feed.source):
        return read(
            subject, feed, take=lambda place, rows: sites[place].second([rows.features], marks.of_rows(rows.owners)),
            start=marks.start, progress=progress, what=_words("second", feed), scored=False, only=frozenset(sites), whole=whole,
        )  # fmt: skip


def _words(which: str, feed: Feed) -> str:
    return f"{which} reading" if feed.what == "training" else f"{which} reading of the {feed.what} data"


def _from_memory(subject: Subject, kept: Kept, progress: Progress) -> Trained:
    """Where the features of all sites were kept."""
    replicates, notes = plan_replicates(kept, subject)
    places = range(len(subject.probe.sites))

    def work(place: int) -> SiteStates:
        parts = kept.features.parts(place)
        return states_of(parts, place, kept=kept, subject=subject, replicates=replicates)

    with exact_arithmetic(kept.labels.device):
        states = parallel_map(
            work,
            places,
            threads=site_threads(subject, len(places)),
            done=lambda count: progress("statistics", count, len(places)),
        )
    return states, kept.read, replicates.kind if replicates else None, notes


def _in_order(summed: dict[int, T], work: Callable[[int], T], sharing: Sharing[S], progress: Progress) -> list[T]:
    """The statistics of all sites in their order: those that were summed up, and those worked off from memory."""
    held = sorted(sharing.held)
    with exact_arithmetic(sharing.labels[0].device):
        found = parallel_map(
            work,
            held,
            threads=site_threads(sharing.subject, len(held)),
            done=lambda count: progress("statistics", count, len(held)),
        )
    both = {**summed, **dict(zip(held, found, strict=True))}
    return [both[place] for place in sorted(both)]


def check_same(one: Read, two: Read, feed: Feed) -> bool:
    """Whether both readings saw the samples in one order; raise where they did not even see the same labels."""
    if not torch.equal(one.counts, two.counts):
        raise DataError(
            f"The {feed.what} data cannot be read twice: {one.n} samples in the first reading, {two.n} in the second, "
            f"classes {one.counts.tolist()[:10]} and {two.counts.tolist()[:10]}. Pass data that repeat, or more `memory`."
        )
    return one.order == two.order


def _interval_notes(subject: Subject, division: Division) -> list[Note]:
    """What is to be said of intervals where not all features were kept."""
    options = subject.options
    if wanted_folds(subject) and not division.folds:
        need = sum(state_bytes(subject, place, folds=FOLDS) for place in range(len(subject.probe.sites)))
        text = f"Intervals were left out: {FOLDS} folds need {need:,.0f} bytes, the budget is {options.memory:,} (`memory=`)."
        return [Note("no-intervals", text)]
    if options.intervals == "bootstrap":
        text = "Not all features were kept, so intervals are by jackknife over folds instead of the bootstrap."
        return [Note("jackknife", text)]
    return []


def _changes(moved: float, *, steady: bool, what: str) -> list[Note]:
    if moved > DRIFT:
        text = (
            f"The {what} features changed between the two readings (class means moved by up to {moved:.2g} of the "
            "within-class spread): the loader augments, or shuffles in the reading `mixed`. D is of both readings mixed."
        )
        return [Note("changed", text)]
    if not steady:
        lost = "" if what == "test" else ", the null and intervals are left out"
        text = f"The {what} loader shuffles between readings; D is not affected{lost}."
        return [Note("shuffled", text)]
    return []
