"""The duality gap, which bounds how far any feasible point is from the optimum, however it was found.

f is convex, so f − f* ≤ ⟨∇f, Z − Z*⟩ ≤ ⟨∇f, Z⟩ + τ‖∇f‖_op for every Z with ‖Z‖_* ≤ τ, with equality to 0 at the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equisep.peeled.solution import Certificate, Result
from equisep.peeled.solvers.batch import Batch, Softmax, gradient, softmax
from equisep.shapes import Float64

TINY = float(np.finfo(np.float64).tiny)
FEASIBLE = 1e-12  # relative excess over the budget that rounding explains


@dataclass(frozen=True, slots=True, eq=False)
class ReducedGap:
    """Value f, bound on f − f*, multiplier μ and relative excess over the budget of each problem of a batch."""

    value: Float64[np.ndarray, " b"]
    gap: Float64[np.ndarray, " b"]
    multiplier: Float64[np.ndarray, " b"]
    feasibility: Float64[np.ndarray, " b"]

    def certificate(self, row: int) -> Certificate:
        """The certificate of one problem."""
        value, gap = float(self.value[row]), float(self.gap[row])
        return Certificate(
            feasibility=float(self.feasibility[row]),
            gap=gap,
            relative_gap=gap / max(value, TINY),
            multiplier=float(self.multiplier[row]),
        )


def reduced_gap(batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"]) -> ReducedGap:
    """The bound Σ (k_g−1) γ_g s_g + ⟨Γ, M⟩ + τμ, μ = max(max |γ_g|, ‖Γ‖_op), the γ_g of groups whose s_g may move."""
    rows = softmax(batch, s, M)
    bound, multiplier = gap_at(batch, s, M, rows)
    spent = batch.spent(s, np.linalg.svd(M, compute_uv=False))
    return ReducedGap(
        value=rows.value(batch),
        gap=bound,
        multiplier=multiplier,
        feasibility=np.maximum(spent / batch.tau - 1, 0.0),
    )


def gap_at(
    batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"], rows: Softmax
) -> tuple[Float64[np.ndarray, " b"], Float64[np.ndarray, " b"]]:
    """The bound on f − f* and μ, where the probabilities are known already."""
    small, big = gradient(batch, rows.p)
    multiplier = multiplier_of(batch, small, big)
    inner = ((batch.k - 1) * small * s).sum(axis=1) + (big * M).sum(axis=(1, 2))
    return np.maximum(inner + batch.tau * multiplier, 0.0), multiplier


def multiplier_of(
    batch: Batch, small: Float64[np.ndarray, "b g"], big: Float64[np.ndarray, "b g g"]
) -> Float64[np.ndarray, " b"]:
    """μ = max(max |γ_g|, ‖Γ‖_op). As Γ√k = 0, two groups leave Γ of rank one and ‖Γ‖_op = ‖Γ‖_F."""
    if big.shape[1] == 2:
        largest = np.maximum(np.abs(big).max(axis=(1, 2)), TINY)  # the squares of numbers below 1e-154 would underflow
        operator = largest * np.linalg.norm(big / largest[:, None, None], axis=(1, 2))
    else:
        operator = np.linalg.svd(big, compute_uv=False)[:, 0]
    return np.asarray(np.maximum(np.where(batch.free, np.abs(small), 0.0).max(axis=1), operator))


def dense_gap(
    weights: Float64[np.ndarray, " k"], Z: Float64[np.ndarray, "k k"], tau: float
) -> tuple[float, Certificate]:
    """Value and certificate of any K×K logits, row k those of class k: ∇f = diag(ω)(P − I)."""
    own = np.diag(Z)
    margins = Z - own[:, None]
    top = np.maximum(margins.max(axis=1), 0.0)
    shares = np.exp(margins - top[:, None])
    np.fill_diagonal(shares, 0.0)
    others = shares.sum(axis=1)
    loss = top + np.where(top > 0, np.log(np.exp(-top) + others), np.log1p(others))
    pull = weights[:, None] * np.exp(margins - loss[:, None])
    np.fill_diagonal(pull, 0.0)
    np.fill_diagonal(pull, -pull.sum(axis=1))
    value = float(weights @ loss)
    multiplier = float(np.linalg.norm(pull, 2))
    gap = max(float((pull * Z).sum()) + tau * multiplier, 0.0)
    excess = float(np.linalg.svd(Z, compute_uv=False).sum()) / tau - 1
    return value, Certificate(
        feasibility=max(excess, 0.0), gap=gap, relative_gap=gap / max(value, TINY), multiplier=multiplier
    )


def verdict(value: float, certificate: Certificate, tolerance: float) -> Result:
    """`solved` where the certificate proves it, otherwise `stopped`; a loss of 0 has underflowed, and says nothing of Z."""
    return "solved" if value > 0 and proves(certificate, tolerance) else "stopped"


def proves(certificate: Certificate, tolerance: float) -> bool:
    """Whether a certificate allows the word `solved`: feasible, and the gap at most `tolerance` of the value."""
    return certificate.feasibility <= FEASIBLE and certificate.relative_gap <= tolerance
