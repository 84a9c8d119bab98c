"""Few samples on a GPU: both passes over one site in some thirty steps and one fetch.

A GPU has to be told of every step, and waited for at every number that a decision hangs on. Of few samples nearly all steps are
on numbers of K classes and r directions; a CPU is done with them before a GPU has begun. So only what is as wide as the features
is done there: class means, an orthonormal basis of them, and the residuals on that basis. A Tracker reads a training so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from equisep.separation.convention import Convention
from equisep.separation.group_sums import NARROW, ClassCenters, rounding_unit
from equisep.separation.subspace import ClassSubspace, centered, kept_values
from equisep.shapes import Float64, Int, Shaped

SMALL = 2**20  # products n·K² up to which a CPU is done before a GPU has begun all of them
ROOM = 2**25  # numbers of features up to which they are turned to float64 at once: 256 MiB


@dataclass(frozen=True, slots=True)
class FewRows:
    """Class means and subspace, and of every row label, squared residual and residual on the directions.

    Means and directions are on the GPU, all else is on the CPU.
    """

    centers: ClassCenters
    subspace: ClassSubspace
    labels: Int[Tensor, " n"]
    norms: Float64[Tensor, " n"]
    along: Float64[Tensor, "n r"]


def few_on_gpu(features: Sequence[Shaped[Tensor, "_ d"]], classes: int) -> bool:
    """Whether these are few enough, on a GPU, and of 24 bits or fewer, so that float64 sums them exactly."""
    first, n = features[0], sum(len(part) for part in features)
    narrow = all(part.dtype.itemsize <= NARROW for part in features)
    return first.is_cuda and narrow and n * classes**2 <= SMALL and n * first.shape[1] <= ROOM


def read_few(
    features: Sequence[Shaped[Tensor, "_ d"]], labels: Int[Tensor, " n"], *, classes: int, convention: Convention
) -> FewRows:
    """What `GroupSums`, `ClassSubspace.spanned` and `projected` find, by the same formulas.

    The rows √w_k (m_k − m) of B give Bᵀ = Q T with Q orthonormal (Householder) and T small; T = U S Vᵀ is decomposed on the CPU,
    and the directions are Q U.
    """
    y = labels.cpu()
    counts = torch.bincount(y, minlength=classes)
    weights = convention.weights(counts)
    there = torch.stack([weights.center, weights.between.sqrt(), counts.clamp(min=1).double()]).to(features[0].device)
    x = (features[0] if len(features) == 1 else torch.cat(list(features))).to(torch.float64)  # n d
    where = labels.to(x.device)
    shift, sums, n = x[0].clone(), one_hot(where, classes).T.to(torch.float64) @ x, there[2].unsqueeze(1)
    about, means = (sums - n * shift) / n, sums / n  # k d
    if not bool((counts > 0).all()):
        absent = (counts == 0).to(x.device).unsqueeze(1)
        about, means = about.masked_fill(absent, 0), torch.where(absent, shift, means)
    offsets = centered(about, there[0])  # k d
    basis, triangle = torch.linalg.qr((there[1].unsqueeze(1) * offsets).T)  # d m, m k
    residuals = x.sub_(means.index_select(0, where))  # x is a copy: the features are narrower
    norms = torch.linalg.vecdot(residuals, residuals)
    squares = torch.stack([means.square().sum(dim=1), about.square().sum(dim=1)])  # 2 k
    on_basis = torch.cat([offsets, residuals]) @ basis  # k+n m
    small, coordinates, along, norms, squares = _fetched(
        triangle, on_basis[:classes], on_basis[classes:], norms, squares
    )
    u, s, _ = torch.linalg.svd(small, full_matrices=False)
    u = u[:, : kept_values(s, offsets.shape)]  # m r
    eps = max(rounding_unit(part.dtype) for part in features)
    return FewRows(
        centers=ClassCenters(counts, shift, about, means, eps, narrow=True, squares=squares),
        subspace=ClassSubspace.known(counts, weights, s, basis @ u.to(basis.device), coordinates @ u),
        labels=y,
        norms=norms,
        along=along @ u,
    )


def _fetched(*tensors: Tensor) -> list[Tensor]:
    """All of them on the CPU, by one fetch."""
    parts = torch.cat([tensor.flatten() for tensor in tensors]).cpu().split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]
