"""Memory: which sites keep their features within the budget, which are summed up as they come, which wait.

The sites that are summed are the first ones of the network, so that the second forward pass over them ends early. Numbers do
not depend on it: a site gives the same statistics from memory and from two readings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.measuring.plan import Plan
from equisep.measuring.request import MEMORY
from equisep.separation import Assignments
from equisep.separation.site import TwoPassSite, at_once
from equisep.shapes import Int, Shaped
from equisep.taps import Rows

JOINED_NUMBERS = 4 * 2**20  # small batches are joined up to here: 32 MiB in float64
LARGE_NUMBERS = 2**18  # a batch of more is long enough for the passes as it is
R = TypeVar("R")


@dataclass(slots=True)
class _Kept:
    """The features of one site as they came, and the sample of each row where a sample has several."""

    parts: list[Tensor] = field(default_factory=list)
    owners: list[Tensor] = field(default_factory=list)


class Memory(Generic[R]):
    """The consumer of a first reading."""

    def __init__(self, plan: Plan, feed: Feed, sites: Sequence[int], make: Callable[[int], TwoPassSite[R]]) -> None:
        self.plan, self.feed, self.make = plan, feed, make
        summed, held, later = self._divided(sites)
        self.summed: dict[int, TwoPassSite[R]] = {index: make(index) for index in summed}
        self.held, self.later = set(held), set(later)
        self.used = 0.0
        self.labels: list[Tensor] = []
        self.assigned: list[Assignments] = []  # of every batch, where they are a part of the data
        self.samples, self._begun = 0, 0  # of the batches before the one under way, and of this one
        self._batch: Tensor = torch.zeros(0, dtype=torch.int64)
        self._rows: Assignments | None = None
        self._kept: dict[int, _Kept] = {index: _Kept() for index in held}
        self._whole: tuple[int, Assignments] | None = None  # of all rows so far, and how many these are

    @property
    def keeps_only(self) -> bool:
        """Whether features must be kept: components and the bootstrap need all of a site's at once."""
        return self.plan.reduction.components is not None or self.plan.options.intervals == "bootstrap"

    def _divided(self, sites: Sequence[int]) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """The sites that are summed, kept, and read another time, as far as can be foreseen."""
        plan, budget = self.plan, self.plan.options.memory
        if not self.feed.again or self.keeps_only:
            return [], sites, []
        batches = self.feed.batches
        states = [plan.state_bytes(index) for index in sites]
        if batches is None:  # keep all as long as it goes, where their sums would have room after that
            samples = 0 if sum(states) <= budget else float("inf")
        else:
            samples = batches * max(self.feed.batch_sizes, default=1)  # as the probe saw it
        samples = max(plan.together.gather(samples))  # all processes divide the sites alike
        features = [samples * plan.bytes_at(index) for index in sites]
        for cut in range(len(sites)):
            if sum(features[cut:]) <= budget - sum(states[:cut]):
                return sites[:cut], sites[cut:], []
        count = 1  # not one can be kept: as many of the first as their sums have room
        while count < len(sites) and sum(states[: count + 1]) <= max(budget, MEMORY):
            count += 1
        return sites[:count], [], sites[count:]

    @property
    def room(self) -> float:
        """What is left of the budget for features."""
        return float(self.plan.options.memory) - sum(map(self.plan.state_bytes, self.summed))

    def start(self, labels: Int[Tensor, " b"]) -> None:
        """A batch begins."""
        self.samples, self._begun = self.samples + self._begun, len(labels)
        self._batch, self._rows = labels, None
        if self.held:  # of sites that are summed, no label is needed twice
            self.labels.append(labels)
            if self.plan.together.partial:
                self.assigned.append(self.rows)

    @property
    def rows(self) -> Assignments:
        """Those of the batch under way, made where a site is summed."""
        if self._rows is None:
            self._rows = assignments(self.plan, self._batch, self.feed)
        return self._rows

    def take(self, index: int, rows: Rows) -> None:
        """Keep what a site gave, or add it up."""
        need = bytes_of(rows.features)
        while index in self.held and self.used + need > self.room:
            self._let_go(index)
        if index in self.held:
            kept = self._kept[index]
            kept.parts.append(rows.features.detach().clone())  # in-place activations overwrite what a hook saw
            self.used += need
            if rows.owners is not None:
                kept.owners.append(rows.owners + self.samples)
        elif index in self.summed:
            self.summed[index].first([rows.features], self.rows.of_rows(rows.owners))

    def sum_up(self, index: int) -> None:
        """A site that is kept is summed from now on."""
        self.held.discard(index)
        site = self.summed[index] = self.make(index)
        parts, rows = self._pop(index)
        if parts:
            site.first(parts, rows)

    def _let_go(self, index: int) -> None:
        """Make room: the first site that is kept is summed from now on, or where it cannot be, the last one waits."""
        if not self.feed.again:
            raise read_once(self.feed, self.plan)
        if not self.keeps_only:
            self.sum_up(min(self.held))
            return
        chosen = max(self.held)
        if self.plan.reduction.components is None or len(self.held) == 1:
            raise self._too_small(index)
        self.held.discard(chosen)
        self.later.add(chosen)
        self._pop(chosen)

    def _too_small(self, index: int) -> DataError:
        budget, name = self.plan.options.memory, self.plan.probe.sites[index]
        if self.plan.options.intervals == "bootstrap":
            return DataError(
                f"`intervals='bootstrap'` needs all features in memory, and with those of `{name}` they exceed "
                f"`memory={budget}` bytes.{self._enough(self.plan.sites)} Raise `memory`, or take the default intervals, which "
                "need none of them."
            )
        return DataError(
            f"`{self.plan.reduction.name}` needs all features of a site at once, and those of `{name}` do not fit "
            f"`memory={budget}` bytes.{self._enough([index])} Raise `memory`, or pass fewer samples."
        )

    def _enough(self, sites: Sequence[int]) -> str:
        """What the features of some sites take, in a sentence, where the number of samples is known."""
        if self.feed.batches is None:
            return ""
        samples = self.feed.batches * max(self.feed.batch_sizes, default=1)  # no fewer than there are
        return f" {math.ceil(samples * sum(map(self.plan.bytes_at, sites))):,} bytes are enough."

    @property
    def at_once(self) -> bool:
        """Whether the sites that are kept can be read at once: few rows on a GPU, one per sample."""
        if not self._kept or self.keeps_only or self.plan.reduction.spreads or self.plan.together.partial:
            return False
        parts = [kept.parts for index, kept in sorted(self._kept.items())]
        return all(parts) and at_once([self.make(index) for index in sorted(self._kept)], parts)

    def features(self, index: int) -> tuple[list[Shaped[Tensor, "_ d"]], Assignments, Int[Tensor, " r"] | None]:
        """All features of a kept site in pieces, how their rows are assigned, and the sample of each row.

        They leave the memory, so that it falls as sites are worked off.
        """
        owners = self._kept[index].owners
        parts, rows = self._pop(index)
        return parts, rows, torch.cat(owners) if owners else None

    def _pop(self, index: int) -> tuple[list[Tensor], Assignments]:
        kept = self._kept.pop(index)
        self.used -= sum(map(bytes_of, kept.parts))
        parts = _joined(kept.parts)
        if self.assigned:
            rows = Assignments.joined(self.assigned)
        elif self.labels:
            rows = self._so_far()
        else:
            return parts, Assignments(torch.zeros(0, dtype=torch.int64, device="cpu"))
        if kept.owners:
            return parts, rows.of_rows(torch.cat(kept.owners))
        return parts, rows.part(
            slice(0, sum(map(len, parts)))
        )  # the batch under way may not have reached this site yet

    def _so_far(self) -> Assignments:
        """Those of all rows up to now, made once for all sites."""
        n = self.samples + len(self.labels[-1])
        if self._whole is None or self._whole[0] != n:
            self._whole = n, assignments(self.plan, torch.cat(self.labels))
        return self._whole[1]


