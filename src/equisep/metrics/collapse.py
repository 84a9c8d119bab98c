"""Neural collapse: NC1 to NC4 and the distance to the simplex ETF (Papyan, Han & Donoho 2020; Zhu et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Float, Float64
from equisep.stats import ClassSubspace


@dataclass(frozen=True, slots=True)
class Geometry:
    """How far K vectors are from equal norms and equal, maximally separated angles (NC2)."""

    norm_spread: float
    angle_spread: float
    angle_gap: float
    etf_distance: float


def geometry_of(vectors: Float[Tensor, "k d"]) -> Geometry | None:
    """NC2 of K vectors; None for fewer than two vectors or where one of them is zero (to rounding) and has no angle.

    norm_spread   std/mean of the norms (population std)
    angle_spread  std of the cosines between different vectors
    angle_gap     mean |cos + 1/(K−1)|
    etf_distance  ‖G/‖G‖_F − (I − 11ᵀ/K)/√(K−1)‖_F with G the Gram matrix
    """
    v = vectors.detach().to(torch.float64)
    k = v.shape[0]
    norms = v.norm(dim=1)
    if k < 2 or not bool((norms > k * torch.finfo(torch.float64).eps * norms.max()).all()):
        return None
    off = ~torch.eye(k, dtype=torch.bool, device=v.device)
    unit = v / norms.unsqueeze(1)
    cosines = (unit @ unit.T)[off]
    gram = v @ v.T
    etf = (torch.eye(k, dtype=torch.float64, device=v.device) - 1 / k) / (k - 1) ** 0.5
    return Geometry(
        norm_spread=float(norms.std(correction=0) / norms.mean()),
        angle_spread=float(cosines.std(correction=0)),
        angle_gap=float((cosines + 1 / (k - 1)).abs().mean()),
        etf_distance=float((gram / gram.norm() - etf).norm()),
    )


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
