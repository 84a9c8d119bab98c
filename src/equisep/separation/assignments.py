"""Assignments: what every row counts as beside its class, a fold left out and classes drawn at random, by sample number.

A sample's fold and its random classes depend on its number in the data and on the seed alone, never on batches, memory or
how the data were divided: that is what makes the chance level and the intervals the same however the data are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equisep.shapes import Int

RELABELINGS = 5  # random labelings that a chance level is the median of
_FOLD_STREAM = 0  # random classes take the streams after it


@dataclass(frozen=True, slots=True)
class Assignments:
    """The class of every row, the fold that leaves it out, and its class under each of p random relabelings.

    `numbers` are those of the rows' samples in the whole data, where the rows are of a part of them; without, rows come in
    order from the first on.
    """

    labels: Int[Tensor, " n"]
    folds: Int[Tensor, " n"] | None = None
    relabeled: Int[Tensor, "p n"] | None = None
    numbers: Int[Tensor, " n"] | None = None

    @staticmethod
    def of(
        labels: Int[Tensor, " n"],
        *,
        first: int,
        classes: int,
        folds: int,
        relabelings: int,
        seed: int,
        step: int = 1,
        numbered: bool = False,
    ) -> Assignments:
        """Those of the samples numbered `first`, `first + step`, …, with these labels; `numbered` keeps the numbers."""
        n, device = labels.numel(), labels.device
        wanted = first + step * np.arange(n)
        streams = range(_FOLD_STREAM + 1, _FOLD_STREAM + 1 + relabelings)
        drawn = _shares(wanted, groups=classes, seed=seed, streams=streams) if relabelings else None
        share = _shares(wanted, groups=folds, seed=seed, streams=[_FOLD_STREAM])[0] if folds else None
        return Assignments(
            labels,
            None if share is None else torch.from_numpy(share).to(device),
            None if drawn is None else torch.from_numpy(drawn).to(device),
            first + step * torch.arange(n, device=device) if numbered else None,
        )

    @staticmethod
    def joined(parts: Sequence[Assignments]) -> Assignments:
        """Those of several batches together."""
        folds = [part.folds for part in parts if part.folds is not None]
        relabeled = [part.relabeled for part in parts if part.relabeled is not None]
        numbers = [part.numbers for part in parts if part.numbers is not None]
        return Assignments(
            torch.cat([part.labels for part in parts]),
            torch.cat(folds) if folds else None,
            torch.cat(relabeled, dim=1) if relabeled else None,
            torch.cat(numbers) if numbers else None,
        )

    def __len__(self) -> int:
        return self.labels.numel()

    def of_rows(self, owners: Int[Tensor, " r"] | None) -> Assignments:
        """Those of rows that belong to samples: several of one sample stay in one fold and share one label."""
        return self if owners is None else self._at(owners)

    def part(self, rows: slice) -> Assignments:
        """Those of some rows."""
        return self._at(rows)

    def to(self, device: torch.device) -> Assignments:
        """The same on a device."""
        folds = None if self.folds is None else self.folds.to(device)
        relabeled = None if self.relabeled is None else self.relabeled.to(device)
        return Assignments(
            self.labels.to(device), folds, relabeled, None if self.numbers is None else self.numbers.to(device)
        )

    def _at(self, rows: slice | Tensor) -> Assignments:
        folds = None if self.folds is None else self.folds[rows]
        relabeled = None if self.relabeled is None else self.relabeled[:, rows]
        return Assignments(self.labels[rows], folds, relabeled, None if self.numbers is None else self.numbers[rows])


def _shares(wanted: NDArray[np.int64], *, groups: int, seed: int, streams: Sequence[int]) -> NDArray[np.int64]:
    """A group of every sample number, in each stream: each run of `groups` numbers is dealt out to all groups in its own order.

    Equal shares to within one, whatever the order of the data; the order of each run comes from hashing its numbers.
    """
    runs, where = np.unique(wanted // groups, return_inverse=True)
    numbers = (runs[:, None] * groups + np.arange(groups)).astype(np.uint64)  # u g
    order = _hashed(numbers, seed=seed, streams=streams).argsort(axis=2)  # s u g
    dealt = np.empty_like(order)
    np.put_along_axis(dealt, order, np.arange(groups)[None, None, :], axis=2)
    return dealt[:, where, wanted % groups]


def _hashed(numbers: NDArray[np.uint64], *, seed: int, streams: Sequence[int]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea & Flood 2014) of sample numbers, one stream per seed and use, streams first."""
    with np.errstate(over="ignore"):
        steps = [(seed * 0x9E3779B97F4A7C15 + (stream + 1) * 0xD1B54A32D192ED03) % 2**64 for stream in streams]
        z = numbers + np.array(steps, dtype=np.uint64)[:, None, None]
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 0x9E3779B97F4A7C15)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return z ^ (z >> np.uint64(29))
