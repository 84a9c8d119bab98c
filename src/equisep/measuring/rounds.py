"""Measuring on principal components: features are kept site by site, in as many readings as the memory budget makes."""

from __future__ import annotations

from dataclasses import replace

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.labels import check_two_classes
from equisep.law.intervals import ResampleKind
from equisep.measuring.buffered import Replicates, plan_replicates, states_of
from equisep.measuring.keeping import Keeping, Kept, read_once
from equisep.measuring.passes import check_same
from equisep.measuring.reading import Read, Subject, read
from equisep.progress import Progress
from equisep.results import Note
from equisep.separation.buffer import bytes_of
from equisep.separation.pca import Components
from equisep.separation.states import SiteStates
from equisep.taps import Rows, random_state_kept


class _Round(Keeping):
    """Keeps the sites that fit; where they outgrow the budget, the deepest is let go of, for a later round."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject, self.budget = subject, subject.options.memory
        self.held: set[int] = set()
        self.later: set[int] = set()

    def take(self, index: int, rows: Rows) -> None:
        """Keep what a site gave, as long as there is room for it."""
        need = bytes_of(rows.features)
        while index not in self.later and self.features.used + need > self.budget:
            deepest = max({*self.held, index})
            if len({*self.held, index}) == 1:
                raise DataError(
                    f"`{self.subject.reduction.name}` needs all features of a site at once, and those of "
                    f"`{self.subject.probe.sites[index]}` do not fit `memory={self.budget}` bytes. "
                    "Raise `memory`, or pass fewer samples."
                )
            self.features.drop(deepest)
            self.held.discard(deepest)
            self.later.add(deepest)
        if index not in self.later:
            self.held.add(index)
            super().take(index, rows)


def rounds_of_train(
    subject: Subject, feed: Feed, *, progress: Progress
) -> tuple[list[SiteStates], dict[int, Components], Read, ResampleKind | None, list[Note]]:
    """All statistics of the training data on the components of each site, and the components."""
    left = frozenset(range(len(subject.probe.sites)))
    states: dict[int, SiteStates] = {}
    components: dict[int, Components] = {}
    first: Read | None = None
    replicates: Replicates | None = None
    notes: list[Note] = []
    rounds, steady = 0, True
    while left:
        if first is not None:
            if not feed.again:
                raise read_once(feed, subject)
            feed.restart()
        keeping = _Round(subject)
        rounds += 1
        with random_state_kept(feed.source):
            done = read(
                subject, feed, take=keeping.take, start=keeping.start, progress=progress,
                what=f"reading the {feed.what} data", scored=first is None, only=left,
                whole=first is not None and first.random,
            )  # fmt: skip
        kept = keeping.kept(done)
        if first is None:
            first = done
            check_two_classes(done.counts, asked="`measure`")
            replicates, notes = plan_replicates(kept, subject)
        steady = steady and check_same(first, done, feed)
        for index in sorted(keeping.held):
            states[index] = _on_components(index, kept, subject, replicates, components)
            progress("statistics", len(states), len(subject.probe.sites))
        left = frozenset(keeping.later)
    assert first is not None
    if rounds > 1:
        text = f"All features together did not fit `memory`: the {feed.what} data were read {rounds} times, some sites a time."
        notes.append(Note("rounds", text))
    found = [states[index] for index in sorted(states)]
    if not steady:
        found = [replace(state, replicates=None) for state in found]
        notes.append(Note("shuffled", f"The {feed.what} loader shuffles between readings; intervals are left out."))
    kind = replicates.kind if replicates is not None and steady else None
    return found, components, first, kind, notes


def _on_components(
    index: int, kept: Kept, subject: Subject, replicates: Replicates | None, components: dict[int, Components]
) -> SiteStates:
    assert subject.reduction.components is not None
    parts = kept.features.parts(index)
    found = Components.of(parts, subject.reduction.components)
    if found is not None:
        components[index] = found
        parts = [found(part) for part in parts]
    return states_of(parts, index, kept=kept, subject=replace(subject, components=components), replicates=replicates)
