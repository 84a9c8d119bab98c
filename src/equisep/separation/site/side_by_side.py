"""Sites side by side on a GPU: what is as wide as the features, of few samples, by one step for all sites.

Sites of any width are the columns of one matrix there, each as so many pieces of one width, filled up by zeros. Class means,
residuals and their norms are then one step each for all sites, and so are products with directions, piece by piece; only the
bases are sought width by width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from equisep.separation.group_sums import rounding_unit
from equisep.separation.site.records import SiteTask
from equisep.separation.subspace import centered
from equisep.shapes import Float64, Int, Shaped

TOGETHER = 2**26  # numbers of features that are turned to float64 at once: 512 MiB
APART = 256  # times as wide as the narrowest site beside it: wider ones would be too many pieces
PIECE = 4096  # features that are summed over at once, at most: a GPU divides longer sums among its processors
Sites = Sequence[Sequence[Shaped[Tensor, "_ _"]]]  # of any width each


@dataclass(frozen=True, slots=True)
class Frame:
    """What all sites share: labels and class sizes, weights, and which rows are of which class.

    The rows of `sums` add up the rows of every class, then the same less n_k times the first row, then take the first row alone:
    over `sizes` they give the class means, these about the shift, and the shift. A class without rows has that for its mean.
    """

    task: SiteTask
    labels: Int[Tensor, " n"]
    counts: Int[Tensor, " k"]
    present: int
    center: Float64[Tensor, " k"]
    between: Float64[Tensor, " k"]
    within: Float64[Tensor, " k"]
    chosen: Float64[Tensor, "k n"]
    sums: Float64[Tensor, "2*k+1 n"]
    sizes: Float64[Tensor, "2*k+1 1"]

    @staticmethod
    def of(y: Int[Tensor, " n"], task: SiteTask) -> Frame:
        """That of these labels."""
        counts = torch.bincount(y, minlength=task.classes)
        weights, absent = task.convention.weights(counts), (counts == 0).double()
        chosen = one_hot(y, task.classes).T.double()
        first = chosen.new_zeros(1, len(y))
        first[:, 0] = 1
        sums = torch.cat([chosen + absent.unsqueeze(1) * first, chosen - counts.unsqueeze(1) * first, first])
        sizes = torch.cat([counts, counts, counts.new_ones(1)]).clamp(min=1).double().unsqueeze(1)
        present = int((counts > 0).sum())
        between = weights.between
        return Frame(task, y, counts, present, weights.center, between, weights.within, chosen, sums, sizes)

    @property
    def told(self) -> There:
        """What the GPU is told, while it is still here."""
        return There(self.chosen, self.sums, self.sizes, self.center, self.between.sqrt().unsqueeze(1))


class There(NamedTuple):
    """What the GPU has of it: besides, the roots of the weights between classes."""

    chosen: Float64[Tensor, "k n"]
    sums: Float64[Tensor, "2*k+1 n"]
    sizes: Float64[Tensor, "2*k+1 1"]
    center: Float64[Tensor, " k"]
    root: Float64[Tensor, "k 1"]


@dataclass(frozen=True, slots=True)
class Group:
    """Sites of one type of number that are done side by side: each as so many pieces of one width, filled up by zeros."""

    numbers: tuple[int, ...]  # the sites, those of one width next to each other
    dims: tuple[int, ...]
    piece: int

    @staticmethod
    def all_of(sites: Sites, classes: int) -> list[Group]:
        """All sites, as many together as there is room for."""
        widths, n = [parts[0].shape[1] for parts in sites], sum(map(len, sites[0]))
        groups: dict[tuple[torch.dtype, int], list[list[int]]] = {}
        for number in sorted(range(len(sites)), key=widths.__getitem__, reverse=True):
            alike = groups.setdefault((sites[number][0].dtype, min(widths[number], classes)), [[]])
            full = n * (sum(widths[other] for other in alike[-1]) + widths[number]) > TOGETHER
            if alike[-1] and (full or widths[alike[-1][0]] > APART * widths[number]):
                alike.append([])
            alike[-1].append(number)
        return [
            Group(tuple(group), tuple(widths[number] for number in group), min(PIECE, widths[group[-1]]))
            for alike in groups.values()
            for group in alike
        ]

    @property
    def pieces(self) -> list[int]:
        """How many of every site."""
        return [-(-d // self.piece) for d in self.dims]

    @property
    def owners(self) -> Float64[Tensor, "s c"]:
        """Which pieces are of which site."""
        each = torch.eye(len(self.dims), dtype=torch.float64, device="cpu")
        return each.repeat_interleave(torch.tensor(self.pieces, device="cpu"), dim=1)

    def side_by_side(self, parts: Sequence[Shaped[Tensor, "b _"]]) -> Shaped[Tensor, "b _"]:
        """Some rows of all sites."""
        missing = [count * self.piece - d for count, d in zip(self.pieces, self.dims, strict=True)]
        if not any(missing):
            return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)
        b = len(parts[0])
        nothing = parts[0].new_zeros(b * max(missing))
        filling = [nothing[: b * count].view(b, count) for count in missing]
        return torch.cat([part for pair in zip(parts, filling, strict=True) for part in pair], dim=1)

    def spans(self) -> Iterator[slice]:
        """The columns of every site."""
        start = 0
        for count, d in zip(self.pieces, self.dims, strict=True):
            yield slice(start, start + d)
            start += count * self.piece


@dataclass(frozen=True, slots=True)
class WideSites:
    """Sites side by side on the GPU: what stays there, and what is `narrow` and is fetched.

    That is the means and the residuals on Q, the norms of both by piece, and those of the means and of these about the shift,
    and T, of sites of one width at once.
    """

    group: Group
    eps: float
    shift: Float64[Tensor, "1 w"]
    about: Float64[Tensor, "k w"]
    means: Float64[Tensor, "k w"]
    basis: Float64[Tensor, "c p m"]
    narrow: tuple[Tensor, ...]

    @staticmethod
    def read(group: Group, sites: Sites, there: There, owners: Float64[Tensor, "s c"]) -> WideSites:
        """Of a group of sites; `owners` are there, as all else."""
        parts, (k, n) = [sites[number] for number in group.numbers], there.chosen.shape
        x = there.sums.new_empty(k + n, owners.shape[1] * group.piece)  # means less their center, then all rows
        cuts = sorted({end for each in parts for end in accumulate(map(len, each))})
        for rows, *across in zip(*(_divided(each, cuts) for each in ([x[k:]], *parts)), strict=True):
            rows.copy_(group.side_by_side(across))
        sums = (there.sums @ x[k:]).div_(there.sizes)
        means, about, shift = sums.split([k, k, 1])
        x[:k] = centered(about, there.center)
        x[k:].addmm_(there.chosen.T, means, alpha=-1)  # one product by 1 and else by 0 in each sum: residuals are exact
        weighed, start = there.root * x[:k], 0
        bases, triangles = list[Tensor](), list[Tensor]()
        for count, alike in groupby(group.pieces):
            size, width = len(list(alike)), count * group.piece
            here = weighed[:, start : start + size * width].view(k, size, width)
            basis, triangle = torch.linalg.qr(here.permute(1, 2, 0))  # s d m, s m k
            bases += basis.unbind()
            triangles.append(triangle.mT)  # as it lies in memory
            start += size * width
        by_piece = torch.cat(bases).view(-1, group.piece, bases[0].shape[1])  # c p m
        pieces = x.view(k + n, -1, group.piece)
        on_basis = owners @ torch.bmm(pieces.transpose(0, 1), by_piece).flatten(1)  # s (k+n)·m
        lengths = [rows.norm(dim=2) for rows in (pieces, sums[: 2 * k].view(2 * k, -1, group.piece))]
        eps = rounding_unit(parts[0][0].dtype)
        return WideSites(group, eps, shift, about, means, by_piece, (on_basis, *lengths, *triangles))

    def site_by_site(self, fetched: Iterator[Tensor], frame: Frame) -> tuple[Tensor, ...]:
        """What was fetched, of every site: T, the means and the residuals on Q, the squares of these, and those of the means."""
        k, m, owners = len(frame.counts), self.basis.shape[2], self.group.owners.T
        on_basis, own, others, *triangles = (next(fetched) for _ in self.narrow)
        on_basis = _filled(on_basis.view(owners.shape[1], -1, m), k, dim=2)
        triangle = _filled(torch.cat(triangles).mT, k, dim=1)
        norms, sizes = ((lengths.square_() @ owners).T for lengths in (own[k:], others))
        return triangle, on_basis[:, :k], on_basis[:, k:], norms, sizes.reshape(-1, 2, k)

    def by_piece(self, turns: Float64[Tensor, "s k k"]) -> Float64[Tensor, "c m m"]:
        """What turns the basis of every site into its directions, once for each of its pieces."""
        m = self.basis.shape[2]
        return turns[:, :m, :m].repeat_interleave(torch.tensor(self.group.pieces, device="cpu"), dim=0)

    def each(self, turns: Float64[Tensor, "c m m"]) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Of every site the shift, the means about it, the means, and the directions, as many as it has features or classes."""
        directions = torch.bmm(self.basis, turns).flatten(0, 1)
        for span in self.group.spans():
            yield self.shift[0, span], self.about[:, span], self.means[:, span], directions[span]


