"""Nearest class centers, class-distance normalized variance, and effective depth (Galanti & Galanti 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from equisep.errors import InputError, NumericalError
from equisep.separation.arrays import checked_arrays, read_arrays
from equisep.separation.buffer import in_chunks
from equisep.separation.convention import PAPER
from equisep.separation.moments import ClassMoments
from equisep.separation.projections import nearest_centers, project
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64, Int

EPS64 = torch.finfo(torch.float64).eps
PAIR_ROWS = 256  # classes whose distances to all others are held at once


def cdnv_of(moments: ClassMoments, subspace: ClassSubspace) -> float | None:
    """Mean over ordered pairs i ≠ j of (Var_i + Var_j) / (2‖m_i − m_j‖²); None where two means coincide to rounding.

    Var_k = (1/n_k) Σ ‖x_ki − m_k‖². Distances are taken between the class coordinates on the subspace, where all
    means lie: K²·r operations instead of K²·d.
    """
    present = moments.present
    variance = moments.traces[present] / moments.counts[present]  # p
    points = subspace.coordinates[present]  # p r
    nothing = float(EPS64**2 * moments.n * moments.means.square().sum(dim=1).max())  # squared rounding of a mean
    total = 0.0
    for rows in torch.arange(present.numel(), device=points.device).split(PAIR_ROWS):
        squared = torch.cdist(points[rows], points, compute_mode="donot_use_mm_for_euclid_dist").square()  # b p
        squared[torch.arange(rows.numel(), device=points.device), rows] = torch.inf
        if not bool((squared > nothing).all()):
            return None
        total += float(((variance[rows].unsqueeze(1) + variance) / (2 * squared)).sum())
    return total / (present.numel() * (present.numel() - 1))


def cdnv(x: Any, y: Any) -> float:
    """Class-distance normalized variance of features x with labels y, the mean over pairs of classes."""
    read = read_arrays(x, y, asked="`cdnv`", convention=PAPER)
    value = cdnv_of(read.moments, read.subspace)
    if value is None:
        raise NumericalError("`cdnv` needs class means that differ; two of them coincide. Check the features.")
    return value


def ncc_hits(
    features: Float64[Tensor, "n r"], labels: Int[Tensor, " n"], *, subspace: ClassSubspace
) -> tuple[Int[Tensor, " n"], int]:
    """Nearest training centers of projected residuals, and how many of them are the label."""
    guesses = nearest_centers(features, labels, subspace=subspace)
    return guesses, int((guesses == labels.to(guesses.device)).sum())


def ncc_accuracy(x: Any, y: Any, *, train: tuple[Any, Any] | None = None) -> float:
    """Share of samples whose nearest class mean is that of their label.

    The means are those of `train = (x_train, y_train)` where given (always the training data, for train and test
    alike), otherwise of x itself.
    """
    asked = "`ncc_accuracy`"
    if train is None:
        read = read_arrays(x, y, asked=asked, convention=PAPER)
        features, labels, subspace = read.features, read.labels, read.subspace
    else:
        names_train = checked_arrays(*train, asked=asked)[1]
        subspace = read_arrays(*train, asked=asked, convention=PAPER).subspace
        features, names = checked_arrays(x, y, asked=asked)
        if features.shape[1] != subspace.means.shape[1]:
            raise InputError(
                f"{asked} needs train and x of one width; found {subspace.means.shape[1]} and {features.shape[1]} features."
            )
        known = names_train.unique()
        strange = names[~torch.isin(names, known)]
        if strange.numel():
            raise InputError(
                f"{asked} was given label {int(strange[0])}, of which `train` has no sample. Check the labels."
            )
        labels = torch.searchsorted(known, names)
    hits = sum(
        ncc_hits(project(a, b, subspace=subspace), b, subspace=subspace)[1] for a, b in in_chunks(features, labels)
    )
    return hits / labels.numel()


def effective_depth(ncc_train: Sequence[float | None], *, epsilon: float = 0.0) -> int | None:
    """Least l ≥ 1 whose nearest-center training accuracy is at least 1 − ε; None if no site qualifies.

    Site 0 is the raw input. Galanti & Galanti call more than 99 % perfect: ε = 0.01.
    """
    if not 0 <= epsilon < 1:
        raise InputError(f"`epsilon` is a share of samples, 0 ≤ ε < 1; found {epsilon}.")
    for index, accuracy in enumerate(ncc_train):
        if index >= 1 and accuracy is not None and accuracy + epsilon >= 1 - EPS64:  # 0.82 + 0.18 rounds below 1
            return index
    return None
