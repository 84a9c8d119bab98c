"""Marks: how rows of features are labeled beside their classes, with jackknife folds and with permuted classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Int


@dataclass(frozen=True, slots=True)
class Marks:
    """The class of every row, the fold that leaves it out, and its class under each of p permutations of the labels."""

    labels: Int[Tensor, " n"]
    folds: Int[Tensor, " n"] | None = None
    permuted: Int[Tensor, "p n"] | None = None

    @staticmethod
    def joined(parts: Sequence[Marks]) -> Marks:
        """The marks of several batches together, which are marked alike."""
        folds = [part.folds for part in parts if part.folds is not None]
        permuted = [part.permuted for part in parts if part.permuted is not None]
        return Marks(
            torch.cat([part.labels for part in parts]),
            torch.cat(folds) if folds else None,
            torch.cat(permuted, dim=1) if permuted else None,
        )

    def __len__(self) -> int:
        return self.labels.numel()

    def of_rows(self, owners: Int[Tensor, " r"] | None) -> Marks:
        """The marks of rows that belong to samples: several of one sample stay in one fold and share one label."""
        return self if owners is None else self._picked(owners)

    def part(self, rows: slice) -> Marks:
        """The marks of some rows."""
        folds = None if self.folds is None else self.folds[rows]
        return Marks(self.labels[rows], folds, None if self.permuted is None else self.permuted[:, rows])

    def to(self, device: torch.device) -> Marks:
        """The marks on a device."""
        folds = None if self.folds is None else self.folds.to(device)
        return Marks(self.labels.to(device), folds, None if self.permuted is None else self.permuted.to(device))

    def _picked(self, index: Int[Tensor, " r"]) -> Marks:
        folds = None if self.folds is None else self.folds[index]
        return Marks(self.labels[index], folds, None if self.permuted is None else self.permuted[:, index])
