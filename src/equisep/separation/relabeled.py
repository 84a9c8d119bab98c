"""Relabelings: D of the same rows under many labelings at once, without each fold and under random labels."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.assignments import Assignments
from equisep.separation.convention import Convention, Weights
from equisep.separation.group_sums import GroupSums
from equisep.separation.noise.by_counts import kept_by_counts
from equisep.separation.noise.population import NoisyMeans, noisy_means
from equisep.separation.subspace import rounding_cut
from equisep.shapes import Float64, Int, Shaped

# of the largest eigenvalue of B Bᵀ: known to eight digits above the first, nothing below the second
CLEAR, VOID = 1e-8, 1e-13


@dataclass(frozen=True, slots=True)
class Labelings:
    """What labelings are by their numbers of rows alone.

    Of every class: rows, weights, √(w_k/n_k), w_k/n_k², and without each fold √(w_k/(n_k − 1)), which makes sums of squares
    unbiased covariances; classes that have rows; `mixing`, which makes B's rows √w_k (m_k − m) of the sums of every class.
    """

    counts: Int[Tensor, "l k"]
    weights: Weights
    roots: Float64[Tensor, "l k"]
    lengths: Float64[Tensor, "l k"]
    spreads: Float64[Tensor, "g k"]
    present: Int[Tensor, " l"]
    mixing: Float64[Tensor, "l k k"]


@kept_by_counts
def labelings(counts: Int[Tensor, "m k"], parts: int, folds: int, convention: Convention) -> Labelings:
    """Without each of the first `folds` of the parts, and under relabelings, whose counts come after those of all `parts`."""
    each, drawn = counts[:parts], counts[parts:]
    whole = each.sum(dim=0)
    left = whole - each[:folds]  # g k
    # without a fold classes keep the shares they have in the data: that a fold holds more of one is no news of D
    kept = (left > 0).eq(whole > 0).all(dim=1, keepdim=True)
    n = torch.cat([left, drawn])  # l k
    weights = convention.weights(torch.cat([torch.where(kept, whole, left), drawn]))
    sizes, root = n.clamp(min=1), weights.between.sqrt()
    real = sizes.to(torch.float64)
    return Labelings(
        counts=n,
        weights=weights,
        roots=(weights.within / sizes).sqrt(),
        lengths=weights.within / sizes.square(),
        spreads=(weights.within[:folds] / (left - 1).clamp(min=1)).sqrt(),
        present=(n > 0).sum(dim=1),
        mixing=torch.diag_embed(root / real) - root.unsqueeze(2) * (weights.center / real).unsqueeze(1),
    )


class Relabelings:
    """Leave-one-fold-out and random labelings looked at together: one product of residuals with all their directions.

    The first `folds` labelings see the rows outside a fold by their classes, the others all rows by random classes. With
    z = v_jᵀ x_i/s_j less any number of the class, D_l = Σ_k (w_k/n_k) Σ_j (Σ z² − (Σ z)²/n_k): of every labeling l and direction
    j the second pass adds up Σ (w_k/n_k) z², and Σ z is known from the sums of the first. The rows come as residuals
    r_i = x_i − m_{y_i} from the plain class means: without a fold classes stay what they are, and z = v_jᵀ r_i/s_j; by random
    classes v_jᵀ m_{y_i}/s_j is added, a small table. The directions may be of single precision: intervals and chance levels
    need six digits.
    """

    def __init__(
        self, sums: GroupSums, *, convention: Convention, folds: int, kind: torch.dtype, scatter: bool = False
    ) -> None:
        self.classes, self.convention, self.folds = sums.classes, convention, folds
        self.present, self.dim = len(sums.centers.present), sums.centers.dim
        self.width = min(sums.classes - 1, self.dim)
        self.frame = frame = labelings(
            torch.cat([sums.fold_counts, sums.relabeled_counts]), sums.folds, folds, convention
        )
        self.counts, mixing = frame.counts, frame.mixing  # l k, l k k
        products, plain = self._products(sums, folds)  # l k k, both
        # B = mixing · sums, so B Bᵀ = U S² Uᵀ is known without B, and v_j/s_j = Bᵀu_j/s_j² as well
        values, vectors = torch.linalg.eigh(mixing @ products @ mixing.mT)
        values, vectors = values.flip(1)[:, : self.width], vectors.flip(2)[:, :, : self.width]  # l r, l k r
        clear, void = values > CLEAR * values[:, :1], values <= VOID * values[:, :1]
        full = clear.sum(dim=1) >= (frame.present - 1).clamp(max=self.width)
        narrow = sums.eps > torch.finfo(torch.float64).eps  # what is void is rounding then; of float64 it may be real
        known = full | (narrow & (clear | void).all(dim=1))
        self.singular_values = values.clamp(min=0).sqrt() * clear  # l r
        terms = (vectors / values.masked_fill(~clear, torch.inf).unsqueeze(1)).mT @ mixing  # l r k, of the sums
        self.directions = torch.zeros(len(values) * self.width, self.dim, dtype=kind, device=values.device)  # l·r d
        for columns, each in sums.relabeled_sums(folds):
            self.directions[:, columns] = (terms @ each).flatten(0, 1).to(kind)
        self.plain = plain @ terms.mT  # l k r, the plain class means on the directions
        self.linear = self._linear(products @ terms.mT, self.plain)  # l k r
        for index in (~known).nonzero().flatten().tolist():
            self._decompose(index, sums, mixing[index])
        self.vectors = vectors[:folds]  # g k r
        self.scatter = values.new_zeros(folds, self.width, self.width) if scatter and bool(full[:folds].all()) else None
        self.squares = values.new_zeros(len(values), self.width)  # l r, Σ (w_k/n_k) z²
        self.replicated = True  # whether D without each fold is asked for

    def _linear(
        self, along: Float64[Tensor, "l k r"], plain: Float64[Tensor, "l k r"], first: int = 0
    ) -> Float64[Tensor, "l k r"]:
        """Σ z of every class, of labelings from the first on, by their sums along their directions.

        By folds z is about the plain mean of the class, by random classes about the mean of all means, as the sums are.
        """
        folds = max(0, self.folds - first)
        moved = self.counts[first : first + len(plain)].unsqueeze(2) * plain
        return torch.cat([along[:folds] - moved[:folds], along[folds:]])

    @staticmethod
    def _products(sums: GroupSums, folds: int) -> tuple[Float64[Tensor, "l k k"], Float64[Tensor, "l k k"]]:
        """Of the sums of every labeling with each other, and of the plain class means with them."""
        products = plain = torch.zeros((), dtype=torch.float64, device=sums.counts.device)
        for columns, each in sums.relabeled_sums(folds):
            products = products + each @ each.mT
            plain = plain + _middle_means(sums, columns) @ each.flatten(0, 1).T  # k l·k
        return products, plain.unflatten(1, products.shape[:2]).transpose(0, 1)

    def _decompose(self, index: int, sums: GroupSums, mixing: Float64[Tensor, "k k"]) -> None:
        """One labeling by the singular value decomposition of B, where B Bᵀ does not keep eight digits.

        That is where a singular value lies below 10⁻⁴ of the largest; of narrower features, above 10⁻⁶·⁵ as well, since
        what is smaller is their rounding.
        """
        each = torch.cat([part[index] for _, part in sums.relabeled_sums(self.folds)], dim=1)  # k d
        rows = mixing @ each
        v, s, _ = torch.linalg.svd(rows.T.cpu(), full_matrices=False)
        kept = min(self.width, int((s > torch.finfo(s.dtype).eps * max(rows.shape) * s[0]).sum()))
        s, v = s[:kept].to(rows.device), v[:, :kept].to(rows.device)
        scaled = (v / s).T  # r d
        mine = slice(index * self.width, (index + 1) * self.width)
        self.directions[mine] = 0
        self.directions[mine][:kept] = scaled.to(self.directions.dtype)
        for table in (self.singular_values, self.plain, self.linear):
            table[index] = 0
        self.singular_values[index, :kept] = s
        plain = _middle_means(sums, slice(None)) @ scaled.T  # k r
        self.plain[index, :, :kept] = plain
        self.linear[index, :, :kept] = self._linear((each @ scaled.T).unsqueeze(0), plain.unsqueeze(0), index)[0]

    def look(self, projected: Shaped[Tensor, "n m"], rows: Assignments) -> None:
        """Add rows: their residuals on `directions`."""
        z = projected.T.to(torch.float64).unflatten(0, (-1, self.width))  # l r n, which is how products leave them
        roots = self.frame.roots  # l k
        if self.folds:
            assert rows.folds is not None
            every, held = z[: self.folds], None
            if self.replicated:
                held = every * _outside(roots[: self.folds], rows).unsqueeze(1)
                self.squares[: self.folds] += torch.linalg.vector_norm(held, dim=2).square_()
            if self.scatter is not None:
                held = torch.mul(every, _outside(self.frame.spreads, rows).unsqueeze(1), out=held)
                self.scatter.baddbmm_(held, held.mT)
        if len(self.counts) > self.folds:
            assert rows.relabeled is not None
            labels = rows.relabeled[: len(self.counts) - self.folds] % self.present  # p n
            each = z[self.folds :] + _of_rows(self.plain[self.folds :].mT, rows.labels)  # p r n
            each *= roots[self.folds :].gather(1, labels).unsqueeze(1)
            self.squares[self.folds :] += torch.linalg.vector_norm(each, dim=2).square_()

    def noisy_means(self, spreads: Float64[Tensor, " k"]) -> NoisyMeans | None:
        """B̂ without each fold, its scatter and the noise that classes of these unbiased summed variances give it."""
        if self.scatter is None:
            return None
        left = self.linear[: self.folds] * self.frame.spreads.unsqueeze(2)  # g k r
        about = left / self.counts[: self.folds].clamp(min=1).unsqueeze(2)
        centered = self.scatter - left.mT @ about
        folds, r = slice(0, self.folds), min(self.present - 1, self.width)
        weights = self.frame.weights
        share = weights.between[folds] * spreads / self.counts[folds].clamp(min=1)  # g k
        s, u = self.singular_values[folds, :r], self.vectors[:, :, :r]  # g r, g k r
        scatter = s.square().unsqueeze(2) * centered[:, :r, :r] * s.square().unsqueeze(1)
        noise = u.mT @ (share.unsqueeze(2) * u)
        return noisy_means(s, scatter, noise, weights.within[folds] @ spreads)

    def left_out(self, *, rank: int) -> list[float]:
        """D without each fold, cut at the rank of the data themselves, or where classes were lost at theirs less one.

        None at all where it was not asked for.
        """
        if not self.replicated:
            return []
        ranks = (self.frame.present[: self.folds] - 1).clamp(max=rank)
        return self._values(slice(0, self.folds), ranks)

    def chance(self, *, size: float, variance: float, eps: float, steps: float) -> float | None:
        """The median D under random labels; None where there are none, or one of them has no two different means.

        `size` and `variance` are the mean squared norm of all rows and their summed variance, which a random class shares.
        """
        counts = self.counts[self.folds :]
        if not len(counts):
            return None
        between, s = self.convention.weights(counts).between, self.singular_values[self.folds :]
        sizes, variances = torch.full_like(between, size), torch.full_like(between, variance)
        cut = rounding_cut(counts, between, sizes=sizes, variances=variances, eps=eps, dim=self.dim, steps=steps)
        if self.convention.tol is not None:
            cut = self.convention.tol * s[:, 0]
        ranks = (s > cut.unsqueeze(1)).sum(dim=1)
        return statistics.median(self._values(slice(self.folds, None), ranks)) if bool((ranks > 0).all()) else None

    def _values(self, which: slice, ranks: Int[Tensor, " l"]) -> list[float]:
        """D of some labelings, each cut at its rank."""
        moved = self.frame.lengths[which].unsqueeze(1) @ self.linear[which].square()  # l 1 r
        spreads = (self.squares[which] - moved.squeeze(1)).clamp(min=0)  # l r
        kept = torch.arange(self.width, device=ranks.device) < ranks.unsqueeze(1)  # l r
        values = (spreads * kept).sum(dim=1).tolist()
        present = self.frame.present[which].tolist()
        return [self.convention.normalized(value, classes=k) for value, k in zip(values, present, strict=True)]


def _outside(shares: Float64[Tensor, "g k"], rows: Assignments) -> Float64[Tensor, "g n"]:
    """The share of every row's class without each fold; none for rows of the fold itself."""
    assert rows.folds is not None
    return _of_rows(shares, rows.labels).scatter_(0, rows.folds.unsqueeze(0), 0.0)


def _of_rows(table: Float64[Tensor, "*m k"], labels: Int[Tensor, " n"]) -> Float64[Tensor, "*m n"]:
    """What a table has for the class of every row."""
    return table.gather(-1, labels.expand(*table.shape[:-1], -1))  # a third of the time of columns that are selected


def _middle_means(sums: GroupSums, columns: slice) -> Float64[Tensor, "k c"]:
    """m_k less the mean of the class means; 0 where a class has no rows."""
    return (sums.centers.about[:, columns] - sums.middle[columns]) * (sums.counts > 0).unsqueeze(1)
