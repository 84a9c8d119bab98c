"""Features kept in memory while batches come, and what else is known of their rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.measuring.reading import Read, Subject
from equisep.separation import FeatureBuffer
from equisep.shapes import Int
from equisep.taps import Rows


@dataclass(frozen=True, slots=True)
class Kept:
    """All features of some sites, the sample that each row belongs to where a sample has several, and the labels."""

    features: FeatureBuffer
    owners: dict[int, list[Tensor]]
    labels: Int[Tensor, " n"]
    read: Read

    def rows_of(self, index: int) -> Int[Tensor, " r"] | None:
        """The sample of every row at one site; None where every sample has one."""
        return torch.cat(self.owners[index]) if index in self.owners else None


class Keeping:
    """The consumer that keeps features, and the labels beside them."""

    def __init__(self) -> None:
        self.features = FeatureBuffer()
        self.owners: dict[int, list[Tensor]] = {}
        self.labels: list[Tensor] = []
        self.before = 0  # samples of the batches before the one under way

    def start(self, index: int, labels: Int[Tensor, " b"]) -> None:
        """A batch begins."""
        self.before += len(self.labels[-1]) if self.labels else 0
        self.labels.append(labels)

    def take(self, index: int, rows: Rows) -> None:
        """Keep what a site gave."""
        self.features.add(index, rows.features)
        if rows.owners is not None:
            self.owners.setdefault(index, []).append(rows.owners + self.before)

    def kept(self, done: Read) -> Kept:
        """Everything, when all batches have been read."""
        return Kept(self.features, self.owners, torch.cat(self.labels), done)


def read_once(feed: Feed, subject: Subject) -> DataError:
    """The error of features that do not fit, of data that cannot be read again."""
    return DataError(
        f"The {feed.what} data can be read only once (they are an iterator), and the features of "
        f"{len(subject.probe.sites)} sites need more than `memory={subject.options.memory}` bytes. "
        "Pass a loader that can be read twice, fewer sites, or more memory."
    )
