"""What the class scores of a network say of samples: hits, margins and confusions per class, added up batch by batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from equisep.separation.pairs.confusion import Confusion
from equisep.shapes import Float64, Int, Shaped

TOGETHER = 1024  # samples that are summed at once: small batches would spend their time on the way there
TOGETHER_NUMBERS = 2**20  # … and scores, of many classes
NOTHING = -1  # what a sample with NaN among its scores is taken for: it is not classified right


class ScoreSums:
    """Per class: samples, those that the network classifies right, Σ margins, and what it takes the others for.

    The margin of a sample is its own score less the largest other one, in float64. Sums are kept on the CPU, since not every
    device has float64; a few numbers per sample go there.
    """

    def __init__(self, classes: int, *, margins: bool = False, confusion: bool = False) -> None:
        self.classes = classes
        self._counts = torch.zeros(classes, dtype=torch.int64, device="cpu")
        self._hits = torch.zeros_like(self._counts)
        self._margins = torch.zeros(classes, dtype=torch.float64, device="cpu") if margins else None
        self._confusion = Confusion(classes) if confusion else None
        self._waiting: list[tuple[Tensor, Tensor]] = []
        self._rows = 0

    def add(self, scores: Shaped[Tensor, "b k"], labels: Int[Tensor, " b"]) -> None:
        """Add the samples of a batch."""
        self._waiting.append((scores.detach().clone(), labels))  # a model may write its next output where this one is
        self._rows += len(labels)
        if self._rows >= TOGETHER or self._rows * self.classes >= TOGETHER_NUMBERS:
            self._sum()

    def _sum(self) -> ScoreSums:
        """Add up what waits."""
        if not self._waiting:
            return self
        scores, labels = (torch.cat(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._rows = [], 0
        scores = scores if scores.is_floating_point() else scores.float()
        top, guesses = scores.max(dim=1)
        own, guesses = labels.cpu(), guesses.where(~top.isnan(), NOTHING).cpu()
        self._counts += torch.bincount(own, minlength=self.classes)
        self._hits += torch.bincount(own[guesses == own], minlength=self.classes)
        if self._confusion is not None:
            said = guesses != NOTHING
            self._confusion.add(own[said], guesses[said])
        if self._margins is not None:
            column = labels.to(scores.device).unsqueeze(1)
            mine = scores.gather(1, column).squeeze(1)
            both = torch.stack([mine, scores.scatter_(1, column, -torch.inf).amax(dim=1)]).cpu().to(torch.float64)
            self._margins.index_add_(0, own, both[0] - both[1])
        return self

    def merge(self, other: ScoreSums) -> ScoreSums:
        """The sums of both parts of the data together."""
        joined = ScoreSums(self.classes)
        joined._counts, joined._hits = self.counts + other.counts, self.hits + other.hits
        if self.margins is not None and other.margins is not None:
            joined._margins = self.margins + other.margins
        if self.confusion is not None and other.confusion is not None:
            joined._confusion = self.confusion.merge(other.confusion)
        return joined

    @property
    def counts(self) -> Int[Tensor, " k"]:
        """Samples per class."""
        return self._sum()._counts

    @property
    def hits(self) -> Int[Tensor, " k"]:
        """Samples per class whose own score is the largest."""
        return self._sum()._hits

    @property
    def margins(self) -> Float64[Tensor, " k"] | None:
        """Σ (own score − largest other), per class, where it was asked for."""
        return self._sum()._margins

    @property
    def confusion(self) -> Confusion | None:
        """Who is taken for whom, where that was asked for."""
        return self._sum()._confusion

    @property
    def mean_margins(self) -> tuple[float | None, ...] | None:
        """The mean margin per class; None for a class without samples, and where a score is infinite."""
        if self.margins is None:
            return None
        pairs = zip(self.margins.tolist(), self.counts.tolist(), strict=True)
        return tuple(total / count if count and math.isfinite(total) else None for total, count in pairs)
