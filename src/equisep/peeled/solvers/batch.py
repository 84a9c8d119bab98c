"""Many problems of one number of groups as stacked arrays, and their loss, gradient and duality gap in the reduced form.

b problems, g (and h) groups. The unknowns of one problem are s (g numbers) and M (g × g); see `ReducedForm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equisep.peeled.problem import Problem
from equisep.peeled.solution import TINY, Certificate
from equisep.shapes import Bool, Float64, Int


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """k_g, ω_g and τ of each problem; `free` where s_g may move: groups of two classes or more that are not held at 0."""

    k: Float64[np.ndarray, "b g"]
    omega: Float64[np.ndarray, "b g"]
    tau: Float64[np.ndarray, " b"]
    free: Bool[np.ndarray, "b g"]

    @classmethod
    def of(cls, problems: Sequence[Problem], held: Sequence[int | None] | None = None) -> Batch:
        """Problems of one number of groups; `held` names for each problem the group whose s_g is held at 0, if any."""
        k = np.array([problem.group_sizes for problem in problems], dtype=np.float64)
        free = k > 1
        for row, group in enumerate(held or ()):
            if group is not None:
                free[row, group] = False
        omega = np.array([problem.weights for problem in problems], dtype=np.float64)
        return cls(k, omega, np.array([problem.budget for problem in problems], dtype=np.float64), free)

    def select(self, rows: Bool[np.ndarray, " b"] | Int[np.ndarray, " c"] | slice) -> Batch:
        """Some of the problems."""
        return Batch(self.k[rows], self.omega[rows], self.tau[rows], self.free[rows])

    @property
    def roots(self) -> Float64[np.ndarray, "b g g"]:
        """√(k_g k_h)."""
        root = np.sqrt(self.k)
        return np.asarray(root[:, :, None] * root[:, None, :])

    def spent(self, s: Float64[np.ndarray, "b g"], sigma: Float64[np.ndarray, "b m"]) -> Float64[np.ndarray, " b"]:
        """Σ (k_g−1) s_g + Σ σ_i, the nuclear norm of Z."""
        return np.asarray(((self.k - 1) * np.abs(s)).sum(axis=1) + sigma.sum(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """Cross entropy and probabilities of one sample of each group.

    `p[g, h]` is the probability, on a sample of group g, of *one* class of group h (h = g: one other class of g).
    """

    loss: Float64[np.ndarray, "b g"]
    own: Float64[np.ndarray, "b g"]
    p: Float64[np.ndarray, "b g g"]

    def value(self, batch: Batch) -> Float64[np.ndarray, " b"]:
        """Σ_k ω_k CE_k = Σ_g k_g ω_g CE_g."""
        return np.asarray((batch.k * batch.omega * self.loss).sum(axis=1))


def softmax(batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"]) -> Softmax:
    """The rows of Z through softmax: own logit s_g + c_gg, k_g − 1 times c_gg, k_h times c_gh.

    Everything is relative to the own logit, so that a loss of e⁻³⁰ keeps all its digits.
    """
    others, times = _others(batch, s, M)
    top = np.maximum(others.max(axis=2), 0.0)
    rest = (times * np.exp(others - top[:, :, None])).sum(axis=2)
    loss = top + np.where(top > 0, np.log(np.exp(-top) + rest), np.log1p(rest))
    return Softmax(loss=loss, own=np.exp(-loss), p=np.exp(others - loss[:, :, None]))


def margins(batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"]) -> Float64[np.ndarray, "b g"]:
    """The own logit less the largest other one, on a sample of each group: above 0 where its class is told apart."""
    return np.asarray(-_others(batch, s, M)[0].max(axis=2))


def _others(
    batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"]
) -> tuple[Float64[np.ndarray, "b g g"], Float64[np.ndarray, "b g g"]]:
    """The logits of one other class of each group less the own one, −∞ where there is none, and how many such there are."""
    g = np.arange(s.shape[1])
    others = M / batch.roots
    own = others[:, g, g] + s * (1 - 1 / batch.k)
    others -= own[:, :, None]
    others[:, g, g] = -s
    times = np.repeat(batch.k[:, None, :], len(g), axis=1)
    times[:, g, g] -= 1
    return np.where(times > 0, others, -np.inf), times  # a group of one class has no other class


def gradient(
    batch: Batch, p: Float64[np.ndarray, "b g g"]
) -> tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"]]:
    """γ and Γ: df = Σ (k_g−1) γ_g ds_g + ⟨Γ, dM⟩.

    γ_g = −ω_g Σ_h k_h p_gh (k_g p_gg included), Γ_gh = ω_g p_gh √(k_g k_h) for h ≠ g, Γ_gg = −ω_g Σ_{h≠g} k_h p_gh.
    Linear in p, so that it also turns a change of p into the change of the gradient.
    """
    g = np.arange(p.shape[1])
    inside = batch.k * p[:, g, g]
    elsewhere = p.copy()
    elsewhere[:, g, g] = 0.0
    outside = (elsewhere @ batch.k[:, :, None])[:, :, 0]
    big = batch.omega[:, :, None] * elsewhere * batch.roots
    big[:, g, g] = -batch.omega * outside
    return -batch.omega * (inside + outside), big


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
