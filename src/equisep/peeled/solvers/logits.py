"""The weighted cross-entropy of logits and what its derivatives are, free of cancellation, for many problems at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Float64, Int


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """f(Z) = Σ_k ω_k CE(z_k, k) of every problem of a batch, and its gradient by Z.

    `gradient` is ω_k (p_kj − [k=j]) and `probabilities` is p_kj, the softmax of row k.
    """

    value: Float64[Tensor, " b"]
    gradient: Float64[Tensor, "b k k"]
    probabilities: Float64[Tensor, "b k k"]

    def of(self, rows: Int[Tensor, " r"]) -> Losses:
        """The losses of some problems of the batch."""
        return Losses(self.value[rows], self.gradient[rows], self.probabilities[rows])


def losses_of(Z: Float64[Tensor, "b k k"], weights: Float64[Tensor, "b k"]) -> Losses:
    """The loss of logits with class k in row k.

    Well-separated classes have losses far below the rounding of 1. So everything is made of the margins z_kj − z_kk:
    CE = log1p(Σ_{j≠k} exp(z_kj − z_kk)), and p_kk − 1 is −Σ_{j≠k} p_kj, never a difference from 1.
    """
    margins = Z - _diagonal(Z).unsqueeze(-1)
    top = margins.amax(dim=-1)  # b k; at least 0, the margin of the class itself
    powers = torch.exp(margins - top.unsqueeze(-1))
    total = powers.sum(dim=-1)
    others = _without_diagonal(powers).sum(dim=-1)
    entropy = torch.where(top == 0, torch.log1p(others), top + torch.log(total))
    probabilities = powers / total.unsqueeze(-1)
    gradient = _sum_zero_rows(weights.unsqueeze(-1) * probabilities)
    return Losses((weights * entropy).sum(dim=-1), gradient, probabilities)


def curvature_along(
    move: Float64[Tensor, "b k k"], *, losses: Losses, weights: Float64[Tensor, "b k"]
) -> Float64[Tensor, "b k k"]:
    """The change of the gradient as Z moves: ∇²f[D]_kj = ω_k p_kj (d_kj − Σ_i p_ki d_ki), again by margins."""
    margins = move - _diagonal(move).unsqueeze(-1)
    mean = (losses.probabilities * margins).sum(dim=-1, keepdim=True)
    return _sum_zero_rows(weights.unsqueeze(-1) * losses.probabilities * (margins - mean))


def gaps_of(
    Z: Float64[Tensor, "b k k"], *, gradient: Float64[Tensor, "b k k"], budgets: Float64[Tensor, " b"]
) -> Float64[Tensor, " b"]:
    """⟨∇f, Z⟩ + τ‖∇f‖_op, at least f − f* for any Z with ‖Z‖_* ≤ τ (Fang et al. 2021's convex form).

    The largest eigenvalue of ∇f ∇fᵀ is as exact as a singular value would be, and much cheaper on an accelerator.
    """
    size = gradient.abs().amax(dim=(-2, -1)).clamp(min=torch.finfo(torch.float64).tiny)
    scaled = gradient / size[:, None, None]  # squares of small gradients would underflow
    top: Float64[Tensor, " b"] = torch.linalg.eigvalsh(scaled @ scaled.mT)[:, -1]
    return (gradient * Z).sum(dim=(-2, -1)) + budgets * size * top.clamp(min=0).sqrt()


def _diagonal(square: Float64[Tensor, "b k k"]) -> Float64[Tensor, "b k"]:
    return square.diagonal(dim1=-2, dim2=-1)


def _without_diagonal(square: Float64[Tensor, "b k k"]) -> Float64[Tensor, "b k k"]:
    off = square.clone()
    _diagonal(off).zero_()
    return off


def _sum_zero_rows(square: Float64[Tensor, "b k k"]) -> Float64[Tensor, "b k k"]:
    """The matrix with each diagonal entry replaced by what makes the sum of its row zero."""
    off = _without_diagonal(square)
    _diagonal(off).copy_(-off.sum(dim=-1))
    return off
