"""Few samples on a GPU: both passes over all sites, by one fetch.

A GPU has to be told of every step, and waited for at every number that a decision hangs on. Of few samples nearly all steps are
on numbers of K classes and r directions; a CPU is done with them before a GPU has begun. So only what is as wide as the features
is done there: class means, an orthonormal basis of them, and the residuals on that basis, of sites of one width together. What
is left is n × K numbers at every site, and all sites are done in one batch. A Tracker reads a training so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from equisep.separation.blocks import Block
from equisep.separation.group_sums import NARROW, ClassCenters, rounding_unit
from equisep.separation.site.products import projected
from equisep.separation.site.records import SiteTask, Spread
from equisep.separation.subspace import EPS64, ClassSubspace, Projections, centered, rounding_cut
from equisep.shapes import Float64, Int, Shaped

SMALL = 2**20  # products n·K² up to which a CPU is done before a GPU has begun all of them
ROOM = 2**25  # numbers of features up to which they are turned to float64 at once: 256 MiB
PARTS = 5  # tensors that are fetched of sites of one width
TOGETHER = 2048  # features up to which sites of one width are done together: wider ones keep a GPU busy alone
Features = Sequence[Shaped[Tensor, "_ d"]]
Sites = Sequence[Sequence[Shaped[Tensor, "_ _"]]]  # of any width each


@dataclass(frozen=True, slots=True)
class FewRows:
    """One site: its spread, and of every row its label, its residual on the directions and the class of the nearest center.

    `beside` are the residuals of test rows from the training means, on the training directions. Means and directions are on
    the GPU, all else is on the CPU.
    """

    spread: Spread
    labels: Int[Tensor, " n"]
    along: Float64[Tensor, "n r"]
    guesses: Int[Tensor, " n"]
    beside: Float64[Tensor, "n q"] | None = None


def few_on_gpu(features: Features, classes: int) -> bool:
    """Whether these are few enough, on a GPU, and of 24 bits or fewer, so that float64 sums them exactly."""
    first, n = features[0], sum(len(part) for part in features)
    narrow = all(part.dtype.itemsize <= NARROW for part in features)
    return first.is_cuda and narrow and n * classes**2 <= SMALL and n * first.shape[1] <= ROOM


def read_few(
    sites: Sites,
    labels: Int[Tensor, " n"],
    tasks: Sequence[SiteTask],
    training: Sequence[tuple[ClassCenters, ClassSubspace]] = (),
) -> list[FewRows]:
    """What `GroupSums`, `ClassSubspace.spanned` and `projected` find at every site, by the same formulas.

    The rows √w_k (m_k − m) of B give Bᵀ = Q T with Q orthonormal (Householder) and T small; T = U S Vᵀ is decomposed on the CPU,
    and the directions are Q U. All tasks have the classes and the convention of the first; `training` are the means that test
    rows are near to, of every site.
    """
    y, where = labels.cpu(), labels.to(sites[0][0].device)
    frame = _Frame.of(y, tasks[0], where)
    groups = _of_one_width(sites)
    wide = [_WideSites.read([sites[number] for number in group], frame) for group in groups]
    beside = [
        projected(Block(parts), where, centers, space.directions)[1]
        for parts, (centers, space) in zip(sites, training, strict=bool(training))
    ]
    fetched = _fetched([*(tensor for each in wide for tensor in each.narrow), *beside])
    order = [number for group in groups for number in group]
    dims, eps = [sites[number][0].shape[1] for number in order], [each.eps for each in wide for _ in each.about]
    small = _SmallSites.of(fetched[: PARTS * len(wide)], [tasks[number] for number in order], dims, eps, frame)
    all_small = iter(small.each(small.turns.to(where.device)))
    rows: dict[int, FewRows] = {}
    for each, group in zip(wide, groups, strict=True):
        for number, (shift, about, means, basis) in zip(group, each.each(), strict=True):
            mine, own = next(all_small), fetched[PARTS * len(wide) + number] if beside else None
            centers = ClassCenters(frame.counts, shift, about, means, each.eps, narrow=True, squares=mine.sizes)
            rows[number] = FewRows(mine.spread(centers, basis, frame), y, mine.along, mine.guesses, own)
    return [rows[number] for number in range(len(sites))]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What all sites share: labels and class sizes, weights, and on the GPU one-hot labels, weights and sizes."""

    task: SiteTask
    labels: Int[Tensor, " n"]
    counts: Int[Tensor, " k"]
    present: int
    between: Float64[Tensor, " k"]
    within: Float64[Tensor, " k"]
    there: Float64[Tensor, "3 k"]  # weights of the center, roots of those between, sizes
    where: Int[Tensor, " n"]
    chosen: Float64[Tensor, "k n"]

    @staticmethod
    def of(y: Int[Tensor, " n"], task: SiteTask, where: Int[Tensor, " n"]) -> _Frame:
        counts = torch.bincount(y, minlength=task.classes)
        weights = task.convention.weights(counts)
        there = torch.stack([weights.center, weights.between.sqrt(), counts.double()]).to(where.device)
        chosen = one_hot(where, task.classes).T.to(torch.float64)
        present = int((counts > 0).sum())
        return _Frame(task, y, counts, present, weights.between, weights.within, there, where, chosen)


