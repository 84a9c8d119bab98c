"""Nearest class centers and class-distance normalized variance (Galanti & Galanti 2022)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from equisep.errors import InputError, NumericalError
from equisep.separation.arrays import LabeledRows, checked_arrays, labeled, labeled_rows, scaled
from equisep.separation.blocks import Room, blocks_of, squared_norms
from equisep.separation.group_sums import ClassCenters, class_sums
from equisep.separation.nearest import Points
from equisep.separation.pairs.means import squared_distances, squared_rounding
from equisep.separation.site import Spread
from equisep.shapes import Float64, Int, Shaped


def cdnv_of(spread: Spread) -> float | None:
    """Class-distance normalized variance; distances between the class coordinates on the subspace, where all means lie."""
    return mean_cdnv(spread.subspace.coordinates, spread.projections.variances, spread.centers)


def mean_cdnv(points: Float64[Tensor, "k r"], variances: Float64[Tensor, " k"], centers: ClassCenters) -> float | None:
    """Mean over ordered pairs i ≠ j of (Var_i + Var_j) / (2‖m_i − m_j‖²); None where two means coincide to rounding.

    Var_k = (1/n_k) Σ ‖x_ki − m_k‖²; `points` are the class means in any orthonormal coordinates, about any point.
    """
    present = centers.present
    if len(present) < len(points):
        points, variances = points[present], variances[present]  # p r, p
    nothing = squared_rounding(centers)
    total = 0.0
    for rows, columns, squared in squared_distances(points):
        if not bool((squared > nothing).all()):
            return None
        both = variances[rows].unsqueeze(1) + variances[columns]
        total += float(both.div_(squared).sum())  # both orders, over 2
    return total / (present.numel() * (present.numel() - 1))


def cdnv(x: Any, y: Any) -> float:
    """Class-distance normalized variance of features x with labels y, the mean over pairs of classes.

    >>> import equisep
    >>> round(equisep.cdnv([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]), 9)
    0.01
    """
    rows = labeled_rows(x, y, asked="`cdnv`")
    centers = rows.centers()
    value = mean_cdnv(centers.about, _variances(rows, centers), centers)
    if value is None:
        raise NumericalError("`cdnv` needs class means that differ; two of them coincide. Check the features.")
    return value


def _variances(rows: LabeledRows, centers: ClassCenters) -> Float64[Tensor, " k"]:
    """Var_k of every class: no direction is needed for it, so none is looked for."""

    def traces(part: LabeledRows) -> Float64[Tensor, " k"]:
        summed, room = centers.shift.new_zeros(rows.classes), Room()
        for span, block in blocks_of([part.features]):
            y = part.labels[span]
            for columns, x in block.columns():
                norms = squared_norms(centers.residuals(x, y, columns, room))
                summed += class_sums(norms.unsqueeze(1), y, classes=rows.classes).squeeze(1)
        return summed

    return torch.stack(rows.of_parts(traces)).sum(dim=0) / centers.counts.clamp(min=1)


def ncc_accuracy(x: Any, y: Any, *, train: tuple[Any, Any] | None = None) -> float:
    """Share of samples whose nearest class mean is that of their label.

    The means are those of `train = (x_train, y_train)` where given (always the training data, for train and test
    alike), otherwise of x itself.

    >>> import equisep
    >>> equisep.ncc_accuracy([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    1.0
    """
    asked = "`ncc_accuracy`"
    if train is None:
        rows = labeled_rows(x, y, asked=asked)
        return _hits(rows.features, rows.labels, rows.centers()) / rows.labels.numel()
    like, given = checked_arrays(*train, asked=asked), checked_arrays(x, y, asked=asked)
    known, features, names = labeled(like, asked=asked), given.features, given.labels
    if features.shape[1] != known.features.shape[1]:
        raise InputError(
            f"{asked} needs train and x of one width; found {known.features.shape[1]} and {features.shape[1]} features."
        )
    strange = names[~torch.isin(names, known.names)]
    if strange.numel():
        raise InputError(
            f"{asked} was given label {int(strange[0])}, of which `train` has no sample. Check the labels."
        )
    # side by side: of others torch warns
    labels = torch.searchsorted(known.names, names.contiguous()).to(features.device)
    return _hits(scaled(features, like=like), labels, known.centers()) / labels.numel()


def _hits(features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"], centers: ClassCenters) -> int:
    """Samples whose nearest center is their own: by distances in the features themselves, without a decomposition."""
    origin = centers.shift + centers.about[centers.present].mean(dim=0)
    # both about the same point, however it rounds
    near = Points(centers.about - (origin - centers.shift), centers.counts)
    hits, room = 0, Room()
    for span, block in blocks_of([features]):
        x = block.whole()
        about = torch.sub(x.to(torch.float64), origin, out=room.like(x, "about"))
        hits += int(near.own(about, labels[span]).sum())
    return hits
