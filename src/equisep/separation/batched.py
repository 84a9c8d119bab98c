"""The two passes over one site of many networks at once: what `GroupSums`, `ClassSubspace` and `Projections` give each alone.

An ensemble reads thousands of sites of a hundred features; one by one, that is launches and little work. Here a site
of all members is a handful of batched products in float64. The convention is the papers' (`sample` weighting) unless told.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.convention import PAPER, Convention
from equisep.separation.group_sums import as_float64, rounding_unit
from equisep.separation.subspace import COMPUTED, EPS64, rounding_cut
from equisep.shapes import Bool, Float64, Int, Shaped

JACOBI_CLASSES = 32  # up to here a GPU takes all singular value decompositions in one batch


@dataclass(frozen=True, slots=True)
class StackedCenters:
    """Class means of one site of m networks about their first row, and the directions in which they differ.

    A network that is not `sound` has NaN or Inf in its features (or means beyond float64); what stands here of it is void.
    """

    counts: Int[Tensor, "m k"]
    shift: Float64[Tensor, "m 1 d"]
    about: Float64[Tensor, "m k d"]
    traces: Float64[Tensor, "m k"]
    directions: Float64[Tensor, "m d r"]
    singular_values: Float64[Tensor, "m r"]
    coordinates: Float64[Tensor, "m k r"]
    sound: Bool[Tensor, " m"]


@dataclass(frozen=True, slots=True)
class StackedReading:
    """D, D_k, CDNV and the rank of the class means at one site of m networks.

    NaN where a number does not exist: D_k of a class without samples, all of a network that is not sound (its rank is 0).
    """

    fuzziness: Float64[Tensor, " m"]
    class_fuzziness: Float64[Tensor, "m k"]
    cdnv: Float64[Tensor, " m"]
    rank: Int[Tensor, " m"]


def read_stacked(
    features: Shaped[Tensor, "m n d"], labels: Int[Tensor, "m n"], *, classes: int, convention: Convention = PAPER
) -> tuple[StackedReading, StackedCenters]:
    """All metrics of one site that need no other data; a member with NaN or Inf in its features gets NaN."""
    finite = features.isfinite().flatten(1).all(dim=1)
    x = as_float64(torch.where(finite[:, None, None], features, 0))  # m n d
    shift = x[:, :1].clone()
    x -= shift  # so that no common offset costs digits; x is a copy
    y = labels.to(x.device)
    one_hot = torch.nn.functional.one_hot(y, classes).to(torch.float64)  # m n k
    centers, residuals = _centers(x, one_hot, finite.to(x.device), shift=shift, convention=convention)
    squares = one_hot.mT @ (residuals @ centers.directions).square()  # m k r
    n = centers.counts.clamp(min=1).to(torch.float64)  # m k
    weights = convention.weights(centers.counts)
    variances = squares / n.unsqueeze(2)  # m k r
    cut = rounding_cut(
        centers.counts,
        weights.between,
        sizes=(centers.about + centers.shift).square().sum(dim=2) + centers.traces / n,
        variances=centers.traces / n,
        eps=rounding_unit(features.dtype),
        dim=x.shape[2],
        steps=COMPUTED,
    )
    counted = centers.singular_values > cut.unsqueeze(1)
    inverse = torch.where(counted, 1 / centers.singular_values.square(), 0)
    by_class = (variances @ inverse.unsqueeze(2)).squeeze(2)  # m k
    whole = (weights.within * by_class).sum(dim=1)
    rank = counted.sum(dim=1) * centers.sound
    known = centers.sound & (rank > 0)
    reading = StackedReading(
        fuzziness=torch.where(known, whole, torch.nan),
        class_fuzziness=torch.where(known.unsqueeze(1) & (centers.counts > 0), by_class, torch.nan),
        cdnv=torch.where(centers.sound, _cdnv(centers), torch.nan),
        rank=rank,
    )
    return reading, centers


def stacked_hits(
    features: Shaped[Tensor, "m n d"], labels: Int[Tensor, "m n"], *, centers: StackedCenters
) -> Int[Tensor, " m"]:
    """How many samples of each network have their own class's mean as the nearest one, among classes with samples.

    Distances differ only along the directions, where all means lie: argmin ‖c_k‖² − 2 z·c_k (see `nearest_centers`).
    """
    x = as_float64(features)
    y = labels.to(x.device)
    own = y.unsqueeze(2)
    means = centers.about.gather(1, own.expand(-1, -1, x.shape[2]))  # m n d
    here = centers.coordinates.gather(1, own.expand(-1, -1, centers.coordinates.shape[2]))  # m n r
    z = (x - centers.shift - means) @ centers.directions + here  # m n r
    norms = centers.coordinates.square().sum(dim=2)  # m k
    distances = norms.unsqueeze(1) - 2 * (z @ centers.coordinates.mT)  # m n k
    distances = distances.masked_fill((centers.counts == 0).unsqueeze(1), torch.inf)
    return (distances.argmin(dim=2) == y).sum(dim=1)


def _centers(
    x: Float64[Tensor, "m n d"],
    one_hot: Float64[Tensor, "m n k"],
    finite: Bool[Tensor, " m"],
    *,
    shift: Float64[Tensor, "m 1 d"],
    convention: Convention,
) -> tuple[StackedCenters, Float64[Tensor, "m n d"]]:
    """Means, traces and directions of features about `shift`, and the residuals x − m_y."""
    counts = one_hot.sum(dim=1).to(torch.int64)  # m k
    about = (one_hot.mT @ x) / counts.clamp(min=1).unsqueeze(2)  # m k d
    residuals = torch.baddbmm(x, one_hot, about, alpha=-1)  # m n d
    traces = (one_hot.mT @ torch.linalg.vecdot(residuals, residuals).unsqueeze(2)).squeeze(2)  # m k
    weights = convention.weights(counts)
    offsets = about - weights.center.unsqueeze(1) @ about
    offsets = offsets - weights.center.unsqueeze(1) @ offsets  # far from the shift the center itself is rounded
    rows = weights.between.sqrt().unsqueeze(2) * offsets  # m k d
    sound = finite & rows.isfinite().flatten(1).all(dim=1)  # a sum of finite numbers may not be
    s, directions = _svd(torch.where(sound[:, None, None], rows, 0))
    kept = s > EPS64 * max(rows.shape[1:]) * s[:, :1]
    directions = directions * kept.unsqueeze(1)
    centers = StackedCenters(
        counts=counts,
        shift=shift,
        about=about,
        traces=traces,
        directions=directions,
        singular_values=torch.where(kept, s, 0),
        coordinates=offsets @ directions,
        sound=sound,
    )
    return centers, residuals


def _svd(rows: Float64[Tensor, "m k d"]) -> tuple[Float64[Tensor, "m r"], Float64[Tensor, "m d r"]]:
    """Singular values and right singular vectors of every matrix.

    By LAPACK; on a GPU, where that would be m·k launches, through `_orthonormal` and one batch of small Jacobi
    decompositions. Neither forms a Gram matrix.
    """
    k, d = rows.shape[1:]
    if rows.is_cuda and k <= min(JACOBI_CLASSES, d):
        q, r = _orthonormal(rows.mT)  # m d k, m k k
        u, s, _ = torch.linalg.svd(r, driver="gesvdj")  # rᵀ = V S Uᵀ
        return s, q @ u
    _, s, vt = torch.linalg.svd(rows.cpu(), full_matrices=False)
    return s.to(rows.device), vt.mT.to(rows.device)


def _orthonormal(columns: Float64[Tensor, "m d k"]) -> tuple[Float64[Tensor, "m d k"], Float64[Tensor, "m k k"]]:
    """QR of every matrix by Gram–Schmidt, each column twice, which is orthonormal to rounding (Giraud et al. 2005).

    The number of operations does not depend on m, unlike that of the GPU's own batched QR. A column that depends on
    those before it leaves rounding noise, which gets its entry in R; one that vanishes gets a zero column.
    """
    m, _, k = columns.shape
    q, r = torch.zeros_like(columns), columns.new_zeros(m, k, k)
    for j in range(k):
        rest = columns[:, :, j : j + 1]  # m d 1
        for _ in range(2):
            share = q[:, :, :j].mT @ rest  # m j 1
            rest = rest - q[:, :, :j] @ share
            r[:, :j, j : j + 1] += share
        norm = torch.linalg.vector_norm(rest, dim=1, keepdim=True)  # m 1 1
        r[:, j : j + 1, j : j + 1] = norm
        q[:, :, j : j + 1] = torch.where(norm > 0, rest / norm, 0)
    return q, r


def _cdnv(centers: StackedCenters) -> Float64[Tensor, " m"]:
    """Mean over ordered pairs i ≠ j of classes with samples; NaN where two means coincide to rounding (see `cdnv_of`)."""
    counts = centers.counts.to(torch.float64)
    present = centers.counts > 0  # m k
    variance = centers.traces / counts.clamp(min=1)
    points = centers.coordinates
    squared = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").square()  # m k k
    pairs = present.unsqueeze(1) & present.unsqueeze(2)
    pairs = pairs & ~torch.eye(pairs.shape[1], dtype=torch.bool, device=pairs.device)
    biggest = centers.about.square().sum(dim=2).amax(dim=1)
    nothing = EPS64**2 * counts.sum(dim=1) * biggest  # m
    apart = ((squared > nothing[:, None, None]) | ~pairs).flatten(1).all(dim=1)
    ratio = torch.where(pairs, (variance.unsqueeze(1) + variance.unsqueeze(2)) / (2 * squared), 0)
    found = ratio.sum(dim=(1, 2)) / pairs.sum(dim=(1, 2)).clamp(min=1)
    return torch.where(apart & (pairs.sum(dim=(1, 2)) > 0), found, torch.nan)