def side_by_side(sites: Sites, frame: Frame) -> list[WideSites]:
    """All sites, in as many groups as there is room for; the GPU is told of what they share by one copy."""
    groups, told = Group.all_of(sites, frame.task.classes), frame.told
    sent = moved([*told, *(group.owners for group in groups)], sites[0][0].device)
    there, owners = There(*sent[: len(told)]), sent[len(told) :]
    return [WideSites.read(group, sites, there, of) for group, of in zip(groups, owners, strict=True)]


def _divided(parts: Sequence[Shaped[Tensor, "_ d"]], cuts: Sequence[int]) -> Iterator[Shaped[Tensor, "_ d"]]:
    """Rows in pieces that end at all of these numbers: small batches of narrow sites were joined, those of wide ones not."""
    start = 0
    for part in (part for part in parts if len(part)):
        yield from part.tensor_split([cut - start for cut in cuts if start < cut < start + len(part)])
        start += len(part)


def _filled(part: Tensor, size: int, *, dim: int) -> Tensor:
    """A dimension filled up by zeros: of features fewer than the classes there are fewer directions."""
    if part.shape[dim] == size:
        return part
    missing = size - part.shape[dim]
    return pad(part, (0, 0, 0, missing) if dim == 1 else (0, missing))


def moved(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """All of them on another device, by one copy."""
    parts = torch.cat([tensor.flatten() for tensor in tensors]).to(device).split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]