def assignments(plan: Plan, labels: Int[Tensor, " b"], feed: Feed | None = None) -> Assignments:
    """Folds and random classes of samples by their numbers: those of the batch under way, or from the first sample on."""
    return Assignments.of(
        labels,
        first=0 if feed is None else feed.first_number,
        step=1 if feed is None else feed.numbering.step,
        numbered=plan.together.partial and not plan.reduction.spreads,
        classes=plan.probe.classes,
        folds=plan.folds,
        relabelings=plan.relabelings,
        seed=plan.options.seed,
    )


def _joined(parts: list[Tensor]) -> list[Tensor]:
    """Pieces as they came, small ones joined: wide features need no second copy."""
    groups: list[list[Tensor]] = []
    numbers = 0
    for part in parts:
        numbers += part.numel()
        if not groups or numbers > JOINED_NUMBERS or part.numel() > LARGE_NUMBERS:
            groups.append([])
            numbers = part.numel()
        groups[-1].append(part)
    return [group[0] if len(group) == 1 else torch.cat(group) for group in groups]


def bytes_of(features: Tensor) -> int:
    """What a tensor takes."""
    return features.numel() * features.element_size()


def read_once(feed: Feed, plan: Plan) -> DataError:
    """The error of features that do not fit, of data that cannot be read again."""
    return DataError(
        f"The {feed.what} data can be read only once (they are an iterator), and the features of "
        f"{len(plan.probe.sites)} sites need more than `memory={plan.options.memory}` bytes. "
        "Pass a loader that can be read twice, fewer sites, or more memory."
    )