def _of_one_width(sites: Sites) -> list[list[int]]:
    """The numbers of sites of one width and type together, as many as there is room for at once."""
    groups: dict[tuple[int, torch.dtype], list[list[int]]] = {}
    for number, parts in enumerate(sites):
        d, n = parts[0].shape[1], sum(map(len, parts))
        alike = groups.setdefault((d, parts[0].dtype), [[]])
        if alike[-1] and (d > TOGETHER or (len(alike[-1]) + 1) * n * d > ROOM):
            alike.append([])
        alike[-1].append(number)
    return [group for alike in groups.values() for group in alike]


@dataclass(frozen=True, slots=True)
class _WideSites:
    """Sites of one width on the GPU: what stays there, and what is `narrow` and is fetched.

    That is T, the means and the residuals on Q, the squared norms of residuals, and those of the means and of these about
    the shift.
    """

    eps: float
    shift: Float64[Tensor, "s d"]
    about: Float64[Tensor, "s k d"]
    means: Float64[Tensor, "s k d"]
    basis: Float64[Tensor, "s d m"]
    narrow: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]

    @staticmethod
    def read(sites: Sequence[Features], frame: _Frame) -> _WideSites:
        x = frame.there.new_empty(len(sites), len(frame.where), sites[0][0].shape[1])  # s n d
        for rows, parts in zip(x, sites, strict=True):
            for piece, part in zip(rows.split([len(part) for part in parts]), parts, strict=True):
                piece.copy_(part)
        center, root, n = frame.there[0], frame.there[1].view(1, -1, 1), frame.there[2].clamp(min=1).view(1, -1, 1)
        shift, sums = x[:, :1].clone(), _products(frame.chosen.unsqueeze(0), x)  # s 1 d, s k d
        about, means = (sums - n * shift) / n, sums / n
        if frame.present < frame.task.classes:
            absent = (frame.there[2] == 0).view(1, -1, 1)
            about, means = about.masked_fill(absent, 0), torch.where(absent, shift, means)
        offsets = centered(about, center)  # s k d
        basis, triangle = torch.linalg.qr((root * offsets).mT)  # s d m, s m k
        residuals = x.sub_(means.index_select(1, frame.where))
        norms = torch.linalg.vecdot(residuals, residuals)  # s n
        squares = torch.stack([means.square().sum(dim=2), about.square().sum(dim=2)], dim=1)  # s 2 k
        on_basis = _products(torch.cat([offsets, residuals], dim=1), basis)  # s k+n m
        eps = max(rounding_unit(part.dtype) for parts in sites for part in parts)
        narrow = triangle, on_basis[:, : len(frame.counts)], on_basis[:, len(frame.counts) :], norms, squares
        return _WideSites(eps, shift.squeeze(1), about, means, basis, narrow)

    def each(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Of every site the shift, the means about it, the means, and the basis."""
        return zip(self.shift.unbind(), self.about.unbind(), self.means.unbind(), self.basis.unbind(), strict=True)


def _products(a: Float64[Tensor, "t p d"], b: Float64[Tensor, "s d q"]) -> Float64[Tensor, "s p q"]:
    """The products of every site; of one alone as matrices, whose long sums a GPU divides among its processors."""
    return (a[0] @ b[0]).unsqueeze(0) if len(b) == 1 else a @ b


@dataclass(frozen=True, slots=True)
class _SmallSites:
    """All sites on the CPU in the order in which they were fetched; what a site has fewer of than K is filled up by zeros."""

    ranks: list[int]  # directions above the rounding of float64
    counted: list[int]  # … and above the cut
    cuts: list[float]
    traces_between: list[float]
    turns: Float64[Tensor, "s k k"]
    singular_values: Float64[Tensor, "s k"]
    coordinates: Float64[Tensor, "s k k"]
    along: Float64[Tensor, "s n k"]
    means: Float64[Tensor, "s k k"]
    squares: Float64[Tensor, "s k k"]
    traces: Float64[Tensor, "s k"]
    sizes: Float64[Tensor, "s 2 k"]
    guesses: Int[Tensor, "s n"]

    @staticmethod
    def of(
        fetched: Sequence[Tensor], tasks: Sequence[SiteTask], dims: Sequence[int], eps: Sequence[float], frame: _Frame
    ) -> _SmallSites:
        k, y = len(frame.counts), frame.labels
        triangles, centers, rows, norms, sizes = (
            torch.cat([_filled(part, k, dim=dim) for part in fetched[number::PARTS]])
            for number, dim in enumerate((1, 2, 2, None, None))
        )
        u, s, _ = torch.linalg.svd(triangles)
        widths = torch.tensor(dims, dtype=torch.float64, device="cpu")
        kept = s > EPS64 * widths.clamp(min=k).unsqueeze(1) * s[:, :1]
        turns = u * kept.unsqueeze(1)
        coordinates, along = centers @ turns, rows @ turns  # s k k, s n k
        chosen, n = one_hot(y, k).T.double(), frame.counts.clamp(min=1).double()  # k n, k
        means = chosen @ along / n.unsqueeze(1)
        squares = chosen @ (along - means.index_select(1, y)).square_()
        traces = norms @ chosen.T
        cuts = _cuts(s, sizes[:, 0], traces / n, widths, tasks, eps, frame)
        return _SmallSites(
            ranks=kept.sum(dim=1).tolist(),
            counted=(kept & (s > cuts.unsqueeze(1))).sum(dim=1).tolist(),
            cuts=cuts.tolist(),
            traces_between=s.square().sum(dim=1).tolist(),
            turns=turns,
            singular_values=s,
            coordinates=coordinates,
            along=along,
            means=means,
            squares=squares,
            traces=traces,
            sizes=sizes,
            guesses=_nearest(along + coordinates.index_select(1, y), coordinates, frame.counts),
        )

    def each(self, turns: Float64[Tensor, "s k k"]) -> list[_SmallSite]:
        """Every site, with as many directions as it has; `turns` are on the GPU."""
        tables = turns, self.singular_values, self.coordinates, self.along, self.means, self.squares
        cut = {rank: [table[..., :rank].unbind() for table in tables] for rank in set(self.ranks)}  # few steps for all
        whole = self.traces.unbind(), self.sizes.unbind(), self.guesses.unbind()
        numbers = zip(self.counted, self.cuts, self.traces_between, strict=True)
        return [
            _SmallSite(*numbers_here, *(views[place] for views in (*cut[rank], *whole)))
            for place, (rank, numbers_here) in enumerate(zip(self.ranks, numbers, strict=True))
        ]


@dataclass(frozen=True, slots=True)
class _SmallSite:
    """One of them."""

    counted: int
    cut: float
    trace_between: float
    turn: Float64[Tensor, "k r"]
    singular_values: Float64[Tensor, " r"]
    coordinates: Float64[Tensor, "k r"]
    along: Float64[Tensor, "n r"]
    means: Float64[Tensor, "k r"]
    squares: Float64[Tensor, "k r"]
    traces: Float64[Tensor, " k"]
    sizes: Float64[Tensor, "2 k"]
    guesses: Int[Tensor, " n"]

    def spread(self, centers: ClassCenters, basis: Float64[Tensor, "d m"], frame: _Frame) -> Spread:
        """What both passes found."""
        d, m = basis.shape
        subspace = ClassSubspace(
            counts=frame.counts,
            directions=basis @ self.turn[:m],
            singular_values=self.singular_values,
            coordinates=self.coordinates,
            within_weights=frame.within,
            rank=self.counted,
            cut=self.cut,
            full_rank=min(frame.present - 1, d),
            trace_between=self.trace_between,
        )
        return Spread(centers, subspace, Projections(frame.counts, self.means, self.squares, self.traces))


def _filled(part: Tensor, size: int, *, dim: int | None) -> Tensor:
    """A dimension filled up by zeros: of features fewer than the classes there are fewer directions."""
    if dim is None or part.shape[dim] == size:
        return part
    missing = size - part.shape[dim]
    return pad(part, (0, 0, 0, missing) if dim == 1 else (0, missing))


def _cuts(
    s: Float64[Tensor, "s k"],
    sizes: Float64[Tensor, "s k"],
    variances: Float64[Tensor, "s k"],
    dims: Float64[Tensor, " s"],
    tasks: Sequence[SiteTask],
    eps: Sequence[float],
    frame: _Frame,
) -> Float64[Tensor, " s"]:
    """The rounding of every site as a singular value, or what the convention says instead."""
    tol = frame.task.convention.tol
    if tol is not None:
        return tol * s[:, 0]
    cuts = torch.zeros_like(dims)
    offsets = torch.tensor([task.offset for task in tasks], dtype=torch.float64, device="cpu").unsqueeze(1)
    whole = sizes + variances + offsets
    kinds = [(unit, task.steps) for unit, task in zip(eps, tasks, strict=True)]
    for kind in set(kinds):
        mine = torch.tensor([place for place, other in enumerate(kinds) if other == kind], device="cpu")
        cuts[mine] = rounding_cut(
            frame.counts.expand(len(mine), -1), frame.between.expand(len(mine), -1),
            sizes=whole[mine], variances=variances[mine], eps=kind[0], dim=dims[mine], steps=kind[1],
        )  # fmt: skip
    return cuts


def _nearest(
    z: Float64[Tensor, "s n k"], points: Float64[Tensor, "s k k"], counts: Int[Tensor, " k"]
) -> Int[Tensor, "s n"]:
    """argmin_k ‖z − c_k‖ at every site, as `nearest_points` finds it."""
    distances = torch.baddbmm(points.square().sum(dim=2).unsqueeze(1), z, points.mT, alpha=-2)  # s n k
    return distances.masked_fill_(counts == 0, torch.inf).argmin(dim=2)


def _fetched(tensors: Sequence[Tensor]) -> list[Tensor]:
    """All of them on the CPU, by one fetch."""
    parts = torch.cat([tensor.flatten() for tensor in tensors]).cpu().split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]
