"""Together: how what was read here becomes what all processes read, which of one process alone is what it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.shapes import Int

R = TypeVar("R")  # a Read, which knows of plans, which know of this


@runtime_checkable
class Together(Protocol):
    """The processes that read parts of the data."""

    partial: bool  # whether what is read here may be a part

    def batches(self, feed: Feed) -> Iterator[tuple[Inputs, Int[Tensor, " b"], bool]]:
        """The batches to run here, and whether each counts: a model that is spread over processes runs in all or none."""

    def read(self, read: R) -> R:
        """What all processes read."""

    def any_of(self, sites: Iterable[int]) -> set[int]:
        """The sites that any process named."""

    def most(self, number: float) -> float:
        """The largest number of any process."""

    def first(self, sites: Mapping[int, Any]) -> None:
        """Put the sums of all processes in the place of those of each site, before `turn`."""

    def second(self, sites: Mapping[int, Any]) -> None:
        """The same with what the second pass added up, before `statistics`."""


class Alone:
    """One process that meets no other: it reads all there is, or a part that files add to the others."""

    def __init__(self, *, partial: bool = False) -> None:
        self.partial = partial

    def batches(self, feed: Feed) -> Iterator[tuple[Inputs, Int[Tensor, " b"], bool]]:
        """The batches of the feed, all of which count."""
        for inputs, labels in feed:
            yield inputs, labels, True

    def read(self, read: R) -> R:
        """What was read."""
        return read

    def any_of(self, sites: Iterable[int]) -> set[int]:
        """The sites named."""
        return set(sites)

    def most(self, number: float) -> float:
        """The number."""
        return number

    def first(self, sites: Mapping[int, Any]) -> None:
        """Nothing to add."""

    def second(self, sites: Mapping[int, Any]) -> None:
        """Nothing to add."""


ALONE, FILED = Alone(), Alone(partial=True)
