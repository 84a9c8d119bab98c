"""Together: how what was read here becomes what all processes read, which of one process alone is what it has."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.results import Reading
from equisep.shapes import Int

R = TypeVar("R")  # a Read, which knows of plans, which know of this
Batch = tuple[Inputs, Int[Tensor, " b"], bool]
Batches = Generator[Batch, None, None]
Check = Callable[[int, Int[Tensor, " b"]], None]


@runtime_checkable
class Together(Protocol):
    """The processes that read parts of the data.

    `partial` says that what is read here may be a part, `lockstep` that a forward pass is one of all processes.
    """

    partial: bool
    lockstep: bool

    def sample(self, feed: Feed) -> tuple[Inputs, Int[Tensor, " b"]]:
        """The first samples, to plan by."""

    def agree(self, plan: Any, dtype: Any, taken: Mapping[Reading, Reading] | None = None) -> None:
        """Raise where processes do not plan one measurement; `dtype` is that of the model's parameters.

        `taken` has for each reading the one whose numbers it has, by how the data come.
        """

    def gather(self, value: Any) -> list[Any]:
        """What every process has, in their order."""

    def tell(self, error: Exception) -> None:
        """Let the others know of an error that this process has with its part, once."""

    def batches(self, feed: Feed, check: Check) -> Batches:
        """The batches to run here, and whether each counts: a model that is spread over processes runs in all or none.

        `check` is told the number and the labels of each before any process runs it, and raises where something is wrong.
        """

    def read(self, read: R, reading: str, what: str) -> R:
        """What all processes read."""

    def any_of(self, sites: Iterable[int]) -> set[int]:
        """The sites that any process named."""

    def turn(self, sites: Mapping[int, Any]) -> None:
        """Add up the first pass of all processes at some sites, and turn to the second."""

    def finish(self, sites: Mapping[int, Any]) -> None:
        """Add up the second pass of all processes at some sites."""


class Alone:
    """One process that meets no other: it reads all there is, or a part that files add to the others."""

    lockstep = False

    def __init__(self, *, partial: bool = False) -> None:
        self.partial = partial

    def sample(self, feed: Feed) -> tuple[Inputs, Int[Tensor, " b"]]:
        """The first batch."""
        return feed.first()

    def agree(self, plan: Any, dtype: Any, taken: Mapping[Reading, Reading] | None = None) -> None:
        """One process agrees with itself."""

    def gather(self, value: Any) -> list[Any]:
        """The value."""
        return [value]

    def tell(self, error: Exception) -> None:
        """There is nobody to tell."""

    def batches(self, feed: Feed, check: Check) -> Batches:
        """The batches of the feed, all of which count."""
        for index, (inputs, labels) in enumerate(feed):
            check(index, labels)
            yield inputs, labels, True

    def read(self, read: R, reading: str, what: str) -> R:
        """What was read."""
        return read

    def any_of(self, sites: Iterable[int]) -> set[int]:
        """The sites named."""
        return set(sites)

    def turn(self, sites: Mapping[int, Any]) -> None:
        """Turn to the second pass."""
        for site in sites.values():
            site.turn()

    def finish(self, sites: Mapping[int, Any]) -> None:
        """Nothing to add."""


ALONE, FILED = Alone(), Alone(partial=True)
