"""RoundingBound: by how much products in float32 can have changed D, proven from a few random combinations of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64, Int

FAILURE = 1e-6  # the probability, over all rows of the data, with which any bound may fail
COMBINATIONS = (
    24  # of the directions, in float64: with fewer the bound is wide, with more they cost as much as float32 saves
)
SEED = 20_231_026


class Combinations:
    """Random combinations of the directions: what float32 made of a row is compared with float64 on them alone.

    `mixed` is S⁻¹Z with Z standard normal (r × h), drawn from a seed of its own, and so independent of the data; `directions`
    are V S⁻¹Z. `shares` is by how much a row of each class counts in D.
    """

    def __init__(self, subspace: ClassSubspace) -> None:
        values = subspace.singular_values.unsqueeze(1)  # r 1
        generator = torch.Generator().manual_seed(SEED)
        normal = torch.randn(len(values), COMBINATIONS, generator=generator, dtype=torch.float64)
        self.values = values
        self.mixed: Float64[Tensor, "r h"] = normal.to(values.device) / values
        self.directions: Float64[Tensor, "d h"] = subspace.directions @ self.mixed
        self.shares: Float64[Tensor, " k"] = subspace.within_weights / subspace.counts.clamp(min=1)


@dataclass(frozen=True, slots=True)
class RoundingBound:
    """What D may be off by after some rows, all of which were projected in float32.

    Write a_i = S⁻¹Vᵀr_i for a row as it is, ã_i = a_i + δ_i for what float32 made of it, w_i for its share, so that
    D = Σ w_i ‖a_i‖², and B = Σ w_i ã_i δ_iᵀ. With class means of zero among the a_i, the spread about the means of the ã_i is

        D̃ − D = 2 tr B − 2 Λ + Σ w_i ‖δ_i − δ̄_{y_i}‖²,   so   |D̃ − D| ≤ 2 |tr B| + 2 Λ   with   Λ = Σ w_i ‖δ_i‖².

    Neither δ_i nor B is known, but their products with h normal vectors z are, for every row: δ_iᵀz = ã_iᵀz − r_iᵀ(V S⁻¹z),
    the last term computed in float64, which costs h directions instead of r. From B z (`seen`) and Σ w_i (δ_iᵀz)² (`squares`):

    1.  T = (1/h) Σ zᵀBz has the mean tr B, and differs from it by more than ‖B‖_F (2√(t/h) + 2t/h) with probability 2e⁻ᵗ at most:
        a sum of β(g² − 1) with normal g is sub-gamma (Laurent & Massart 2000, Lemma 1; Boucheron, Lugosi & Massart 2013, § 2.4).
    2.  For a positive semidefinite M, (1/h) Σ zᵀMz < ε tr M with probability (ε e^{1−ε})^{h/2} at most: E e^{−s zᵀMz} =
        Π (1 + 2sμ_j)^{−1/2} ≤ (1 + 2s tr M)^{−1/2}, and s = (1/ε − 1)/(2 tr M). Of M = BᵀB this bounds ‖B‖_F, of
        M = Σ w_i δ_i δ_iᵀ it bounds Λ.

    Nothing is assumed of the δ_i: they may all round the same way, sit in one row, or come from any order of summation. Only
    they must not depend on z. Rows enter in order until the first block that fails, so that what has entered is one of as many
    sets as there are blocks, each known before z is drawn; a block of n_b of all n rows may fail with n_b/n of `FAILURE`.
    So the bounds of all threads, shards and ranks hold together, and their sums have the largest of them at most: δ_i = 0 for
    rows that float64 served, and D is no less than what the rows of a bound add to it. The seed is fixed, so that results are
    the same from run to run: "probability" is over seeds, for data that were not made against this one.
    The rounding of float64 itself, 10⁻¹² and less, is left out.
    """

    seen: Float64[Tensor, "r h"]
    squares: float = 0.0
    found: float = 0.0  # Σ w_i ‖ã_i‖²
    failure: float = FAILURE  # of this one bound

    @staticmethod
    def none(combinations: Combinations) -> RoundingBound:
        """Before any row."""
        return RoundingBound(torch.zeros_like(combinations.mixed))

    def after(
        self,
        combinations: Combinations,
        along: Float64[Tensor, "n r"],
        right: Float64[Tensor, "n h"],
        y: Int[Tensor, " n"],
        *,
        failure: float,
    ) -> RoundingBound:
        """With more rows: their products with V by float32, and with the combinations by float64."""
        shares = combinations.shares.index_select(0, y)
        errors = (along @ combinations.mixed).sub_(right)  # n h
        weighted = errors * shares.unsqueeze(1)
        lengths = (shares @ along.square()) @ combinations.values.squeeze(1).square().reciprocal()
        return replace(
            self,
            seen=self.seen + (weighted.T @ along).T / combinations.values,
            squares=self.squares + float((errors * weighted).sum()),
            found=self.found + float(lengths),
            failure=failure,
        )

    def relative(self, combinations: Combinations) -> float:
        """|D̃ − D| / D at most, of the rows so far; infinite where nothing can be said."""
        h = COMBINATIONS
        least, t = smallest_share(self.failure / 4), math.log(4 / self.failure)  # four tails
        norm = math.sqrt(float(self.seen.square().sum()) / (h * least))  # of B
        estimate = float((combinations.mixed * combinations.values * self.seen).sum()) / h
        trace = abs(estimate) + norm * (2 * math.sqrt(t / h) + 2 * t / h)
        lost, left = 2 * trace + 2 * self.squares / (h * least), self.found - 2 * trace
        if lost == 0:
            return 0.0
        return lost / left if left > 0 and math.isfinite(lost) else math.inf


@lru_cache(maxsize=64)
def smallest_share(failure: float) -> float:
    """The ε at which (ε e^{1−ε})^{h/2} is the probability of a failure."""
    low, high, aim = 0.0, 1.0, 2 * math.log(failure) / COMBINATIONS
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.log(middle) + 1 - middle <= aim else (low, middle)
    return low
