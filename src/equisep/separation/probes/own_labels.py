"""Labels that a layer gives to unseen samples by nearest class centers, so that it separates them with the known ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.display import brief
from equisep.separation.nearest import nearest_points
from equisep.shapes import Float, Float64, Int

ROUNDS = 200  # every round lowers a sum of squares over finitely many labelings; a few are taken


@brief
@dataclass(frozen=True, slots=True, eq=False)
class OwnLabels:
    """Labels of a second sample under which one layer separates both samples, or nearly.

    labels      of the second sample: each its nearest center
    separated   the share of both samples whose nearest center, of both, is that of their label; 1 is NCC separable
    """

    labels: Int[Tensor, " m"]
    separated: float


def own_labels(
    first: Float[Tensor, "n d"], labels: Int[Tensor, " n"], second: Float[Tensor, "m d"], *, classes: int
) -> OwnLabels:
    """Label `second` by the nearest centers of `first`, then by those of both, until nothing changes (Lloyd 1982).

    The labels of `first` stay. Every round lowers Σ‖x − c_label‖², so the rounds end. The features then *witness* that a
    network of this depth separates the first sample together with the second under these labels, in the sense of Galanti &
    Galanti 2022 (Prop. 1): the minimal NCC depth of the two is at most the depth of the layer.
    """
    known, unseen = first.double(), second.double()
    names = labels.long()
    answers = nearest_points(unseen, *_centers(known, names, classes))
    for _ in range(ROUNDS):
        centers = _centers(torch.cat([known, unseen]), torch.cat([names, answers]), classes)
        again = nearest_points(unseen, *centers)
        if torch.equal(again, answers):
            break
        answers = again
    both, given = torch.cat([known, unseen]), torch.cat([names, answers])
    right = nearest_points(both, *_centers(both, given, classes)) == given
    return OwnLabels(labels=answers, separated=float(right.double().mean()))


def _centers(
    rows: Float64[Tensor, "n d"], labels: Int[Tensor, " n"], classes: int
) -> tuple[Float64[Tensor, "k d"], Int[Tensor, " k"]]:
    """Class means, and how many samples each is of."""
    counts = torch.bincount(labels, minlength=classes)
    sums = torch.zeros(classes, rows.shape[1], dtype=torch.float64, device=rows.device).index_add_(0, labels, rows)
    return sums / counts.clamp(min=1).unsqueeze(1), counts
