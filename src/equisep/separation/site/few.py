"""Few samples on a GPU: both passes over all sites, by one fetch.

A GPU has to be told of every step, and waited for at every number that a decision hangs on. Of few samples nearly all steps are
on numbers of K classes and r directions; a CPU is done with them before a GPU has begun. So only what is as wide as the features
is done there: class means, an orthonormal basis of them, and the residuals on that basis, of all sites side by side. What is
left is n × K numbers at every site, and all sites are done in one batch. A Tracker reads a training so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.blocks import Block
from equisep.separation.group_sums import NARROW, ClassCenters
from equisep.separation.site.products import projected
from equisep.separation.site.records import SiteTask, Spread
from equisep.separation.site.second_pass import same_for_collapse
from equisep.separation.site.side_by_side import Frame, Sites, moved, side_by_side
from equisep.separation.subspace import EPS64, ClassSubspace, Projections, rounding_cut
from equisep.shapes import Float64, Int, Shaped

SMALL = 2**20  # products n·K² up to which a CPU is done before a GPU has begun all of them
ROOM = 2**25  # numbers of features up to which they are turned to float64 at once: 256 MiB
Features = Sequence[Shaped[Tensor, "_ d"]]


@dataclass(frozen=True, slots=True)
class FewRows:
    """One site: its spread, and of every row its label, its residual on the directions and the class of the nearest center.

    `beside` are the residuals of test rows from the training means, on the training directions; `same` says whether NC1 sees the
    matrices that D does. Means and directions are on the GPU, all else is on the CPU.
    """

    spread: Spread
    labels: Int[Tensor, " n"]
    along: Float64[Tensor, "n r"]
    guesses: Int[Tensor, " n"]
    same: bool
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
    device, y = sites[0][0].device, labels.cpu()
    frame = Frame.of(y, tasks[0])
    wide, same = side_by_side(sites, frame), same_for_collapse(frame.counts, frame.task.convention)
    where = labels.to(device)
    beside = [
        projected(Block(parts), where, centers, space.directions)[1]
        for parts, (centers, space) in zip(sites, training, strict=bool(training))
    ]
    fetched = iter(moved([*(tensor for each in wide for tensor in each.narrow), *beside], torch.device("cpu")))
    narrow = [each.site_by_site(fetched, frame) for each in wide]
    order = [number for each in wide for number in each.group.numbers]
    dims, eps = [sites[number][0].shape[1] for number in order], [each.eps for each in wide for _ in each.group.numbers]
    small = _SmallSites.of(
        [torch.cat(parts) for parts in zip(*narrow, strict=True)], [tasks[i] for i in order], dims, eps, frame
    )
    own, all_small = list(fetched), iter(small.each())
    turns = small.turns.split([len(each.group.numbers) for each in wide])
    turned = moved([each.by_piece(part) for each, part in zip(wide, turns, strict=True)], device)
    rows: dict[int, FewRows] = {}
    for each, turn in zip(wide, turned, strict=True):
        for number, (shift, about, means, directions) in zip(each.group.numbers, each.each(turn), strict=True):
            mine = next(all_small)
            centers = ClassCenters(frame.counts, shift, about, means, each.eps, narrow=True, squares=mine.sizes)
            spread = mine.spread(centers, directions, frame)
            rows[number] = FewRows(spread, y, mine.along, mine.guesses, same, own[number] if own else None)
    return [rows[number] for number in range(len(sites))]


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
        narrow: Sequence[Tensor], tasks: Sequence[SiteTask], dims: Sequence[int], eps: Sequence[float], frame: Frame
    ) -> _SmallSites:
        k, y = len(frame.counts), frame.labels
        triangles, centers, rows, norms, sizes = narrow
        u, s, _ = torch.linalg.svd(triangles)
        widths = torch.tensor(dims, dtype=torch.float64, device="cpu")
        kept = s > EPS64 * widths.clamp(min=k).unsqueeze(1) * s[:, :1]
        turns = u * kept.unsqueeze(1)
        coordinates, along = centers @ turns, rows @ turns  # s k k, s n k
        chosen, n = frame.chosen, frame.counts.clamp(min=1).double()  # k n, k
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

    def each(self) -> list[_SmallSite]:
        """Every site, with as many directions as it has."""
        tables = self.singular_values, self.coordinates, self.along, self.means, self.squares
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
    singular_values: Float64[Tensor, " r"]
    coordinates: Float64[Tensor, "k r"]
    along: Float64[Tensor, "n r"]
    means: Float64[Tensor, "k r"]
    squares: Float64[Tensor, "k r"]
    traces: Float64[Tensor, " k"]
    sizes: Float64[Tensor, "2 k"]
    guesses: Int[Tensor, " n"]

    def spread(self, centers: ClassCenters, directions: Float64[Tensor, "d m"], frame: Frame) -> Spread:
        """What both passes found; of the directions the first are above rounding."""
        subspace = ClassSubspace(
            counts=frame.counts,
            directions=directions[:, : len(self.singular_values)],
            singular_values=self.singular_values,
            coordinates=self.coordinates,
            within_weights=frame.within,
            rank=self.counted,
            cut=self.cut,
            full_rank=min(frame.present - 1, len(directions)),
            trace_between=self.trace_between,
        )
        return Spread(centers, subspace, Projections(frame.counts, self.means, self.squares, self.traces))


def _cuts(
    s: Float64[Tensor, "s k"],
    sizes: Float64[Tensor, "s k"],
    variances: Float64[Tensor, "s k"],
    dims: Float64[Tensor, " s"],
    tasks: Sequence[SiteTask],
    eps: Sequence[float],
    frame: Frame,
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
