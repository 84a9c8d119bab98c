"""Features on the principal axes of the training rows: at most min(n, d) numbers per row, in which all probes are computed.

Distances to means of training rows and linear functions of the span of the training rows are the same there as in the
features, and the scatter of the training rows is diagonal: one eigendecomposition serves every penalty of a ridge probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.separation.blocks import column_pieces, with_float64
from equisep.separation.group_sums import class_sums
from equisep.separation.stream import ClassScatter
from equisep.separation.subspace import EPS64
from equisep.shapes import Float64, Int, Shaped

MOST_AXES = 4096  # the side of the matrix that is decomposed, min(n, d): 128 MiB in float64, a minute of one core


@dataclass(frozen=True, slots=True)
class ProbeRows:
    """Training and test rows on the principal axes of the training rows, about their mean.

    `eigenvalues` are those of the scatter Σ (x − m)(x − m)ᵀ of the training rows, largest first. What a test row has beside
    the span of the training rows is left out: it is alike in all distances to centers, and no probe sees it.
    """

    train: Float64[Tensor, "n r"]
    labels: Int[Tensor, " n"]
    test: Float64[Tensor, "t r"]
    labels_test: Int[Tensor, " t"]
    eigenvalues: Float64[Tensor, " r"]
    classes: int

    @property
    def counts(self) -> Int[Tensor, " k"]:
        """Training rows per class."""
        return torch.bincount(self.labels, minlength=self.classes)

    @property
    def centers(self) -> Float64[Tensor, "k r"]:
        """Training means per class; 0 for a class without rows."""
        return class_sums(self.train, self.labels, classes=self.classes) / self.counts.clamp(min=1).unsqueeze(1)


def probe_rows(
    train: Sequence[Shaped[Tensor, "_ d"]],
    labels: Int[Tensor, " n"],
    test: Sequence[Shaped[Tensor, "_ d"]],
    labels_test: Int[Tensor, " t"],
    *,
    classes: int,
) -> ProbeRows:
    """Both data sets on the principal axes, by the d × d scatter where d ≤ n, else by the n × n products of rows."""
    n, d = len(labels), train[0].shape[1]
    if min(n, d) > MOST_AXES:
        raise InputError(
            f"A probe decomposes a matrix of side min(samples, features), at most {MOST_AXES}; found {n} samples of {d} "
            "features. Draw fewer samples per class, or reduce the features (`reduction='mean'`, say)."
        )
    train, test = ([with_float64(part) for part in parts] for parts in (train, test))
    labels, labels_test = labels.to(train[0].device), labels_test.to(train[0].device)
    sides = _by_features if d <= n else _by_samples
    values, z, z_test = sides(train, labels, test, classes=classes)
    return ProbeRows(z, labels, z_test, labels_test, values, classes)


def total_scatter(scatter: ClassScatter) -> tuple[Float64[Tensor, " d"], Float64[Tensor, "d d"]]:
    """The mean m of all rows, and Σ (x − m)(x − m)ᵀ = W + Σ_k n_k (m_k − m)(m_k − m)ᵀ."""
    centers = scatter.centers
    weights = centers.counts.double()
    middle = weights @ centers.about / weights.sum()
    apart = (centers.about - middle) * weights.sqrt().unsqueeze(1)
    return middle + centers.shift, scatter.within.sum(dim=0).addmm_(apart.T, apart)


def descending(matrix: Float64[Tensor, "r r"], *, steps: int) -> tuple[Float64[Tensor, " q"], Float64[Tensor, "r q"]]:
    """Eigenvalues above rounding, largest first, and their vectors; `steps` is how many numbers were added up."""
    values, vectors = torch.linalg.eigh(matrix)
    values, vectors = values.flip(0), vectors.flip(1)
    kept = int((values > steps * EPS64 * values[0].clamp(min=0)).sum())
    return values[:kept], vectors[:, :kept]


Sides = tuple[Float64[Tensor, " r"], Float64[Tensor, "n r"], Float64[Tensor, "t r"]]


def _by_features(train: Sequence[Tensor], labels: Tensor, test: Sequence[Tensor], *, classes: int) -> Sides:
    """X − m = Z Uᵀ with U the eigenvectors of the scatter."""
    scatter = ClassScatter.empty(classes=classes, dim=train[0].shape[1], device=train[0].device)
    begin = 0
    for part in train:
        scatter.add(part, labels[begin : begin + len(part)])
        begin += len(part)
    middle, matrix = total_scatter(scatter)
    values, axes = descending(matrix, steps=max(len(labels), len(matrix)))
    z, z_test = (torch.cat([(part.double() - middle) @ axes for part in parts]) for parts in (train, test))
    return values, z, z_test


def _by_samples(train: Sequence[Tensor], labels: Tensor, test: Sequence[Tensor], *, classes: int) -> Sides:
    """(X − m)(X − m)ᵀ = V S² Vᵀ, so that Z = V S, and the rows Y of the test data have (Y − m)(X − m)ᵀ V S⁻¹."""
    n, seen = len(labels), sum(map(len, test))
    inner = torch.zeros(n, n, dtype=torch.float64, device=train[0].device)
    across = inner.new_zeros(seen, n)
    for columns in column_pieces(train[0]):
        x, y = (torch.cat([part[:, columns].double() for part in parts]) for parts in (train, test))
        middle = x.mean(dim=0)
        x, y = x - middle, y - middle
        inner.addmm_(x, x.T)
        across.addmm_(y, x.T)
    values, vectors = descending(inner, steps=max(n, train[0].shape[1]))
    roots = values.sqrt()
    return values, vectors * roots, across @ vectors / roots
