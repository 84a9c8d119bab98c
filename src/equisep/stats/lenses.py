"""Lenses: D of the same rows under many labelings at once, for the jackknife and for the null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Bool, Float64, Int, Shaped
from equisep.stats.convention import Convention
from equisep.stats.marks import Marks
from equisep.stats.subspace import ClassSubspace, class_weights
from equisep.stats.sums import GroupSums

# of the largest eigenvalue of B Bᵀ: known to eight digits above the first, nothing below the second
CLEAR, VOID = 1e-8, 1e-13


@dataclass(frozen=True, slots=True)
class Lens:
    """One labeling: the rows outside a fold by their classes, or all rows by permuted classes; `sizes` are ‖m_k‖²."""

    counts: Int[Tensor, " k"]
    singular_values: Float64[Tensor, " r"]
    fold: int | None = None
    permutation: int | None = None
    sizes: Float64[Tensor, " k"] | None = None


class Lenses:
    """Leave-one-fold-out and permuted labelings looked at together: one product of residuals with all their directions.

    Of every lens l, class k and direction j it keeps Σ z and Σ z² with z = v_jᵀ(x_i − m_k^l)/s_j, so that
    D_l = Σ_k (w_k/n_k) Σ_j (Σ z² − (Σ z)²/n_k). The rows come as residuals r_i = x_i − m_{y_i} from the plain class means:
    v_jᵀ(x_i − m_k^l) = v_jᵀ r_i + v_jᵀ(m_{y_i} − m_k^l), where the second part is a small table. The directions may be of
    single precision: intervals and nulls need six digits.
    """

    def __init__(self, sums: GroupSums, *, convention: Convention, folds: int, kind: torch.dtype) -> None:
        self.classes, self.convention = sums.classes, convention
        counts, center = sums.counts, sums.center
        plain = sums.means.sub_(center)  # k d, around a point among them
        total = plain * counts.unsqueeze(1)
        self.dim = total.shape[1]
        self.width = min(sums.classes - 1, self.dim)
        size = folds + sums.permutations
        self.lenses: list[Lens] = []
        self.directions = torch.zeros(size * self.width, self.dim, dtype=kind, device=total.device)  # l·r d
        self.plain = total.new_zeros(size, self.classes, self.width)  # l k r, the plain class means on the directions
        self.own = torch.zeros_like(self.plain)  # … and the lens's
        work = torch.empty_like(total)  # touching new memory costs more than the sums
        stack = torch.cat([torch.empty_like(total), plain])  # 2k d: rows of B above the plain means
        for fold in range(folds):
            left = counts - sums.subtract_fold(fold, total, out=work)
            self.lenses.append(Lens(left, self._place(left, work, stack), fold=fold))
        for p in range(sums.permutations):
            sums.permuted(p, out=work)
            sizes = torch.addcdiv(center, work, counts.clamp(min=1).unsqueeze(1)).square_().sum(dim=1)
            self.lenses.append(Lens(counts, self._place(counts, work, stack), permutation=p, sizes=sizes))
        self.linear = total.new_zeros(size * self.classes, self.width)
        self.square = torch.zeros_like(self.linear)

    def _place(
        self, counts: Int[Tensor, " k"], total: Float64[Tensor, "k d"], stack: Float64[Tensor, "m d"]
    ) -> Float64[Tensor, " r"]:
        """Put one more lens's directions, divided by their singular values, which come back, and both tables in place.

        `total` are its sums around the point that the plain means, the lower half of `stack`, are measured from.
        From B Bᵀ = U S² Uᵀ, v_j/s_j = Bᵀu_j/s_j², where that keeps eight digits, which is where no singular value lies
        between 10⁻⁴ and 10⁻⁶·⁵ of the largest (those below are the null direction of centered rows, or rounding of
        single-precision features); otherwise from the singular value decomposition of B.
        """
        k = len(counts)
        by_sample, by_class = class_weights(counts)
        weight = (by_sample if self.convention.weighting == "sample" else by_class).sqrt()
        towards = by_sample if self.convention.centered_on == "samples" else by_class
        n = counts.clamp(min=1).to(torch.float64)
        center = (towards / n) @ total  # d
        rows = torch.mul(total, (weight / n).unsqueeze(1), out=stack[:k]).addr_(weight, center, alpha=-1)  # B, k d
        products = stack @ rows.T  # 2k k: of rows and of plain means with rows
        values, vectors = torch.linalg.eigh(products[:k])
        values, vectors = values.flip(0), vectors.flip(1)
        clear, void = values > CLEAR * values[0], values <= VOID * values[0]
        if bool((clear | void).all()):
            kept = min(self.width, int(clear.sum()))
            s, terms = values[:kept].sqrt(), vectors[:, :kept] / values[:kept]  # k r
            scaled = terms.T @ rows  # r d
            tables = products @ terms  # 2k r
        else:
            v, s, _ = torch.linalg.svd(rows.T.cpu(), full_matrices=False)
            kept = min(self.width, int((s > torch.finfo(s.dtype).eps * max(rows.shape) * s[0]).sum()))
            s = s[:kept].to(rows.device)
            scaled = (v[:, :kept].to(rows.device) / s).T
            tables = stack @ scaled.T
        place = len(self.lenses)
        self.directions[place * self.width : place * self.width + kept] = scaled
        self.plain[place, :, :kept] = tables[k:]
        positive = torch.where(weight > 0, weight, 1.0).unsqueeze(1)  # rows are √w_k (m_k − center)
        self.own[place, :, :kept] = tables[:k] / positive + scaled @ center
        found: Float64[Tensor, " r"] = s
        return found

    def look(self, projected: Shaped[Tensor, "n m"], marks: Marks) -> None:
        """Add rows: their residuals on `directions`."""
        labels, counted = self._labels(marks)
        z = projected.to(torch.float64).view(len(marks), len(self.lenses), self.width).transpose(0, 1)  # l n r
        place = torch.arange(len(self.lenses), device=labels.device).unsqueeze(1)  # l 1
        z = z + self.plain[:, marks.labels] - self.own[place, labels]
        z *= counted.unsqueeze(2)
        keys = (place * self.classes + labels).flatten()
        self.linear.index_add_(0, keys, z.flatten(0, 1))
        self.square.index_add_(0, keys, z.square_().flatten(0, 1))

    def _labels(self, marks: Marks) -> tuple[Int[Tensor, "l n"], Bool[Tensor, "l n"]]:
        """The class of every row under every lens, and whether the lens counts it."""
        labels: list[Tensor] = []
        counted: list[Tensor] = []
        for lens in self.lenses:
            if lens.fold is not None:
                assert marks.folds is not None
                labels.append(marks.labels)
                counted.append(marks.folds.ne(lens.fold))
            else:
                assert marks.permuted is not None and lens.permutation is not None
                labels.append(marks.permuted[lens.permutation])
                counted.append(torch.ones_like(marks.labels, dtype=torch.bool))
        return torch.stack(labels), torch.stack(counted)

    def left_out(self, *, rank: int) -> list[float]:
        """D without each fold, cut at the rank of the data themselves, or where classes were lost at theirs less one."""
        folds = [place for place, lens in enumerate(self.lenses) if lens.fold is not None]
        return self._values(folds, [min(rank, int((self.lenses[p].counts > 0).sum()) - 1) for p in folds])

    def null(self, *, spread: float, eps: float) -> float | None:
        """The mean D under permuted labels; None where there are none, or one of them has no two different means.

        `spread` is the variance of all rows, which a permuted class shares.
        """
        places = [place for place, lens in enumerate(self.lenses) if lens.permutation is not None]
        ranks = [self._rank(self.lenses[place], spread=spread, eps=eps) for place in places]
        return sum(self._values(places, ranks)) / len(places) if places and all(ranks) else None

    def _rank(self, lens: Lens, *, spread: float, eps: float) -> int:
        assert lens.sizes is not None
        return ClassSubspace.rank_of(
            lens.singular_values,
            self.convention,
            counts=lens.counts,
            sizes=lens.sizes,
            traces=spread * lens.counts.to(torch.float64),
            eps=eps,
            dim=self.dim,
        )[0]

    def _values(self, places: Sequence[int], ranks: Sequence[int]) -> list[float]:
        found = []
        for place, rank in zip(places, ranks, strict=True):
            counts = self.lenses[place].counts
            by_sample, by_class = class_weights(counts)
            within = by_class if self.convention.weighting == "class" else by_sample
            rows = slice(place * self.classes, (place + 1) * self.classes)
            n = counts.clamp(min=1).to(torch.float64).unsqueeze(1)  # k 1
            each = (self.square[rows, :rank] - self.linear[rows, :rank].square() / n).clamp(min=0) / n  # k r
            value = float(within @ each.sum(dim=1))
            found.append(value / int((counts > 0).sum()) if self.convention.normalization == "classes" else value)
        return found
