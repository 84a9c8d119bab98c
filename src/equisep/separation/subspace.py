"""ClassSubspace: the directions in which class means differ, which of them are more than rounding; Projections: rows on them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equisep.separation.convention import Convention, Weights
from equisep.separation.gpu import LEAST_ROWS, RunSpread, installed, spread_of
from equisep.separation.group_sums import class_adder
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
        if len(means) > MANY * means.shape[1] > 0:  # means that are all alike have no direction
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
    u, s, _ = torch.linalg.svd(tall.cpu(), full_matrices=False)
    return u, s


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


@dataclass(frozen=True, slots=True)
class Projections:
    """The mergeable state of a second pass, the within-class spread along the class-mean directions.

    Per class: count, spread ‖x_i − m_k‖² summed, and of every direction j mean and centered sum of squares of v_jᵀ(x_i − m_k).

    The means are zero up to rounding when the second reading saw the data of the first; if they are not, the data
    changed in between (see `drift`). The squares are centered on the second reading's own mean either way.
    """

    counts: Int[Tensor, " k"]
    means: Float64[Tensor, "k r"]
    squares: Float64[Tensor, "k r"]
    traces: Float64[Tensor, " k"]

    @staticmethod
    def of(
        residuals: Float64[Tensor, "n r"], norms: Float64[Tensor, " n"], labels: Int[Tensor, " n"], *, classes: int
    ) -> Projections:
        """The state of one batch of residuals: projected, and their squared norms."""
        if installed(residuals) and len(labels) >= LEAST_ROWS * classes:
            return Projections.summed(spread_of(residuals, norms, labels, classes), directions=residuals.shape[1])
        summed, counts = class_adder(labels, classes), torch.bincount(labels, minlength=classes)
        means = summed(residuals) / counts.clamp(min=1).unsqueeze(1)
        centered = residuals - means.index_select(0, labels)
        return Projections(counts, means, summed(centered.square_()), summed(norms.unsqueeze(1)).squeeze(1))

    @staticmethod
    def summed(spread: RunSpread, *, directions: int) -> Projections:
        """The state of rows whose spread a kernel has added up, on the first of its directions."""
        counts, means, squares, traces = spread.by_group()
        own = (means[:, :directions], squares[:, :directions], traces)
        return Projections(counts, *(part.contiguous() for part in own))

    @staticmethod
    def none(directions: Float64[Tensor, "d r"], *, classes: int) -> Projections:
        """The state before any row."""
        zeros = directions.new_zeros(classes, directions.shape[1])
        counts = torch.zeros(classes, dtype=torch.int64, device=directions.device)
        return Projections(counts, zeros, zeros.clone(), directions.new_zeros(classes))

    def add(self, residuals: Float64[Tensor, "n r"], norms: Float64[Tensor, " n"], labels: Int[Tensor, " n"]) -> None:
        """Add one batch in place: of many classes, those that it holds are all that is touched."""
        present, group = labels.unique(return_inverse=True)
        batch = Projections.of(residuals, norms, group, classes=len(present))
        mine = (self.counts, self.means, self.squares, self.traces)
        joined = Projections(*(part[present] for part in mine)).merge(batch)
        for part, new in zip(mine, (joined.counts, joined.means, joined.squares, joined.traces), strict=True):
            part[present] = new

    def merge(self, other: Projections) -> Projections:
        """The state of both data sets together (Chan, Golub & LeVeque 1979)."""
        counts = self.counts + other.counts
        share = (other.counts.to(torch.float64) / counts.clamp(min=1)).unsqueeze(1)  # k 1
        step = other.means - self.means  # k r
        return Projections(
            counts=counts,
            means=self.means + share * step,
            squares=self.squares + other.squares + step.square() * share * self.counts.unsqueeze(1),
            traces=self.traces + other.traces,
        )

    @property
    def variances(self) -> Float64[Tensor, " k"]:
        """Var_k = (1/n_k) Σ ‖x_ki − m_k‖²; 0 for a class without rows."""
        return self.traces / self.counts.clamp(min=1)

    def drift(self, *, rounding: float = 0.0) -> float:
        """How far class means moved between the readings, in units of the within-class spread; rounding gives ~1e-10.

        Moves of less than `rounding`, that of the means themselves, are none: collapsed classes have no spread.
        """
        n = self.counts.clamp(min=1).to(torch.float64).unsqueeze(1)
        spread, moved = float((self.squares / n).sum().sqrt()), float(self.means.norm())
        return moved / spread if spread > 0 and moved > rounding else 0.0
