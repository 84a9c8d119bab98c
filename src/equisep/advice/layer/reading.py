"""The features of every layer of a model, read once per split: kept within a budget, else layer by layer in rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.measuring.memory import bytes_of, read_once
from equisep.measuring.notes import Notes
from equisep.measuring.plan import Plan
from equisep.measuring.reading import read
from equisep.progress import Progress
from equisep.shapes import Int
from equisep.taps import Rows, random_state_kept


@dataclass(frozen=True, slots=True)
class SplitRows:
    """One split at one site: its features in pieces, and their labels."""

    features: list[Tensor]
    labels: Int[Tensor, " n"]


@dataclass(slots=True)
class _Keeper:
    """The consumer of one round: keeps what fits the budget; of what does not, the last site waits for another round."""

    budget: int
    held: set[int]
    waiting: list[int] = field(default_factory=list)
    parts: list[dict[int, list[Tensor]]] = field(default_factory=list)
    used: int = 0

    def start(self) -> None:
        """Another split begins."""
        self.parts.append({index: [] for index in self.held})

    def take(self, index: int, rows: Rows) -> None:
        """Keep a copy: an in-place activation would overwrite what a hook saw."""
        need = bytes_of(rows.features)
        while index in self.held and self.used + need > self.budget:
            self._drop(max(self.held))
        if index in self.held:
            self.parts[-1][index].append(rows.features.detach().clone())
            self.used += need

    def _drop(self, index: int) -> None:
        self.held.discard(index)
        self.waiting.append(index)
        for split in self.parts:
            self.used -= sum(map(bytes_of, split.pop(index, [])))


def split_rows(
    plan: Plan, feeds: Sequence[Feed], sites: Sequence[int], *, notes: Notes, progress: Progress
) -> Iterator[tuple[int, tuple[SplitRows, ...]]]:
    """Each of these sites with the features of every split; a site too large for the budget is left out with a Note."""
    left, budget, rounds = list(sites), plan.options.memory, 0
    orders: tuple[int, ...] | None = None
    while left:
        keeper, labels, seen = _Keeper(budget, set(left)), list[Tensor](), list[int]()
        for feed in feeds:
            if rounds and not feed.again:
                raise read_once(feed, plan)
            here: list[Tensor] = []
            keeper.start()
            feed.restart()
            with random_state_kept(feed.source):
                one = read(
                    plan, feed, take=keeper.take, start=here.append, progress=progress,
                    what=f"reading the {feed.what} data", scored=False, only=frozenset(keeper.held or left[:1]),
                )  # fmt: skip
            labels.append(torch.cat(here))
            seen.append(one.order.labels)
        rounds += 1
        if orders is not None and tuple(seen) != orders:
            raise DataError(
                "The data came in another order when they were read again, so that layers cannot be compared sample by sample. "
                f"Pass data that keep their order, or more `memory` than {budget} bytes."
            )
        orders = tuple(seen)
        if not keeper.held:
            large = left.pop(0)
            text = f"The features of `{plan.probe.sites[large]}` alone exceed `memory={budget}` bytes: it was left out."
            notes.add("too-large", text)
            continue
        for index in sorted(keeper.held):
            yield index, tuple(SplitRows(split.pop(index), y) for split, y in zip(keeper.parts, labels, strict=True))
        left = sorted(keeper.waiting)
    if rounds > 1:
        notes.add(
            "rounds",
            f"All layers together did not fit `memory`: the data were read in {rounds} rounds, some layers each.",
        )
