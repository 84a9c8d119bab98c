"""Both data sets, from the first reading to the statistics of every site; a second reading for sites that were not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Generic, TypeVar

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.labels import check_two_classes
from equisep.measuring.forward import exact_arithmetic
from equisep.measuring.memory import Memory, assignments, read_once
from equisep.measuring.notes import Notes
from equisep.measuring.plan import STATE_BYTES, Plan
from equisep.measuring.reading import Read, read, refuse_unsteady
from equisep.measuring.request import FOLDS
from equisep.progress import Progress
from equisep.separation import Assignments, SiteStatistics, TestSite, TestStatistics, TrainSite
from equisep.separation.noise.bootstrap import bootstrap_weights, reweighted_fuzziness
from equisep.separation.pca import Components
from equisep.separation.site import TwoPassSite, estimated, whole_sites
from equisep.shapes import Int, Shaped
from equisep.taps import random_state_kept
from equisep.workers import parallel_map

DRIFT = 1e-6  # class means that moved by more than this share of the spread moved by more than rounding
SHARE = 4  # of the memory budget that may go into sites under work

R = TypeVar("R", SiteStatistics, TestStatistics)
KeptSite = Callable[[int, list[Tensor], Assignments, Tensor | None], R]


@dataclass(frozen=True, slots=True)
class Passes(Generic[R]):
    """The statistics of every site in order, and what the reading saw beside."""

    sites: tuple[R, ...]
    read: Read
    components: dict[int, Components]


def training_passes(plan: Plan, feed: Feed, *, notes: Notes, progress: Progress) -> Passes[SiteStatistics]:
    """The training data at every site."""
    components: dict[int, Components] = {}

    def kept(index: int, parts: list[Tensor], rows: Assignments, owners: Tensor | None) -> SiteStatistics:
        local = plan
        if plan.reduction.components is not None:
            known = Components.of(parts, plan.reduction.components)
            if known is not None:
                components[index] = known
                parts = [known(part) for part in parts]
            local = replace(plan, components=components)
        statistics = whole_sites([TrainSite(local.task(index))], [parts], rows)[0]
        return _bootstrapped(local, statistics, parts, rows, owners)

    task = cache(plan.task)  # which is asked for again where it is seen that sites can be read at once
    passes, steady = _all_passes(
        plan, feed, lambda i: TrainSite(task(i)), kept, checked=True, notes=notes, progress=progress
    )
    return replace(with_intervals(passes, plan, steady=steady, notes=notes), components=components)


def with_intervals(passes: Passes[SiteStatistics], plan: Plan, *, steady: bool, notes: Notes) -> Passes[SiteStatistics]:
    """The training data without what their samples cannot give, and a note where that is the intervals."""
    large = [plan.probe.sites[index] for index in plan.sites if plan.folds and not plan.task(index).folds]
    if large:
        text = (
            f"Intervals were left out: the sums of {FOLDS} folds of {plan.probe.classes} classes take more than "
            f"{STATE_BYTES:,} bytes at {len(large)} sites (`{large[0]}`, say). Fewer features, by a reduction, would do."
        )
        notes.add("no-intervals", text)
    if plan.folds > 0 and passes.read.n < 2 * FOLDS:
        notes.add("no-intervals", f"Intervals were left out: {FOLDS} folds of {passes.read.n} samples are too small.")
    return numbered(passes, steady=steady, plan=plan)


def test_passes(
    plan: Plan, feed: Feed, *, train: tuple[SiteStatistics, ...], notes: Notes, progress: Progress
) -> Passes[TestStatistics]:
    """The test data at every site: their own D, and nearest *training* centers."""
    task = cache(plan.task)

    def site(index: int) -> TestSite:
        return TestSite(train[index].spread, task(index))

    def kept(index: int, parts: list[Tensor], rows: Assignments, owners: Tensor | None) -> TestStatistics:
        return whole_sites([site(index)], [parts], rows)[0]

    passes, steady = _all_passes(plan, feed, site, kept, checked=False, notes=notes, progress=progress)
    return numbered(passes, steady=steady, plan=plan)


def numbered(passes: Passes[R], *, steady: bool, plan: Plan) -> Passes[R]:
    """The sites, without what follows from the numbers of samples where these did not stay or are too few for folds.

    Also where features were kept, so that curves are whole.
    """
    sites = passes.sites
    if not steady:
        sites = tuple(replace(site, chance=None, replicates=None, noise=None) for site in sites)
    elif passes.read.n < 2 * FOLDS:
        sites = tuple(replace(site, replicates=None, noise=None) for site in sites)
    elif plan.reduction.spreads:  # rows of one sample are no further samples
        sites = tuple(replace(site, noise=None) for site in sites)
    return replace(passes, sites=estimated(sites))


def _bootstrapped(
    plan: Plan,
    statistics: SiteStatistics,
    parts: list[Shaped[Tensor, "_ d"]],
    rows: Assignments,
    owners: Int[Tensor, " r"] | None,
) -> SiteStatistics:
    """The statistics with D of every bootstrap resample, where it was asked for: samples are drawn, with all their rows."""
    options, space = plan.options, statistics.spread.subspace
    if options.intervals != "bootstrap" or not options.wants("fuzziness") or space.rank == 0:
        return statistics
    labels = rows.labels
    if owners is not None:  # one entry per sample
        labels = labels.new_zeros(int(owners.max()) + 1).index_copy_(0, owners, labels)
    weights = bootstrap_weights(labels, resamples=options.resamples, seed=options.seed)
    values = reweighted_fuzziness(
        torch.cat(parts),
        rows.labels,
        weights=weights if owners is None else weights[:, owners.cpu()],
        classes=plan.probe.classes,
        rank=space.rank,
        convention=options.convention,
    )
    return replace(statistics, replicates=tuple(values.tolist()))


def _all_passes(
    plan: Plan,
    feed: Feed,
    make: Callable[[int], TwoPassSite[R]],
    kept: KeptSite[R],
    *,
    checked: bool,
    notes: Notes,
    progress: Progress,
) -> tuple[Passes[R], bool]:
    """All sites, in as many rounds as the memory makes, and whether every reading saw the samples in one order."""
    left, results = list(plan.sites), dict[int, R]()
    first: Read | None = None  # what all processes read
    own: Read | None = None  # … and this one
    rounds, steady, moved = 0, True, 0.0
    while left:
        memory = Memory(plan, feed, left, make)
        one = _first_reading(plan, feed, memory, progress, before=first)
        rounds += 1
        for index in sorted(plan.together.any_of(memory.summed) - memory.summed.keys()):
            memory.sum_up(index)  # what another process had no room for is read twice by all
        if first is None or own is None:
            own, first = one, plan.together.read(one, plan.options.reading, feed.what)
            if checked:
                check_two_classes(first.counts, asked="`measure`")
        steady = check_same(own, one, feed) and steady
        if memory.summed:
            two = _second_reading(plan, feed, memory, progress, whole=first.random)
            steady = check_same(one, two, feed) and steady
            plan.together.finish(memory.summed)
            summed = {index: memory.summed.pop(index).statistics() for index in sorted(memory.summed)}
            moved = max(moved, *(entry.spread.drift() for entry in summed.values()))
            results |= summed
        results |= _from_memory(plan, memory, kept, progress, done=len(results))
        left = sorted(memory.later)
    assert first is not None
    steady = all(plan.together.gather(steady))
    if rounds > 1:
        text = f"All sites together did not fit `memory`: the {feed.what} data were read in {rounds} rounds, some sites each."
        notes.add("rounds", text)
    if not steady:
        refuse_unsteady(plan.model, plan.options.reading, feed)
    note_changes(notes, moved, steady=steady, what=feed.what)
    return Passes(tuple(results[index] for index in sorted(results)), first, {}), steady


def _first_reading(plan: Plan, feed: Feed, memory: Memory[R], progress: Progress, *, before: Read | None) -> Read:
    if before is not None and not feed.again:
        raise read_once(feed, plan)
    if before is not None or memory.summed:
        feed.restart()  # so that another reading repeats it
    words = _words("first", feed) if memory.summed else f"reading the {feed.what} data"
    only = frozenset(
        {*memory.held, *memory.summed, *memory.later} if memory.keeps_only else {*memory.held, *memory.summed}
    )
    with random_state_kept(feed.source):
        return read(
            plan,
            feed,
            take=memory.take,
            start=memory.start,
            progress=progress,
            what=words,
            scored=before is None,
            only=only,
            whole=before is not None and before.random,
        )


def _second_reading(plan: Plan, feed: Feed, memory: Memory[R], progress: Progress, *, whole: bool) -> Read:
    """The second pass over the sites that were summed; the forward pass ends after the last of them.

    Not so where it is to be `whole`: a model that draws random numbers must draw as many as it did before.
    """
    sites, under_way = memory.summed, BatchAssignments(plan, feed)
    plan.together.turn(sites)
    with random_state_kept(feed.source):
        return read(
            plan,
            feed,
            take=lambda index, rows: sites[index].second([rows.features], under_way.rows.of_rows(rows.owners)),
            start=under_way.start,
            progress=progress,
            what=_words("second", feed),
            scored=False,
            only=frozenset(sites),
            whole=whole,
        )


class BatchAssignments:
    """The assignments of the batch under way."""

    def __init__(self, plan: Plan, feed: Feed) -> None:
        self.plan, self.feed = plan, feed

    def start(self, labels: Int[Tensor, " b"]) -> None:
        """A batch begins."""
        self.rows = assignments(self.plan, labels, self.feed)


def _words(which: str, feed: Feed) -> str:
    return f"{which} reading" if feed.what == "training" else f"{which} reading of the {feed.what} data"


def _from_memory(plan: Plan, memory: Memory[R], kept: KeptSite[R], progress: Progress, *, done: int) -> dict[int, R]:
    """The sites whose features were kept, several at once."""
    held, total = sorted(memory.held), len(plan.sites)
    if plan.together.partial:
        return {index: _in_part(plan, memory, index) for index in held}
    if not held:
        return {}
    device = memory.labels[0].device
    if memory.at_once:
        read = {index: memory.features(index) for index in held}
        rows = read[held[0]][1]
        with exact_arithmetic(device):
            whole = whole_sites([memory.make(index) for index in held], [parts for parts, _, _ in read.values()], rows)
        progress("statistics", total, total)
        return dict(zip(held, whole, strict=True))

    def work(index: int) -> R:
        parts, rows, owners = memory.features(index)
        return kept(index, parts, rows, owners)

    with exact_arithmetic(device):
        results = parallel_map(
            work,
            held,
            threads=_threads(plan, len(held)) if device.type == "cpu" else 1,
            done=lambda count: progress("statistics", done + count, total),
        )
    return dict(zip(held, results, strict=True))


def _in_part(plan: Plan, memory: Memory[R], index: int) -> R:
    """One site whose features were kept, of which other processes have the rest."""
    site = memory.make(index)
    parts, rows, _ = memory.features(index)
    with exact_arithmetic(rows.labels.device):
        if parts:
            site.first(parts, rows)
        plan.together.turn({index: site})
        if parts:
            site.second(parts, rows)
        plan.together.finish({index: site})
        return site.statistics()


def _threads(plan: Plan, sites: int) -> int:
    """As many as there are threads, and as the memory of the widest site's statistics allows."""
    room = plan.options.memory // SHARE // max(1, int(2 * max(map(plan.state_bytes, plan.sites))))
    return max(1, min(torch.get_num_threads(), sites, room))


def check_same(one: Read, two: Read, feed: Feed) -> bool:
    """Whether both readings saw the samples in one order; raise where they did not even see the same labels."""
    if not torch.equal(one.counts, two.counts):
        raise DataError(
            f"The {feed.what} data cannot be read twice: {one.n} samples in the first reading, {two.n} in the second, "
            f"classes {one.counts.tolist()[:10]} and {two.counts.tolist()[:10]}. Pass data that repeat, or more `memory`."
        )
    return one.order.labels == two.order.labels


def note_changes(notes: Notes, moved: float, *, steady: bool, what: str) -> None:
    """Features that changed between two readings, or samples that came in another order."""
    if moved > DRIFT:
        text = (
            f"The {what} features changed between the two readings (class means moved by up to {moved:.2g} of the "
            "within-class spread): the loader augments, or shuffles in the reading `mixed`. D is of both readings mixed."
        )
        notes.add("changed", text)
    elif not steady:
        lost = (
            ""
            if what == "test"
            else "; its samples have no number that stays, so the chance level and intervals are left out"
        )
        notes.add("shuffled", f"The {what} loader shuffles between readings; D is not affected{lost}.")
