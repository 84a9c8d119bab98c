"""How samples are marked beside their labels while batches come: permuted labels, and jackknife folds."""

from __future__ import annotations

import torch
from torch import Tensor

from equisep.separation.assignments import Marks
from equisep.shapes import Int


class BatchMarks:
    """The marks of the batch under way, and where they are kept of all batches so far."""

    def __init__(self, *, classes: int, folds: int, seed: int, kept: bool = True) -> None:
        self.folds, self.seed, self.kept = folds, seed, kept
        self.seen: Tensor = torch.zeros(classes, dtype=torch.int64, device="cpu")
        self.batches: list[Marks] = []

    def start(self, index: int, labels: Int[Tensor, " b"]) -> None:
        """Marks depend on the labels read so far alone, so a second reading in the same order repeats them.

        The i-th sample of class k goes to fold i + k: every fold leaves out its share of every class, however the
        labels are ordered.
        """
        y = labels.cpu()
        generator = torch.Generator("cpu").manual_seed((self.seed * 1_000_003 + index) % 2**63)
        permuted = labels[torch.randperm(len(y), generator=generator, device="cpu").to(labels.device)]
        order = y.argsort(stable=True)
        counts = torch.bincount(y, minlength=len(self.seen))
        before = counts.cumsum(0) - counts  # where each class begins in the sorted batch
        rank = torch.empty_like(y)
        rank[order] = torch.arange(len(y), device="cpu") - before[y[order]]
        folds = ((self.seen[y] + rank + y) % max(self.folds, 1)).to(labels.device)
        if not self.kept:
            self.batches.clear()
        self.batches.append(Marks(labels, folds, permuted.unsqueeze(0)))
        self.seen = self.seen + counts

    def of_rows(self, owners: Int[Tensor, " r"] | None) -> Marks:
        """The marks of rows of the batch under way."""
        return self.batches[-1].of_rows(owners)

    def so_far(self) -> Marks:
        """The marks of all samples of all batches."""
        return Marks.joined(self.batches)
