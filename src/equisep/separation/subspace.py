"""ClassSubspace: the directions in which class means differ, found once the means are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equisep.separation.convention import Convention
from equisep.separation.moments import ClassMoments
from equisep.shapes import Float64, Int

EPS64 = torch.finfo(torch.float64).eps
AVERAGED = 1000  # samples up to which rounding is trusted to average out of a mean; beyond, it may share a bias


@dataclass(frozen=True, slots=True)
class ClassSubspace:
    """SSb = BᵀB through the thin SVD B = U S Vᵀ of B's rows √w_k (m_k − m), in float64.

    `directions` are the columns of V that stand above float64 rounding, `singular_values` their s_j, largest first.
    The first `rank` of them stand above `cut` as well and make up SSb⁺; the rest serve nearest centers only.
    `coordinates` are the class means (m_k − m) on the directions. No d×d and no Gram matrix is ever formed:
    both would square the condition number.
    """

    counts: Int[Tensor, " k"]
    means: Float64[Tensor, "k d"]
    directions: Float64[Tensor, "d r"]
    singular_values: Float64[Tensor, " r"]
    coordinates: Float64[Tensor, "k r"]
    within_weights: Float64[Tensor, " k"]
    rank: int
    cut: float
    full_rank: int
    trace_between: float

    @staticmethod
    def of(moments: ClassMoments, convention: Convention) -> ClassSubspace:
        """The class-mean subspace of these moments under a convention."""
        space = ClassSubspace.spanned(moments.counts, moments.means, convention)
        return space.judged(convention, traces=moments.traces, eps=moments.eps)

    @staticmethod
    def spanned(counts: Int[Tensor, " k"], means: Float64[Tensor, "k d"], convention: Convention) -> ClassSubspace:
        """The subspace of means alone: until the within-class traces are known (see `judged`), every direction counts."""
        by_sample, by_class = class_weights(counts)
        between = by_sample if convention.weighting == "sample" else by_class
        within = by_class if convention.weighting == "class" else by_sample
        towards = by_sample if convention.centered_on == "samples" else by_class
        center = towards @ means  # d
        offsets = means - center  # k d
        offsets -= towards @ offsets  # far from the origin the center itself is rounded
        rows = between.sqrt().unsqueeze(1) * offsets  # k d
        # LAPACK on the CPU: small, accurate to eps·s_max, and the same answer on every machine; tall is its quick side
        v, s, _ = torch.linalg.svd(rows.T.cpu(), full_matrices=False)
        kept = int((s > _floor(s, rows.shape)).sum())
        directions = v[:, :kept].to(rows.device)  # d r
        return ClassSubspace(
            counts=counts,
            means=means,
            directions=directions,
            singular_values=s[:kept].to(rows.device),
            coordinates=offsets @ directions,
            within_weights=within,
            rank=kept,
            cut=0.0,
            full_rank=min(int((counts > 0).sum()) - 1, means.shape[1]),  # any center lies among the means
            trace_between=float(rows.square().sum()),
        )

    def judged(
        self,
        convention: Convention,
        *,
        traces: Float64[Tensor, " k"],
        eps: float,
        sizes: Float64[Tensor, " k"] | None = None,
        dim: int | None = None,
    ) -> ClassSubspace:
        """The same with its rank: how many directions stand above the rounding of features known to relative `eps`.

        `sizes` are ‖m_k‖² and `dim` the width of the features, where `means` are coordinates of them.
        """
        rank, cut = ClassSubspace.rank_of(
            self.singular_values,
            convention,
            counts=self.counts,
            sizes=self.means.square().sum(dim=1) if sizes is None else sizes,
            traces=traces,
            eps=eps,
            dim=self.means.shape[1] if dim is None else dim,
        )
        return replace(self, rank=rank, cut=cut)

    @staticmethod
    def rank_of(
        s: Float64[Tensor, " r"],
        convention: Convention,
        *,
        counts: Int[Tensor, " k"],
        sizes: Float64[Tensor, " k"],
        traces: Float64[Tensor, " k"],
        eps: float,
        dim: int,
    ) -> tuple[int, float]:
        """How many singular values of class means of squared norms `sizes` count, and the cut they stand above."""
        by_sample, by_class = class_weights(counts)
        between = by_sample if convention.weighting == "sample" else by_class
        rounding = float(_rounding(counts, sizes, traces, between, eps=eps, dim=dim))
        top = float(s[0]) if s.numel() else 0.0
        cut = max(_floor(s, (len(counts), dim)), rounding) if convention.tol is None else convention.tol * top
        return int((s > cut).sum()), cut


def _floor(s: Float64[Tensor, " r"], shape: tuple[int, ...]) -> float:
    """Below it a singular value is rounding of float64 itself."""
    return EPS64 * max(shape) * float(s[0]) if s.numel() else 0.0


def class_weights(counts: Int[Tensor, "*m k"]) -> tuple[Float64[Tensor, "*m k"], Float64[Tensor, "*m k"]]:
    """Weights by sample, n_k/n, and by class, 1/K over the classes that have samples."""
    present = (counts > 0).to(torch.float64)
    return counts.to(torch.float64) / counts.sum(dim=-1, keepdim=True), present / present.sum(dim=-1, keepdim=True)


def rounding_cut(
    counts: Int[Tensor, "*m k"],
    means: Float64[Tensor, "*m k d"],
    traces: Float64[Tensor, "*m k"],
    between: Float64[Tensor, "*m k"],
    *,
    eps: float,
) -> Float64[Tensor, "*m"]:
    """Where a singular value of the means is indistinguishable from zero.

    Below it, exactly dependent means would make D blow up on noise: within-class noise over between-class noise.
    Features rounded to relative eps carry errors of some eps‖x_k‖, ‖x_k‖² the mean squared norm in class k. A mean
    averages them over its samples, except where the class is so tight that all of them round alike; our own sums add
    eps64·√n_k. Errors e_k spread evenly over d features give B a noise of norm max √w_k e_k + (Σ w_k e_k²/d)^½.
    """
    return _rounding(counts, means.square().sum(dim=-1), traces, between, eps=eps, dim=means.shape[-1])


def _rounding(
    counts: Int[Tensor, "*m k"],
    sizes: Float64[Tensor, "*m k"],
    traces: Float64[Tensor, "*m k"],
    between: Float64[Tensor, "*m k"],
    *,
    eps: float,
    dim: int,
) -> Float64[Tensor, "*m"]:
    """`rounding_cut` of means of squared norms `sizes` in `dim` features."""
    n = counts.clamp(min=1).to(torch.float64)  # … k
    variance = traces / n
    size = sizes + variance  # … k
    # half precision is rounded once, from float32 sums; wider features carry the rounding of every layer before them
    steps = 2 if eps > 1e-5 else 64
    alike = eps**2 * size / variance.clamp(min=torch.finfo(torch.float64).tiny)
    share = torch.maximum(alike, 1 / n.clamp(max=AVERAGED)).clamp(max=1)
    error = between * size * ((steps * eps) ** 2 * share + EPS64**2 * n)  # … k
    return error.amax(dim=-1).sqrt() + (error.sum(dim=-1) / dim).sqrt()
