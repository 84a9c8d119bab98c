"""D of reweighted samples, for the bootstrap: many replicates of one site by a few large products."""

from __future__ import annotations

import torch
from torch import Tensor

from equisep.separation.convention import Convention
from equisep.separation.group_sums import as_float64
from equisep.shapes import Float64, Int, Shaped

CHUNK_BYTES = 128 * 2**20
QR_COST = 4  # a step of a tall QR against one of a matrix product, as measured on two cores


def bootstrap_weights(labels: Int[Tensor, " n"], *, resamples: int, seed: int) -> Float64[Tensor, "m n"]:
    """How often each sample is drawn, one row a resample: n_k draws with replacement inside every class k."""
    generator = torch.Generator("cpu").manual_seed(seed)
    y = labels.cpu()
    weights = torch.zeros(resamples, y.numel(), dtype=torch.float64, device="cpu")
    for k in y.unique().tolist():
        members = (y == k).nonzero().flatten()  # n_k
        draws = torch.randint(members.numel(), (resamples, members.numel()), generator=generator, device="cpu")
        weights.scatter_add_(1, members[draws], torch.ones_like(draws, dtype=torch.float64))
    return weights


def reweighted_fuzziness(
    features: Shaped[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    *,
    weights: Float64[Tensor, "m n"],
    classes: int,
    rank: int,
    convention: Convention,
) -> Float64[Tensor, " m"]:
    """D of the data with sample i counted `weights[b, i]` times, for every replicate b.

    `rank` is that of the data themselves, so that a replicate is cut where the estimate was, or at the number of its
    classes less one where it has lost some.
    """
    x = as_float64(features)
    x = x - x.mean(dim=0)  # D does not change under translation …
    n, d = x.shape
    if _reduced_pays(n=n, d=d, classes=classes, replicates=len(weights)):
        x = _fewest_dimensions(x)  # … and rotation
    y, weights = labels.to(x.device), weights.to(x.device)
    size = max(1, CHUNK_BYTES // (3 * 8 * classes * x.shape[1]))
    return torch.cat([_replicates(x, y, part, classes, rank, convention) for part in weights.split(size)])


def _costs(*, n: int, d: int, classes: int, replicates: int) -> tuple[float, float]:
    """Operations on the features as they are, and in at most n dimensions after a QR, whose steps cost more than others'."""
    direct = 2.0 * replicates * n * d * min(classes, d)
    return direct, QR_COST * 2.0 * d * n * n + direct * min(n, d) / d if d > n else float("inf")


def _reduced_pays(*, n: int, d: int, classes: int, replicates: int) -> bool:
    direct, reduced = _costs(n=n, d=d, classes=classes, replicates=replicates)
    return reduced < direct


def _fewest_dimensions(x: Float64[Tensor, "n d"]) -> Float64[Tensor, "n e"]:
    """The same points in at most n dimensions (QR keeps all distances; a Gram matrix would lose half the digits)."""
    triangle: Tensor = torch.linalg.qr(x.T, mode="r").R
    return triangle.T


def _replicates(
    x: Float64[Tensor, "n d"],
    y: Int[Tensor, " n"],
    weights: Float64[Tensor, "b n"],
    classes: int,
    rank: int,
    convention: Convention,
) -> Float64[Tensor, " b"]:
    size, d = weights.shape[0], x.shape[1]
    counts = weights.new_zeros(size, classes).index_add_(1, y, weights)  # b k
    present = (counts > 0).to(x.dtype)
    positive = counts.masked_fill(counts == 0, 1)
    means = x.new_zeros(size, classes, d)
    for k in y.unique().tolist():
        mine = y == k
        means[:, k] = weights[:, mine] @ x[mine] / positive[:, k].unsqueeze(1)
    weighed = convention.weights(counts)
    offsets = means - torch.einsum("bk,bkd->bd", weighed.center, means).unsqueeze(1)
    rows = weighed.between.sqrt().unsqueeze(2) * offsets  # b k d
    _, s, vt = torch.linalg.svd(rows, full_matrices=False)
    s, v = s[:, :rank], vt[:, :rank]  # b r, b r d
    null = torch.arange(s.shape[1], device=s.device) >= present.sum(dim=1, keepdim=True) - 1  # b r
    scaled = v / s.masked_fill(null, torch.inf).unsqueeze(2)  # b r d
    centers = torch.einsum("brd,bkd->brk", scaled, means)
    share = (weighed.within / positive).gather(1, y.expand(size, -1)) * weights  # b n
    value = x.new_zeros(size)
    rows_at_once = max(1, CHUNK_BYTES // (3 * 8 * size * max(1, scaled.shape[1])))
    for part in torch.arange(len(y), device=x.device).split(rows_at_once):
        z = (x[part] @ scaled.reshape(-1, d).T).T.reshape(size, -1, len(part))  # b r p
        z -= centers[:, :, y[part]]
        value += torch.einsum("brp,bp->b", z.square(), share[:, part])
    return value / present.sum(dim=1) if convention.normalization == "classes" else value
