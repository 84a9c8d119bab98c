"""Neural collapse: NC1 to NC4 and the distance to the simplex ETF (Papyan, Han & Donoho 2020; Zhu et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float, Float64

ROWS, TILE_NUMBERS = 512, 2**22  # rows of a K×K matrix held at once, and numbers


@dataclass(frozen=True, slots=True)
class Geometry:
    """How far K vectors are from equal norms and equal, maximally separated angles (NC2)."""

    norm_spread: float
    angle_spread: float
    angle_gap: float
    etf_distance: float

    @property
    def numbers(self) -> dict[str, float]:
        """All four by name."""
        return {name: getattr(self, name) for name in Geometry.__slots__}


def geometry_of(vectors: Float[Tensor, "k d"]) -> Geometry | None:
    """NC2 of K vectors; None for fewer than two vectors or where one of them is zero (to rounding) and has no angle.

    norm_spread   std/mean of the norms (population std)
    angle_spread  std of the cosines between different vectors
    angle_gap     mean |cos + 1/(K−1)|
    etf_distance  ‖G/‖G‖_F − (I − 11ᵀ/K)/√(K−1)‖_F with G the Gram matrix
    """
    k = len(vectors)
    v = vectors.detach().to("cpu" if k <= ROWS else vectors.device, torch.float64)  # a GPU is waited for once
    norms = v.norm(dim=1)
    if k < 2 or not float(norms.min()) > k * torch.finfo(torch.float64).eps * float(norms.max()):
        return None
    unit = v / norms.unsqueeze(1)
    size = float(torch.linalg.matrix_norm(v.T @ v if v.shape[1] < k else v @ v.T))  # both Gram matrices have one norm
    pairs = k * (k - 1)
    mean = (float(unit.sum(dim=0).square().sum()) - k) / pairs  # ‖Σu‖² = K + the cosines of all pairs
    step = min(ROWS, max(1, TILE_NUMBERS // k))
    blocks = [_block_sums(v, unit, slice(start, start + step), mean, size) for start in range(0, k, step)]
    spread, gap, residual = (sum(parts) for parts in zip(*blocks, strict=True))
    return Geometry(
        norm_spread=float(norms.std(correction=0) / norms.mean()),
        angle_spread=(spread / pairs) ** 0.5,
        angle_gap=gap / pairs,
        etf_distance=residual**0.5,
    )


def _block_sums(
    v: Float64[Tensor, "k d"], unit: Float64[Tensor, "k d"], rows: slice, mean: float, size: float
) -> tuple[float, float, float]:
    """Σ (cos − mean)², Σ |cos + 1/(K−1)| and Σ (G/‖G‖ − ETF)² over some rows of the K×K matrices: memory stays O(K·d)."""
    k = len(v)
    cosines = unit[rows] @ unit.T  # b k
    around, gaps = cosines - mean, cosines + 1 / (k - 1)
    residual = (v[rows] @ v.T).div_(size).add_(1 / (k * (k - 1) ** 0.5))
    residual.diagonal(rows.start).sub_((k - 1) ** -0.5)
    around.diagonal(rows.start).zero_()
    gaps.diagonal(rows.start).zero_()
    sums = torch.stack([around.square_().sum(), gaps.abs_().sum(), residual.square_().sum()])
    one, two, three = sums.tolist()
    return one, two, three


def centered_means(subspace: ClassSubspace) -> Float64[Tensor, "p r"]:
    """Class means of the present classes on the subspace, centered on the *mean of class means*.

    With unequal class sizes the sample mean would make a perfect ETF look broken.
    """
    points = subspace.coordinates[subspace.counts > 0]
    return points - points.mean(dim=0)


def nc3_of(weight: Float[Tensor, "k d"], means: Float64[Tensor, "k d"]) -> float | None:
    """‖W/‖W‖_F − M/‖M‖_F‖_F with M the class means centered on their own mean (PHD20 plots its square)."""
    w = weight.detach().to(device=means.device, dtype=torch.float64)
    m = means - means.mean(dim=0)
    if float(w.norm()) == 0 or float(m.norm()) == 0:
        return None
    return float((w / w.norm() - m / m.norm()).norm())
