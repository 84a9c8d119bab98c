"""Plain tensors and arrays through the same two passes that a model's sites go through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from equisep.errors import FeatureError, InputError
from equisep.labels import as_tensor, class_indices, distinct
from equisep.separation.buffer import in_chunks
from equisep.separation.convention import Convention
from equisep.separation.moments import ClassMoments
from equisep.separation.projections import Projections, project
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Int, Shaped


@dataclass(frozen=True, slots=True)
class ArrayReading:
    """Both passes over one array of features."""

    features: Shaped[Tensor, "n d"]
    labels: Int[Tensor, " n"]
    moments: ClassMoments
    subspace: ClassSubspace
    projections: Projections


def checked_arrays(x: Any, y: Any, *, asked: str) -> tuple[Shaped[Tensor, "n d"], Int[Tensor, " n"]]:
    """Features as n × d and labels as n class indices, or one sentence that says what is wrong."""
    features = as_tensor(x, what="The features")
    labels, _ = class_indices(y)
    if features.ndim < 2:
        raise InputError(f"{asked} needs features of shape n × d; found shape {tuple(features.shape)}.")
    if features.is_complex():
        raise InputError(
            f"{asked} needs real features; found {features.dtype}. Pass real and imaginary parts side by side."
        )
    if features.shape[0] != labels.shape[0]:
        raise InputError(
            f"{asked} needs one label a sample; found {features.shape[0]} samples and {labels.shape[0]} labels."
        )
    if features.shape[0] == 0 or features[0].numel() == 0:
        raise InputError(f"{asked} needs at least one sample and one feature; found shape {tuple(features.shape)}.")
    flat = features.flatten(1)
    if flat.is_floating_point() and not bool(torch.isfinite(flat).all()):
        bad = int((~torch.isfinite(flat)).sum())
        raise FeatureError(f"{asked} needs finite features; {bad} of {flat.numel()} numbers are NaN or Inf.")
    return flat, labels


def read_arrays(x: Any, y: Any, *, asked: str, convention: Convention) -> ArrayReading:
    """Both passes over plain arrays; K is the number of distinct labels."""
    features, names = checked_arrays(x, y, asked=asked)
    labels, classes = distinct(names, asked=asked)
    moments = moments_of(features, labels, classes=classes)
    subspace = ClassSubspace.of(moments, convention)
    return ArrayReading(features, labels, moments, subspace, projections_of(features, labels, subspace=subspace))


def moments_of(features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"], *, classes: int) -> ClassMoments:
    """First pass, in pieces."""
    return reduce(ClassMoments.merge, (ClassMoments.of(x, y, classes=classes) for x, y in in_chunks(features, labels)))


def projections_of(
    features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"], *, subspace: ClassSubspace
) -> Projections:
    """Second pass, in pieces."""
    parts = (
        Projections.of(project(x, y, subspace=subspace), y, classes=subspace.counts.shape[0])
        for x, y in in_chunks(features, labels)
    )
    return reduce(Projections.merge, parts)
