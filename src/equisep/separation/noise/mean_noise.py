"""The noise of class means as the folds show it, and what it leaves of D: the numbers behind `corrected_fuzziness`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from equisep.results import PopulationEstimate
from equisep.separation.convention import Convention
from equisep.separation.group_sums import GroupSums
from equisep.separation.noise.by_counts import kept_by_counts
from equisep.separation.noise.noise_rows import NoiseRows, rows_side_by_side
from equisep.separation.noise.population import (
    Estimates,
    NoisyMeans,
    even_directions,
    noisy_means,
    null_error,
    population_fuzziness,
    side_by_side,
    stretched,
)
from equisep.separation.relabeled import Relabelings
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Bool, Float64, Int

MOST_CLASSES = 256  # the scatter of residuals on the subspace is a matrix of K × K
MOST_CONTRASTS = 300  # differences of fold means kept to know the noise by


@dataclass(frozen=True, slots=True)
class FoldNoise:
    """What all samples and those without each fold say of the class means at one site, and what noise alone looks like.

    Both are None where there is no estimate. `unlike` is the spread that classes put into one direction of the means over that in
    another, as far as samples tell classes apart.
    """

    means: NoisyMeans | None
    rows: NoiseRows | None
    null_error: float
    classes: int
    convention: Convention
    unlike: float = 1.0

    @property
    def kind(self) -> tuple[object, ...]:
        """Sites of one kind are done together."""
        return () if self.means is None or self.rows is None else (self.means.singular_values.shape, self.rows.kind)


def population_estimates(sites: Sequence[FoldNoise | None]) -> list[PopulationEstimate | None]:
    """D of the population at every site, those of one kind together: their matrices are small, and calls are what costs."""
    results: list[PopulationEstimate | None] = [None if site is None else PopulationEstimate(None) for site in sites]
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, site in enumerate(sites):
        if site is not None and site.means is not None:
            alike.setdefault(site.kind, []).append(number)
    for numbers in alike.values():
        for number, estimate in zip(numbers, _estimates([sites[i] for i in numbers]), strict=True):  # type: ignore[misc]
            results[number] = estimate
    return results


def _estimates(sites: Sequence[FoldNoise]) -> list[PopulationEstimate]:
    """Sites of one kind; where one of them has no estimate, each by itself."""
    means = [site.means for site in sites if site.means is not None]
    rows = [site.rows for site in sites if site.rows is not None]
    each = len(means[0].totals)
    found = population_fuzziness(side_by_side(means), rows_side_by_side(rows))
    if found is None:
        return [PopulationEstimate(None)] if len(sites) == 1 else [_estimates([site])[0] for site in sites]
    return [_of_site(site, found, slice(i * each, (i + 1) * each)) for i, site in enumerate(sites)]


def _of_site(site: FoldNoise, found: Estimates, rows: slice) -> PopulationEstimate:
    signal, *signals = found.signals[rows].tolist()
    excess, least, elongation, error = (
        float(of[rows][0]) for of in (found.excess, found.least_error, found.elongations, found.rows_error)
    )
    values = found.values[rows]
    values = np.concatenate([values[:1], stretched(values[1:], error, excess)])
    value, *left_out = (site.convention.normalized(v, classes=site.classes) for v in values.tolist())
    return PopulationEstimate(
        value,
        tuple(left_out),
        signal,
        tuple(signals),
        excess=excess,
        null_error=site.null_error,
        least_error=least,
        elongation=elongation,
        unlike=site.unlike,
    )


class MeanNoise:
    """Differences of fold means (first pass) and the scatter of residuals on the subspace (second pass)."""

    def __init__(self, sums: GroupSums, space: ClassSubspace, convention: Convention, *, folds: int) -> None:
        self.space, self.convention, self.classes = space, convention, sums.classes
        self.told, self.products, self.along = _contrasts(sums, folds, space.directions)
        counts = space.counts
        self.weights = convention.weights(counts)
        self.unit = (self.weights.within / (counts - 1).clamp(min=1)).sqrt()  # k
        r = space.directions.shape[1]
        self.scatter = space.singular_values.new_zeros(r, r)

    def look(self, along: Float64[Tensor, "n r"], labels: Int[Tensor, " n"]) -> None:
        """Add residuals on the subspace."""
        held = along * self.unit.index_select(0, labels).unsqueeze(1)
        self.scatter.addmm_(held.T, held)

    def gathered(self, variances: Float64[Tensor, " k"], rank: int, relabelings: Relabelings) -> FoldNoise:
        """What an estimate needs; `variances` are the summed variances within classes, `rank` is that above rounding."""
        counts, present = self.space.counts, int((self.space.counts > 0).sum())
        spreads = variances * (counts / (counts - 1).clamp(min=1))  # unbiased
        left = relabelings.noisy_means(spreads)
        if not 0 < present - 1 <= rank or left is None or bool((spreads[counts > 0] <= 0).any()):
            return FoldNoise(None, None, 0.0, present, self.convention)
        own, told = self._own(spreads), self.told
        scale = (float(own.totals[0]) / spreads[told.owners]).sqrt().unsqueeze(1)
        gram, along = scale * self.products * scale.T, scale * self.along
        even = even_directions(gram, told.independent)
        varies = null_error(gram, even, independent=told.independent, rank=present - 1)
        # of every class: what it puts into the noise of the means, and into the scatter along them
        parts = spreads * torch.stack([self.weights.between / counts.clamp(min=1), self.weights.within])
        shares = parts[:, told.classes]
        shares = shares / shares.sum(dim=1, keepdim=True)
        owners, free = told.numbers
        rows = NoiseRows(*(each.cpu().numpy() for each in (gram[None], along[None], owners, free, shares[None])))
        return FoldNoise(own.beside(left), rows, varies, present, self.convention, self._unlike(spreads, even))

    def _unlike(self, spreads: Float64[Tensor, " k"], even: float) -> float:
        """Largest over smallest spread along the directions of the means, of classes drawn together by what n_k samples tell.

        ln Tr Σ̂_k varies by ψ′(a) ≈ 1/a + 1/2a², a = (n_k − 1) e/2, e the even directions; what the classes differ by beyond
        three deviations of that is believed.
        """
        counts, left = self.space.counts.cpu().numpy(), self._left().cpu().numpy()
        here = counts > 0
        logs, a = np.log(spreads.cpu().numpy()[here]), (counts[here] - 1) * even / 2
        seen, chance = float(logs.var(ddof=1)), float((1 / a + 0.5 / a**2).mean())
        most = (1 + 3 * (2 / (len(logs) - 1)) ** 0.5) * chance
        believed = max(0.0, 1 - most / seen) if seen > 0 else 0.0
        drawn = np.exp(believed * (logs - logs.mean()))
        along = np.linalg.eigvalsh(left[here].T @ (drawn[:, None] * left[here]))
        return float(along[-1] / max(along[0], np.finfo(np.float64).eps * along[-1]))

    def _left(self) -> Float64[Tensor, "k r"]:
        """U of B = U S Vᵀ."""
        return self.weights.between.sqrt().unsqueeze(1) * self.space.coordinates / self.space.singular_values

    def _own(self, spreads: Float64[Tensor, " k"]) -> NoisyMeans:
        space = self.space
        s, left = space.singular_values, self._left()
        noise = left.T @ ((self.weights.between * spreads / space.counts.clamp(min=1)).unsqueeze(1) * left)
        scatter = s.unsqueeze(1) * self.scatter * s
        total = self.weights.within @ spreads
        alone = (each.unsqueeze(0) for each in (s, scatter, noise, total))
        return noisy_means(*alone)


def _contrasts(
    sums: GroupSums, folds: int, directions: Float64[Tensor, "d r"]
) -> tuple[Contrasts, Float64[Tensor, "m m"], Float64[Tensor, "m r"]]:
    """All √n_kf (m_kf − m_k), rows of covariance Σ_k; their products with each other and with the directions.

    Folds are joined until there are no more rows than MOST_CONTRASTS; of more than half as many classes every second, third … has
    rows.
    """
    told = contrasts(sums.fold_counts, folds)
    products = along = torch.zeros((), dtype=torch.float64, device=told.share.device)
    # Σ_f (x − m_k) = Σ_f (x − middle) − n_kf (m_k − middle), which is (1 − n_kf/n_k) Σ (x − middle) less the sum without the fold
    for columns, left in sums.relabeled_sums(folds):
        whole = sums.counts.unsqueeze(1) * (sums.centers.about[:, columns] - sums.middle[columns])  # k c
        rows = torch.addcmul(left[:folds], told.share.unsqueeze(2), whole, value=-1)  # g k c, with their signs turned
        rows = rows if len(told.classes) == sums.classes else rows[:, told.classes]
        if told.groups < folds:
            rows = rows.new_zeros(told.groups, *rows.shape[1:]).index_add_(0, told.joined, rows)
        flat = rows.flatten(0, 1) if told.held is None else rows.flatten(0, 1)[told.held]
        products, along = products + flat @ flat.T, along + flat @ directions[columns]
    return told, products / told.pairs, along / told.roots


@dataclass(frozen=True, slots=True)
class Contrasts:
    """What differences of fold means are by the numbers of rows alone.

    The classes and the folds joined into groups; which of both have rows, unless all do; the class of each, √n_kf and its
    products; of every fold the share of a class that lies outside. `numbers` are the class of each as a place among these
    classes, and how many of each class are independent: one fewer than there are, since they sum up to its mean; `independent`
    are all of them.
    """

    classes: Int[Tensor, " c"]
    groups: int
    joined: Int[Tensor, " g"]
    held: Bool[Tensor, " a"] | None
    owners: Int[Tensor, " m"]
    roots: Float64[Tensor, "m 1"]
    pairs: Float64[Tensor, "m m"]
    share: Float64[Tensor, "g k"]
    numbers: tuple[Int[Tensor, " m"], Int[Tensor, " c"]]
    independent: int


@kept_by_counts
def contrasts(counts: Int[Tensor, "p k"], folds: int) -> Contrasts:
    """Of the rows of every class in every fold, of which the first `folds` are left out."""
    whole = counts.sum(dim=0)
    present = whole.nonzero().flatten()
    classes = present[:: -(-len(present) * 2 // MOST_CONTRASTS)]
    groups = max(2, min(folds, MOST_CONTRASTS // len(classes)))
    joined = torch.arange(folds, device=classes.device) % groups
    mine = counts[:folds, classes]
    sizes = torch.zeros(groups, len(classes), dtype=mine.dtype, device=mine.device).index_add_(0, joined, mine)
    held = (sizes > 0).flatten()
    places = torch.arange(len(classes), device=classes.device).repeat(groups)[held]
    owners, roots = classes[places], sizes.flatten()[held].to(torch.float64).sqrt().unsqueeze(1)
    free = torch.bincount(places, minlength=len(classes)) - 1
    return Contrasts(
        classes=classes,
        groups=groups,
        joined=joined,
        held=None if bool(held.all()) else held,
        owners=owners,
        roots=roots,
        pairs=roots * roots.T,
        share=1 - counts[:folds].to(torch.float64) / whole.clamp(min=1),
        numbers=(places, free),
        independent=int(free.sum()),
    )
