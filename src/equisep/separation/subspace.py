"""ClassSubspace: the directions in which class means differ, and which of them are more than rounding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equisep.separation.convention import Convention, Weights
from equisep.shapes import Float64, Int

EPS64 = torch.finfo(torch.float64).eps
AVERAGED = 1000  # samples up to which rounding is trusted to average out of a mean; beyond, it may share a bias
# how many steps of relative eps a number may be off: rounded once, as in an array or a model's raw input; computed by a
# network, whose features carry the rounding of the layers before them; computed so and then cut to half precision
AS_GIVEN, COMPUTED, HALF = 0.5, 64.0, 2.0
TALL = 2  # times as many rows as columns, from where on QR saves more than it costs
MANY = 2  # times as many classes as features, from where on their means are made triangular first
BLOCK_WIDTHS, GPU_WIDTHS = 8, 256  # rows made triangular together, in widths; a GPU wants few and large blocks
COARSE = 1e-5  # eps of half precision is above it


@dataclass(frozen=True, slots=True)
class ClassSubspace:
    """SSb = BᵀB through the thin SVD B = U S Vᵀ of B's rows √w_k (m_k − m), in float64.

    `directions` are the columns of V that stand above float64 rounding, `singular_values` their s_j, largest first. The first
    `rank` of them stand above `cut`, the rounding of the features (see `rounding_cut`), and make up SSb⁺; the rest serve
    nearest centers only. `coordinates` are the class means (m_k − m) on the directions. No d×d and no Gram matrix is ever
    formed: both would square the condition number.
    """

    counts: Int[Tensor, " k"]
    directions: Float64[Tensor, "d r"]
    singular_values: Float64[Tensor, " r"]
    coordinates: Float64[Tensor, "k r"]
    within_weights: Float64[Tensor, " k"]
    rank: int
    cut: float
    full_rank: int
    trace_between: float

    @staticmethod
    def spanned(counts: Int[Tensor, " k"], means: Float64[Tensor, "k d"], convention: Convention) -> ClassSubspace:
        """The subspace of means about any shift; until the spread of classes is known (see `judged`), all directions count."""
        weights = convention.weights(counts)
        offsets = centered(means, weights.center)  # k d
        root = weights.between.sqrt().unsqueeze(1)  # k 1
        if len(means) > MANY * means.shape[1]:
            v, s = of_many_rows(offsets, root)
        else:
            v, s = thin_svd((root * offsets).T)
        directions = v[:, : kept_values(s, offsets.shape)].to(means.device)  # d r
        return ClassSubspace.known(counts, weights, s.to(means.device), directions, offsets @ directions)

    @staticmethod
    def known(
        counts: Int[Tensor, " k"],
        weights: Weights,
        s: Float64[Tensor, " m"],
        directions: Float64[Tensor, "d r"],
        coordinates: Float64[Tensor, "k r"],
    ) -> ClassSubspace:
        """The subspace of a decomposition with singular values s, of which the first r have directions."""
        r = directions.shape[1]
        return ClassSubspace(
            counts=counts,
            directions=directions,
            singular_values=s[:r],
            coordinates=coordinates,
            within_weights=weights.within,
            rank=r,
            cut=0.0,
            full_rank=min(int((counts > 0).sum()) - 1, directions.shape[0]),  # any center lies among the means
            trace_between=float(s.square().sum()),
        )

    def judged(self, convention: Convention, *, rounding: float) -> ClassSubspace:
        """The same with its rank: the directions that stand above `tol · s_max`, or where there is none above rounding."""
        s = self.singular_values
        cut = rounding if convention.tol is None else convention.tol * (float(s[0]) if s.numel() else 0.0)
        return replace(self, rank=int((s > cut).sum()), cut=cut)


def centered(means: Float64[Tensor, "*m k d"], center: Float64[Tensor, " k"]) -> Float64[Tensor, "*m k d"]:
    """m_k − m, twice: far from the shift the center itself is rounded."""
    offsets = means - (center @ means).unsqueeze(-2)
    offsets -= (center @ offsets).unsqueeze(-2)
    return offsets


def kept_values(s: Float64[Tensor, " r"], shape: tuple[int, ...]) -> int:
    """How many singular values stand above the rounding of float64 itself."""
    return int((s > EPS64 * max(shape) * float(s[0])).sum()) if s.numel() else 0


def thin_svd(
    tall: Float64[Tensor, "d k"], *, by_qr: bool | None = None
) -> tuple[Float64[Tensor, "d r"], Float64[Tensor, " r"]]:
    """Left singular vectors and singular values, r = min(d, k), the values on the CPU.

    By LAPACK on the CPU: small, accurate to eps·s_max, and tall is its quick side. On a GPU a tall matrix is first made
    triangular there, by Householder's QR, which is as accurate: to fetch and factor d × k numbers would cost more than all else.
    """
    if tall.is_cuda and tall.shape[0] > TALL * tall.shape[1] if by_qr is None else by_qr:
        q, triangle = torch.linalg.qr(tall)
        u, s, _ = torch.linalg.svd(triangle.cpu())
        return q @ u.to(tall.device), s
    v, s, _ = torch.linalg.svd(tall.cpu(), full_matrices=False)
    return v, s


def of_many_rows(
    rows: Float64[Tensor, "k d"], factors: Float64[Tensor, "k 1"]
) -> tuple[Float64[Tensor, "d r"], Float64[Tensor, " r"]]:
    """Right singular vectors and singular values of many rows by these factors, k ≫ d, the values on the CPU.

    Rows are made triangular block by block (R of the blocks before, then the next block, by Householder's QR: Demmel et al.
    2012): d × d numbers are all that is left, with the singular values of the whole to eps·s_max.
    """
    d = rows.shape[1]
    size = d * (BLOCK_WIDTHS if rows.device.type == "cpu" else GPU_WIDTHS)
    triangle = rows.new_zeros(0, d)
    for block, factor in zip(rows.split(size), factors.split(size), strict=True):
        _, triangle = torch.linalg.qr(torch.cat([triangle, block * factor]), mode="r")
    _, s, v = torch.linalg.svd(triangle.cpu(), full_matrices=False)
    return v.T, s


def rounding_cut(
    counts: Int[Tensor, "*m k"],
    between: Float64[Tensor, "*m k"],
    *,
    sizes: Float64[Tensor, "*m k"],
    variances: Float64[Tensor, "*m k"],
    eps: float,
    dim: int | Float64[Tensor, "*m"],
    steps: float,
) -> Float64[Tensor, "*m"]:
    """Where a singular value of B is indistinguishable from zero, for features known to `steps` times relative eps.

    Below it, exactly dependent means would make D blow up on noise: within-class spread over between-class noise. `sizes` are
    the mean squared norms ‖x‖² of every class, `variances` the summed variances within. Rounding errs by some
    steps·eps·‖x‖ per sample. A mean averages that over its samples, except where a class is so tight that all of them round
    alike: with σ the spread of a number in units of its rounding step, a share e^{−2π²σ²} does not average out (the first
    harmonic of a sawtooth under Gaussian spread). Errors e_k spread evenly over d features give B a noise of norm
    max √w_k e_k + (Σ w_k e_k²/d)^½.
    """
    n = counts.clamp(min=1).to(torch.float64)  # … k
    if eps > COARSE and steps > AS_GIVEN:
        steps = HALF
    units = variances / (eps**2 * sizes).clamp(min=torch.finfo(torch.float64).tiny)  # σ²
    share = torch.maximum((-2 * torch.pi**2 * units).exp(), 1 / n.clamp(max=AVERAGED)).clamp(max=1)
    error = between * sizes * ((steps * eps) ** 2 * share + EPS64**2)  # … k; a shift of float64 data rounds them alike
    return error.amax(dim=-1).sqrt() + (error.sum(dim=-1) / dim).sqrt()
