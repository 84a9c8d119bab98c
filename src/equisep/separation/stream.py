"""ClassScatter: the mergeable state of one pass over features, class means and the scatter within classes, without samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.separation.blocks import blocks_of
from equisep.separation.centers import mean_cdnv
from equisep.separation.collapse import centered_means, geometry_of
from equisep.separation.convention import PHD20, Convention
from equisep.separation.group_sums import ClassCenters, class_sums, rounding_unit
from equisep.separation.site import rounding_of, same_for_collapse
from equisep.separation.subspace import AS_GIVEN, EPS64, ClassSubspace
from equisep.shapes import Float64, Int, Shaped

Numbers = dict[str, float | None]
NAMES = ("fuzziness", "nc1", "cdnv", "norm_spread", "angle_spread", "angle_gap", "etf_distance")


@dataclass(slots=True)
class ClassScatter:
    """Class means, and W = Σ_k S_k with S_k = Σ_i (x_ki − m_k)(x_ki − m_k)ᵀ, pooled or one matrix per class, in float64.

    Every class has an origin, its first row: `means` are about it, so that neither a common offset nor tight classes cost
    digits. Batches and states merge class by class (Chan, Golub & LeVeque 1979):
    S = S_a + S_b + (n_a n_b / (n_a + n_b)) (m_b − m_a)(m_b − m_a)ᵀ. The scatter of all rows less that between classes would
    be the same matrix with no digits left once classes have collapsed. `traces` are the Tr S_k.
    """

    counts: Int[Tensor, " k"]
    origins: Float64[Tensor, "k d"]
    means: Float64[Tensor, "k d"]
    traces: Float64[Tensor, " k"]
    within: Float64[Tensor, "g d d"]
    eps: Float64[Tensor, ""]

    @staticmethod
    def empty(
        *, classes: int, dim: int, per_class: bool = False, device: torch.device | str | None = None
    ) -> ClassScatter:
        """The state of no rows; `per_class` keeps S_k of every class instead of their sum."""
        new = torch.zeros((), dtype=torch.float64, device=device)
        return ClassScatter(
            counts=torch.zeros(classes, dtype=torch.int64, device=device),
            origins=new.new_zeros(classes, dim),
            means=new.new_zeros(classes, dim),
            traces=new.new_zeros(classes),
            within=new.new_zeros(classes if per_class else 1, dim, dim),
            eps=new,
        )

    @property
    def per_class(self) -> bool:
        """Whether every class has a matrix of its own; two classes share one only where they are pooled."""
        return self.within.shape[0] > 1

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.means.shape[1]

    def add(self, features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"]) -> None:
        """Add a batch, in place; it is not kept."""
        for span, block in blocks_of([features]):
            self._add(block.whole().to(torch.float64, copy=True), labels[span])
        self.eps.clamp_(min=rounding_unit(features.dtype))

    def _add(self, x: Float64[Tensor, "n d"], y: Int[Tensor, " n"]) -> None:
        names, local, counts = y.unique(return_inverse=True, return_counts=True)  # only the classes that the batch has
        new = self.counts[names] == 0
        if bool(new.any()):
            first = torch.full_like(names, len(y))
            first.scatter_reduce_(0, local, torch.arange(len(y), device=y.device), "amin")
            self.origins[names[new]] = x[first[new]]
        x -= self.origins.index_select(0, y)
        means = class_sums(x, local, classes=len(names)) / counts.unsqueeze(1)  # p d
        x -= means.index_select(0, local)
        self._scatter(x, y)
        self._join(names, counts, means)

    def _scatter(self, rows: Float64[Tensor, "n d"], y: Int[Tensor, " n"]) -> None:
        """Σ r rᵀ of rows to the matrices of their classes."""
        self.traces.index_add_(0, y, torch.linalg.vecdot(rows, rows))
        if not self.per_class:
            self.within[0].addmm_(rows.T, rows)
            return
        order = y.argsort()
        names, sizes = y[order].unique_consecutive(return_counts=True)
        for name, part in zip(names.tolist(), rows[order].split(sizes.tolist()), strict=True):
            self.within[name].addmm_(part.T, part)

    def _join(self, names: Int[Tensor, " p"], counts: Int[Tensor, " p"], means: Float64[Tensor, "p d"]) -> None:
        """Count in rows of classes `names` with these means about the origins, whose scatter is there already."""
        before = self.counts[names]
        total = before + counts
        step = means - self.means[names]  # p d
        met = before > 0
        weight = (before * (counts.to(torch.float64) / total)).sqrt().unsqueeze(1)
        self._scatter((weight * step)[met], names[met])
        self.means[names] += (counts.to(torch.float64) / total).unsqueeze(1) * step
        self.counts[names] = total

    def merge(self, other: ClassScatter) -> ClassScatter:
        """The state of both data sets together, in any order of merging; neither is changed."""
        if (self.counts.shape, self.within.shape) != (other.counts.shape, other.within.shape):
            mine, theirs = ((len(s.counts), s.dim, s.per_class) for s in (self, other))
            raise InputError(
                f"Only states of one kind merge; found (classes, features, per class) {mine} and {theirs}. "
                "Measure both alike."
            )
        joined = ClassScatter(*(getattr(self, name).clone() for name in self.__slots__))
        come = other.counts.nonzero().flatten()
        new = come[self.counts[come] == 0]
        joined.origins[new] = other.origins[new]
        joined.within += other.within
        joined.traces += other.traces
        moved = (other.origins[come] - joined.origins[come]) + other.means[come]
        joined._join(come, other.counts[come], moved)
        joined.eps = torch.maximum(self.eps, other.eps)
        return joined

    @property
    def centers(self) -> ClassCenters:
        """The class means, about the origin of the first class that has rows."""
        present = (self.counts > 0).unsqueeze(1)
        shift = self.origins[int(present.int().argmax())]
        about = torch.where(present, (self.origins - shift) + self.means, 0)
        origins = torch.where(present, self.origins, shift)
        return ClassCenters(
            self.counts, shift, about, about + shift, float(self.eps), narrow=False, origins=origins, inside=self.means
        )

    @property
    def variances(self) -> Float64[Tensor, " k"]:
        """Var_k = (1/n_k) Σ ‖x_ki − m_k‖²; 0 for a class without rows."""
        return self.traces / self.counts.clamp(min=1)

    def subspace(self, convention: Convention) -> ClassSubspace:
        """The directions of the class means that stand above the rounding of the features."""
        centers = self.centers
        rounding = rounding_of(centers, self.variances, convention, steps=AS_GIVEN, offset=0.0)
        return ClassSubspace.spanned(centers.counts, centers.about, convention).judged(convention, rounding=rounding)


def scattered_fuzziness(scatter: ClassScatter, space: ClassSubspace, convention: Convention) -> float | None:
    """D = Σ_j v_jᵀ W v_j / (n s_j²); None where class means coincide, or where classes weigh alike and W was pooled."""
    if space.rank == 0 or (convention.weighting == "class" and not scatter.per_class):
        return None
    if scatter.per_class:
        value = float(space.within_weights @ scattered_class_fuzziness(scatter, space))
    else:
        value = float(_along(scatter, space).sum() / scatter.counts.sum())
    return convention.normalized(value, classes=int((scatter.counts > 0).sum()))


def scattered_class_fuzziness(scatter: ClassScatter, space: ClassSubspace) -> Float64[Tensor, " k"]:
    """D_k = Σ_j v_jᵀ S_k v_j / (n_k s_j²) of every class; 0 for a class without rows."""
    return _along(scatter, space).sum(dim=1) / scatter.counts.clamp(min=1)


def _along(scatter: ClassScatter, space: ClassSubspace) -> Float64[Tensor, "g r"]:
    """v_jᵀ S v_j / s_j² of every matrix and direction."""
    v, s = space.directions[:, : space.rank], space.singular_values[: space.rank]
    squares = torch.stack([(matrix @ v).mul_(v).sum(dim=0) for matrix in scatter.within])
    return squares.clamp_(min=0) / s.square()


def lost_share(scatter: ClassScatter, space: ClassSubspace, value: float) -> float:
    """How large the rounding of W may be beside D: ε (Tr W / n) Σ_j 1/s_j² / D.

    A matrix of squares has half the digits: a direction along which classes are 1e6 times tighter than elsewhere keeps four
    of sixteen. Two passes project first and square then, and keep ten.
    """
    noise = EPS64 * float(scatter.traces.sum() / scatter.counts.sum())
    return noise * float(space.singular_values[: space.rank].square().reciprocal().sum()) / value if value else 0.0


def scattered_numbers(scatter: ClassScatter, convention: Convention) -> tuple[Numbers, ClassSubspace]:
    """D, NC1, NC2 and CDNV of what one pass saw, as `SiteReading` names them, and the subspace of the class means."""
    space, centers = scatter.subspace(convention), scatter.centers
    if len(centers.present) < 2:  # nothing to separate
        return dict.fromkeys(NAMES), space
    same = same_for_collapse(scatter.counts, convention)
    collapse = scattered_fuzziness(scatter, space if same else scatter.subspace(PHD20), PHD20)
    geometry = geometry_of(centered_means(space))
    numbers: Numbers = {
        "fuzziness": scattered_fuzziness(scatter, space, convention),
        "nc1": None if collapse is None else collapse / len(centers.present),
        "cdnv": mean_cdnv(centers.about, scatter.variances, centers),
    }
    return {**dict.fromkeys(NAMES), **numbers, **({} if geometry is None else asdict(geometry))}, space
