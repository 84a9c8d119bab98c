"""Few-shot error: nearest centers of m training samples per class, drawn many times, on the test samples."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from equisep.separation.nearest import nearest_points
from equisep.separation.probes.axes import ProbeRows
from equisep.shapes import Bool, Float64, Int


def few_shot_errors(
    rows: ProbeRows, shots: Sequence[int], *, draws: int, seed: int
) -> dict[int, Float64[Tensor, " draws"]]:
    """The error of every draw for every m that all classes have samples for: the mean over classes of the share misnamed.

    Training samples are drawn without replacement, those of smaller m among those of larger ones, alike at every site.
    """
    counts = rows.counts
    present = counts.nonzero().flatten()
    orders = [_orders(int(counts[k]), draws=draws, seed=seed + int(k)) for k in present.tolist()]  # draws n_k each
    own = [rows.train[rows.labels == k] for k in present.tolist()]
    found = {}
    for m in shots:
        if m > int(counts[present].min()):
            continue
        centers = torch.stack(
            [part[order[:, :m].to(part.device)].mean(dim=1) for part, order in zip(own, orders, strict=True)]
        )
        errors = [
            1 - balanced_accuracy(present[nearest_points(rows.test, centers[:, draw], counts[present])], rows)
            for draw in range(draws)
        ]
        found[m] = torch.tensor(errors, dtype=torch.float64, device="cpu")
    return found


def _orders(count: int, *, draws: int, seed: int) -> Int[Tensor, "draws n"]:
    """Random orders of the samples of one class."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(draws, count, generator=generator, dtype=torch.float64, device="cpu").argsort(dim=1)


def balanced_accuracy(guesses: Int[Tensor, " t"], rows: ProbeRows) -> float:
    """The mean over the classes of the test data of the share of samples named rightly."""
    return class_mean((guesses == rows.labels_test).double(), rows.labels_test, classes=rows.classes)


def class_mean(values: Float64[Tensor, " t"] | Bool[Tensor, " t"], labels: Int[Tensor, " t"], *, classes: int) -> float:
    """The mean over classes of the mean over their samples."""
    counts = torch.bincount(labels, minlength=classes)
    sums = torch.zeros(classes, dtype=torch.float64, device=labels.device).index_add_(0, labels, values.double())
    return float((sums[counts > 0] / counts[counts > 0]).mean())
