"""Sites alike: CDNV and NC2 of sites that were read at once, by few steps on all of them together.

Of few classes every step is on few numbers, and what takes time is to tell torch of it, site by site. So what is done to each
number by itself, and sums, are done at all sites at once; products are made site by site, since in one batch they are rounded
otherwise. Every number is that of `cdnv_of` and `geometry_of`, to the last bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from equisep.separation.centers import cdnv_of
from equisep.separation.collapse import Geometry, centered_means, geometry_of
from equisep.separation.pairs.means import EPS64
from equisep.separation.site import Spread
from equisep.shapes import Float64

T = TypeVar("T")
MOST_CLASSES = 64  # beyond, the numbers of one site keep a CPU busy
Spreads = Sequence[Spread]


def cdnv_of_sites(spreads: Spreads) -> list[float | None]:
    """CDNV of every site."""
    return _of_all(spreads, cdnv_of, _cdnv)


def geometry_of_sites(spreads: Spreads) -> list[Geometry | None]:
    """NC2 of the class means of every site."""
    return _of_all(spreads, lambda one: geometry_of(centered_means(one.subspace)), _geometry)


def _of_all(spreads: Spreads, one: Callable[[Spread], T], several: Callable[[Spreads], list[T]]) -> list[T]:
    """What `one` gives of each site, by `several` where sites are alike."""
    groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for number, spread in enumerate(spreads):
        groups[_kind(spread) or (-1, number)].append(number)
    found: dict[int, T] = {}
    for group in groups.values():
        members = [spreads[number] for number in group]
        found |= zip(group, several(members) if len(members) > 1 else map(one, members), strict=True)
    return [found[number] for number in range(len(spreads))]


def _kind(spread: Spread) -> tuple[int, int] | None:
    """What sites share that are alike: class sizes, in one tensor, and the number of directions."""
    space, centers = spread.subspace, spread.centers
    small = space.coordinates.is_cpu and len(space.coordinates) <= MOST_CLASSES
    if not small or centers.squares is None or centers.counts is not space.counts:
        return None
    return id(space.counts), space.coordinates.shape[1]


def _cdnv(spreads: Spreads) -> list[float | None]:
    """As `mean_cdnv`, of the points of the classes that have samples."""
    present, n = spreads[0].centers.present, spreads[0].centers.n
    points = torch.stack([each.subspace.coordinates for each in spreads])  # s k r
    variances = torch.stack([each.projections.traces for each in spreads]) / spreads[0].projections.counts.clamp(min=1)
    if len(present) < points.shape[1]:
        points, variances = points[:, present], variances[:, present]
    nothing = EPS64**2 * n * torch.stack([each.centers.distances for each in spreads]).amax(dim=1)  # s
    squared = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").square_()  # s p p
    squared.masked_fill_(torch.ones_like(squared[0], dtype=torch.bool).tril_(), torch.inf)  # each pair once
    apart = (squared > nothing.view(-1, 1, 1)).flatten(1).all(dim=1).tolist()
    both = variances.unsqueeze(2) + variances.unsqueeze(1)
    totals = both.div_(squared).flatten(1).sum(dim=1).tolist()
    pairs = len(present) * (len(present) - 1)
    return [total / pairs if good else None for total, good in zip(totals, apart, strict=True)]


def _geometry(spreads: Spreads) -> list[Geometry | None]:
    """As `geometry_of`, of the class means about their own mean."""
    counts = spreads[0].subspace.counts
    points = torch.stack([each.subspace.coordinates for each in spreads])  # s k r
    points = points[:, counts > 0]
    v = points - points.mean(dim=1, keepdim=True)
    s, k, r = v.shape
    if k < 2:
        return [None] * s
    norms = v.norm(dim=2)  # s k
    angled = (norms.amin(dim=1) > k * torch.finfo(torch.float64).eps * norms.amax(dim=1)).tolist()
    unit = v / norms.unsqueeze(2)
    mine, units = _apart(v), _apart(unit)
    products = torch.stack([each @ each.T for each in mine])  # s k k
    cosines = torch.stack([each @ each.T for each in units])  # s k k
    sizes = torch.linalg.matrix_norm(torch.stack([each.T @ each for each in mine]) if r < k else products)
    pairs = k * (k - 1)
    means = (unit.sum(dim=1).square().sum(dim=1) - k) / pairs
    around, gaps = cosines - means.view(-1, 1, 1), cosines + 1 / (k - 1)
    residual = products.div_(sizes.view(-1, 1, 1)).add_(1 / (k * (k - 1) ** 0.5))
    _diagonals(residual).sub_((k - 1) ** -0.5)
    _diagonals(around).zero_()
    _diagonals(gaps).zero_()
    sums = torch.stack([each.flatten(1).sum(dim=1) for each in (around.square_(), gaps.abs_(), residual.square_())])
    spreading = torch.stack([each.std(correction=0) for each in norms.unbind()]) / norms.mean(dim=1)
    return [
        Geometry(norm_spread, (spread / pairs) ** 0.5, gap / pairs, rest**0.5) if good else None
        for good, norm_spread, spread, gap, rest in zip(angled, spreading.tolist(), *sums.tolist(), strict=True)
    ]


def _apart(rows: Float64[Tensor, "s p q"]) -> list[Float64[Tensor, "p q"]]:
    """The rows of every site in a tensor of its own: how a product is rounded depends on where in memory its factors begin."""
    return [each.clone() for each in rows.unbind()]


def _diagonals(matrices: Float64[Tensor, "s k k"]) -> Float64[Tensor, "s k"]:
    return matrices.diagonal(dim1=1, dim2=2)
