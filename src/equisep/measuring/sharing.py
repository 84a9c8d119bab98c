"""How sites share the memory budget: the deepest keep their features, the others are summed up and read a second time.

Sites read twice are the first ones of the network, so that the second forward pass ends after the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.measuring.keeping import Keeping, read_once
from equisep.measuring.options import FOLDS
from equisep.measuring.reading import Subject
from equisep.separation import Marks
from equisep.separation.buffer import bytes_of
from equisep.separation.marking import BatchMarks
from equisep.shapes import Int, Shaped
from equisep.taps import Rows


@dataclass(frozen=True, slots=True)
class Division:
    """Which sites keep their features, as far as can be foreseen, and how many jackknife folds the others can afford."""

    held: frozenset[int]
    folds: int


def divide(subject: Subject, feed: Feed, *, folds: int) -> Division:
    """As many of the deepest sites as the budget has room for, beside the sums of the others; folds where these fit."""
    places = range(len(subject.probe.sites))
    if not feed.again:
        return Division(frozenset(places), folds)
    samples = None if feed.batches is None else feed.batches * max(feed.batch_sizes, default=1)  # as the probe saw it
    for tried in dict.fromkeys((folds, 0)):
        used = sum(state_bytes(subject, place, folds=tried) for place in places)
        held, fits = frozenset[int](), used <= subject.options.memory
        for place in reversed(places):  # all of them: features of few samples take less than sums of many classes
            needed = 0.0 if samples is None else samples * subject.bytes_at(place)
            used += needed - state_bytes(subject, place, folds=tried)
            if used <= subject.options.memory and (fits or samples is not None):
                held, fits = frozenset(range(place, len(places))), True
        if fits:
            break
    return Division(held, tried)


def state_bytes(subject: Subject, place: int, *, folds: int) -> float:
    """What the sums of one site take: of every fold and class and every permuted class, and the classes' origins."""
    return 8.0 * subject.probe.classes * (max(folds, 1) + 2) * subject.probe.dims[place]


class TwoPass(Protocol):
    """A site whose statistics take two passes over its features."""

    def first(self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks) -> None:
        """The first pass, some rows."""

    def turn(self) -> None:
        """Between the passes."""

    def second(self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks) -> None:
        """The second pass, some rows."""


S = TypeVar("S", bound=TwoPass)


class Sharing(Keeping, Generic[S]):
    """The consumer of a first reading: keeps the sites that are held, takes the first pass over the others.

    Where features outgrow what was foreseen (sequences grow longer, a loader has no length), the shallowest site that is
    held goes over to the others with all it has.
    """

    def __init__(self, subject: Subject, feed: Feed, division: Division, site: Callable[[int], S]) -> None:
        super().__init__()
        self.subject, self.feed, self.site, self.folds = subject, feed, site, division.folds
        self.held = set(division.held)
        self.summed: dict[int, S] = {
            place: site(place) for place in range(len(subject.probe.sites)) if place not in self.held
        }
        self.marks = BatchMarks(classes=subject.probe.classes, folds=division.folds, seed=subject.options.seed)
        self.room = subject.options.memory - sum(state_bytes(subject, p, folds=self.folds) for p in self.summed)

    def start(self, index: int, labels: Int[Tensor, " b"]) -> None:
        """A batch begins."""
        super().start(index, labels)
        self.marks.start(index, labels)

    def take(self, index: int, rows: Rows) -> None:
        """Keep what a site gave, or add it up."""
        if index in self.held:
            need = bytes_of(rows.features)
            while index in self.held and self.features.used + need > self.room:
                self._let_go(min(self.held))
        if index in self.held:
            super().take(index, rows)
        else:
            self.summed[index].first([rows.features], self.marks.of_rows(rows.owners))

    def _let_go(self, place: int) -> None:
        if not self.feed.again:
            raise read_once(self.feed, self.subject)
        self.held.discard(place)
        self.room -= state_bytes(self.subject, place, folds=self.folds)
        site = self.summed[place] = self.site(place)
        owners = torch.cat(self.owners.pop(place)) if place in self.owners else None
        if place not in self.features:
            return
        parts = self.features.parts(place)
        marks = self.marks.so_far()
        if owners is None:  # the batch under way may not have reached this site yet
            marks = marks.part(slice(0, sum(map(len, parts))))
        site.first(parts, marks.of_rows(owners))


def wanted_folds(subject: Subject) -> int:
    """Folds of the jackknife, where intervals were asked for."""
    options = subject.options
    return FOLDS if options.intervals != "none" and options.wants("fuzziness") else 0
