"""Lenses: D of the same rows under many labelings at once, for the jackknife and for the null."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from equisep.separation.assignments import Marks
from equisep.separation.convention import Convention
from equisep.separation.group_sums import GroupSums
from equisep.separation.subspace import ClassSubspace, class_weights
from equisep.shapes import Bool, Float64, Int, Shaped

# of the largest eigenvalue of B Bᵀ: known to eight digits above the first, nothing below the second
CLEAR, VOID = 1e-8, 1e-13


class Lenses:
    """Leave-one-fold-out and permuted labelings looked at together: one product of residuals with all their directions.

    The first `folds` lenses see the rows outside a fold by their classes, the others all rows by permuted classes. Of
    every lens l, class k and direction j Σ z and Σ z² are kept with z = v_jᵀ(x_i − m_k^l)/s_j, so that
    D_l = Σ_k (w_k/n_k) Σ_j (Σ z² − (Σ z)²/n_k). The rows come as residuals r_i = x_i − m_{y_i} from the plain class means:
    v_jᵀ(x_i − m_k^l) = v_jᵀ r_i + v_jᵀ(m_{y_i} − m_k^l), where the second part is a small table. The directions may be of
    single precision: intervals and nulls need six digits.
    """

    def __init__(self, sums: GroupSums, *, convention: Convention, folds: int, kind: torch.dtype) -> None:
        self.classes, self.convention, self.folds, self.dim = sums.classes, convention, folds, sums.dim
        self.width = min(sums.classes - 1, sums.dim)
        left = sums.counts - sums.fold_counts[:folds]  # g k
        self.counts = torch.cat([left, sums.counts.expand(sums.permutations, -1)])  # l k
        mixing = self._mixing()  # l k k
        products, plain = self._products(sums, folds)  # l k k, both
        # B = mixing · sums, so B Bᵀ = U S² Uᵀ is known without B, and v_j/s_j = Bᵀu_j/s_j² as well
        values, vectors = torch.linalg.eigh(mixing @ products @ mixing.mT)
        values, vectors = values.flip(1)[:, : self.width], vectors.flip(2)[:, :, : self.width]  # l r, l k r
        clear, void = values > CLEAR * values[:, :1], values <= VOID * values[:, :1]
        full = clear.sum(dim=1) >= ((self.counts > 0).sum(dim=1) - 1).clamp(max=self.width)
        narrow = sums.eps > torch.finfo(torch.float64).eps  # what is void is rounding then; of float64 it may be real
        known = full | (narrow & (clear | void).all(dim=1))
        self.singular_values = values.clamp(min=0).sqrt() * clear  # l r
        terms = (vectors / values.masked_fill(~clear, torch.inf).unsqueeze(1)).mT @ mixing  # l r k, of the sums
        self.directions = torch.zeros(len(values) * self.width, self.dim, dtype=kind, device=values.device)  # l·r d
        for columns, each in sums.lenses(folds):
            self.directions[:, columns] = (terms @ each).flatten(0, 1)
        self.plain = plain @ terms.mT  # l k r, the plain class means on the directions
        self.own = products @ terms.mT / self.counts.clamp(min=1).unsqueeze(2)  # … and the lens's
        for place in (~known).nonzero().flatten().tolist():
            self._decompose(place, sums, mixing[place])
        self.sizes = sums.permuted_sizes  # p k, ‖m_k‖²
        self.linear = values.new_zeros(len(values) * self.classes, self.width)
        self.square = torch.zeros_like(self.linear)

    def _mixing(self) -> Float64[Tensor, "l k k"]:
        """B's rows √w_k (m_k − m) from the sums of every class, B = mixing · sums."""
        by_sample, by_class = class_weights(self.counts)
        weight = (by_sample if self.convention.weighting == "sample" else by_class).sqrt()
        towards = by_sample if self.convention.centered_on == "samples" else by_class
        n = self.counts.clamp(min=1).to(torch.float64)
        return torch.diag_embed(weight / n) - weight.unsqueeze(2) * (towards / n).unsqueeze(1)

    @staticmethod
    def _products(sums: GroupSums, folds: int) -> tuple[Float64[Tensor, "l k k"], Float64[Tensor, "l k k"]]:
        """Of the sums of every lens with each other, and of the plain class means with them."""
        products = plain = torch.zeros((), dtype=torch.float64, device=sums.counts.device)
        for columns, each in sums.lenses(folds):
            products = products + each @ each.mT
            plain = plain + sums.centered_means[:, columns] @ each.flatten(0, 1).T  # k l·k
        return products, plain.unflatten(1, products.shape[:2]).transpose(0, 1)

    def _decompose(self, place: int, sums: GroupSums, mixing: Float64[Tensor, "k k"]) -> None:
        """One lens by the singular value decomposition of B, where B Bᵀ does not keep eight digits.

        That is where a singular value lies below 10⁻⁴ of the largest; of narrower features, above 10⁻⁶·⁵ as well, since
        what is smaller is their rounding.
        """
        each = torch.cat([part[place] for _, part in sums.lenses(self.folds)], dim=1)  # k d
        rows = mixing @ each
        v, s, _ = torch.linalg.svd(rows.T.cpu(), full_matrices=False)
        kept = min(self.width, int((s > torch.finfo(s.dtype).eps * max(rows.shape) * s[0]).sum()))
        s, v = s[:kept].to(rows.device), v[:, :kept].to(rows.device)
        scaled = (v / s).T  # r d
        mine = slice(place * self.width, (place + 1) * self.width)
        self.directions[mine] = 0
        self.directions[mine][:kept] = scaled.to(self.directions.dtype)
        for table in (self.singular_values, self.plain, self.own):
            table[place] = 0
        self.singular_values[place, :kept] = s
        self.plain[place, :, :kept] = sums.centered_means @ scaled.T
        self.own[place, :, :kept] = each @ scaled.T / self.counts[place].clamp(min=1).unsqueeze(1)

    def look(self, projected: Shaped[Tensor, "n m"], marks: Marks) -> None:
        """Add rows: their residuals on `directions`."""
        labels, counted = self._labels(marks)
        z = projected.to(torch.float64).view(len(marks), len(self.counts), self.width).transpose(0, 1)  # l n r
        place = torch.arange(len(self.counts), device=labels.device).unsqueeze(1)  # l 1
        z = z + self.plain[:, marks.labels] - self.own[place, labels]
        z *= counted.unsqueeze(2)
        keys = (place * self.classes + labels).flatten()
        self.linear.index_add_(0, keys, z.flatten(0, 1))
        self.square.index_add_(0, keys, z.square_().flatten(0, 1))

    def _labels(self, marks: Marks) -> tuple[Int[Tensor, "l n"], Bool[Tensor, "l n"]]:
        """The class of every row under every lens, and whether the lens counts it."""
        labels, n = marks.labels.expand(self.folds, -1), len(marks)
        counted = torch.ones(len(self.counts), n, dtype=torch.bool, device=labels.device)
        if self.folds:
            assert marks.folds is not None
            counted[: self.folds] = marks.folds != torch.arange(self.folds, device=labels.device).unsqueeze(1)
        if len(self.counts) > self.folds:
            assert marks.permuted is not None
            labels = torch.cat([labels, marks.permuted[: len(self.counts) - self.folds]])
        return labels, counted

    def left_out(self, *, rank: int) -> list[float]:
        """D without each fold, cut at the rank of the data themselves, or where classes were lost at theirs less one."""
        places = range(self.folds)
        return self._values(places, [min(rank, int((self.counts[place] > 0).sum()) - 1) for place in places])

    def null(self, *, spread: float, eps: float, offset: float = 0.0) -> float | None:
        """The mean D under permuted labels; None where there are none, or one of them has no two different means.

        `spread` is the variance of all rows, which a permuted class shares; `offset` the squared norm of what was taken
        off all rows before.
        """
        places = range(self.folds, len(self.counts))
        ranks = [self._rank(place, spread=spread, eps=eps, offset=offset) for place in places]
        return sum(self._values(places, ranks)) / len(places) if places and all(ranks) else None

    def _rank(self, place: int, *, spread: float, eps: float, offset: float) -> int:
        counts, s = self.counts[place], self.singular_values[place]
        return ClassSubspace.rank_of(
            s[s > 0],
            self.convention,
            counts=counts,
            sizes=self.sizes[place - self.folds] + offset,
            traces=spread * counts.to(torch.float64),
            eps=eps,
            dim=self.dim,
        )[0]

    def _values(self, places: Sequence[int], ranks: Sequence[int]) -> list[float]:
        found = []
        for place, rank in zip(places, ranks, strict=True):
            counts = self.counts[place]
            by_sample, by_class = class_weights(counts)
            within = by_class if self.convention.weighting == "class" else by_sample
            rows = slice(place * self.classes, (place + 1) * self.classes)
            n = counts.clamp(min=1).to(torch.float64).unsqueeze(1)  # k 1
            each = (self.square[rows, :rank] - self.linear[rows, :rank].square() / n).clamp(min=0) / n  # k r
            value = float(within @ each.sum(dim=1))
            found.append(value / int((counts > 0).sum()) if self.convention.normalization == "classes" else value)
        return found
