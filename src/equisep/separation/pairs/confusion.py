"""Confusion: how many rows of each class were taken for each other class, as counts that add up."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from equisep.results import ClassPair
from equisep.shapes import Int

MOST_PAIRS = 20  # pairs of classes that a profile names
DENSE_CLASSES = 512  # up to here a K × K table is kept (2 MiB); beyond, only the pairs that occur
WAITING = 2**18  # rows that wait before they are counted, where only the pairs that occur are kept


@dataclass(slots=True)
class Confusion:
    """Counts of (class, class that a row was taken for), added up over batches, and merged over parts of the data.

    Up to 512 classes they are a table, which a GPU fills without being waited for. Of more classes the pairs that occur are
    kept, at most as many as there are rows.
    """

    classes: int
    _table: Tensor | None = None  # K², where there are few classes
    _keys: Tensor | None = None  # the pairs that occur, in order, and how often
    _counts: Tensor | None = None
    _waiting: list[Tensor] = field(default_factory=list)

    def add(self, labels: Int[Tensor, " n"], guesses: Int[Tensor, " n"]) -> None:
        """Add rows: their classes, and the classes that they were taken for."""
        keys = labels * self.classes + guesses
        if self.classes > DENSE_CLASSES:
            self._waiting.append(keys)
            if sum(map(len, self._waiting)) >= WAITING:
                self._pairs()
            return
        if self._table is None:
            self._table = keys.new_zeros(self.classes**2)
        self._table.index_add_(0, keys, torch.ones_like(keys))

    def _pairs(self) -> tuple[Int[Tensor, " p"], Int[Tensor, " p"]]:
        """The pairs that occur as keys in ascending order, and how often each does, on the CPU."""
        if self._table is not None:
            table = self._table.cpu()
            keys = table.nonzero().flatten()
            return keys, table[keys]
        known = [torch.zeros(0, dtype=torch.int64, device="cpu")] * 2
        if self._keys is not None and self._counts is not None:
            known = [self._keys, self._counts]
        if self._waiting:
            new, counts = torch.cat(self._waiting).cpu().unique(return_counts=True)
            known = _joined(torch.cat([known[0], new]), torch.cat([known[1], counts]))
            self._waiting.clear()
        self._keys, self._counts = known
        return known[0], known[1]

    def merge(self, other: Confusion) -> Confusion:
        """The counts of both parts together: exact, in any order."""
        keys, counts = _joined(*(torch.cat(both) for both in zip(self._pairs(), other._pairs(), strict=True)))
        if self.classes > DENSE_CLASSES:
            return Confusion(self.classes, _keys=keys, _counts=counts)
        return Confusion(self.classes, keys.new_zeros(self.classes**2).index_copy_(0, keys, counts))

    @property
    def hits(self) -> Int[Tensor, " k"]:
        """Rows taken for their own class, per class."""
        keys, counts = self._pairs()
        labels, right = keys // self.classes, keys // self.classes == keys % self.classes
        return torch.zeros(self.classes, dtype=torch.int64, device="cpu").index_add_(0, labels[right], counts[right])

    def most_confused(self, most: int = MOST_PAIRS) -> tuple[ClassPair, ...]:
        """The pairs (class, class it was taken for) that occur most often, with the number of rows; of equals the first."""
        keys, counts = self._pairs()
        wrong = keys // self.classes != keys % self.classes
        keys, counts = keys[wrong], counts[wrong]
        order = counts.argsort(descending=True, stable=True)[:most]
        pairs = zip(keys[order].tolist(), counts[order].tolist(), strict=True)
        k = self.classes
        return tuple(ClassPair(first=key // k, second=key % k, value=float(count)) for key, count in pairs)


def _joined(keys: Tensor, counts: Tensor) -> list[Tensor]:
    """Pairs that occur twice as one."""
    joined, where = keys.unique(return_inverse=True)
    return [joined, torch.zeros_like(joined).index_add_(0, where, counts)]
