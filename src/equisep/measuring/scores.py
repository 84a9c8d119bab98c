"""What the class scores of a network say of samples: hits, margins and confusions per class, added up batch by batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from equisep.separation.pairs.confusion import Confusion
from equisep.shapes import Int, Shaped


class ScoreSums:
    """Per class: samples that the network classifies right, Σ margins, and what it takes the others for.

    The margin of a sample is its own score less the largest other one, in float64. Sums are kept on the CPU, since not every
    device has float64; what a batch sends there are a few numbers per sample.
    """

    def __init__(self, classes: int, *, margins: bool = False, confusion: bool = False) -> None:
        self.classes = classes
        self.counts = torch.zeros(classes, dtype=torch.int64, device="cpu")
        self.hits = torch.zeros_like(self.counts)
        self.margins = torch.zeros(classes, dtype=torch.float64, device="cpu") if margins else None
        self.confusion = Confusion(classes) if confusion else None

    def add(self, scores: Shaped[Tensor, "b k"], labels: Int[Tensor, " b"]) -> None:
        """Add the samples of a batch."""
        scores = scores.detach() if scores.is_floating_point() else scores.detach().float()
        own, guesses = labels.cpu(), scores.argmax(dim=1).cpu()
        self.counts += torch.bincount(own, minlength=self.classes)
        self.hits += torch.bincount(own[guesses == own], minlength=self.classes)
        if self.confusion is not None:
            self.confusion.add(own, guesses)
        if self.margins is not None:
            column = labels.to(scores.device).unsqueeze(1)
            others = scores.scatter(1, column, -torch.inf).amax(dim=1)
            both = torch.stack([scores.gather(1, column).squeeze(1), others]).cpu().to(torch.float64)
            self.margins.index_add_(0, own, both[0] - both[1])

    def merge(self, other: ScoreSums) -> ScoreSums:
        """The sums of both parts of the data together."""
        joined = ScoreSums(self.classes)
        joined.counts, joined.hits = self.counts + other.counts, self.hits + other.hits
        if self.margins is not None and other.margins is not None:
            joined.margins = self.margins + other.margins
        if self.confusion is not None and other.confusion is not None:
            joined.confusion = self.confusion.merge(other.confusion)
        return joined

    @property
    def mean_margins(self) -> tuple[float | None, ...] | None:
        """The mean margin per class; None for a class without samples, and where a score is infinite."""
        if self.margins is None:
            return None
        pairs = zip(self.margins.tolist(), self.counts.tolist(), strict=True)
        return tuple(total / count if count and math.isfinite(total) else None for total, count in pairs)
