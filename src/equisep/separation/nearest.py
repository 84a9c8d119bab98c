"""Nearest points: argmin_k ‖z − c_k‖ of many rows, by float32 where that is enough to tell and by float64 where it is not.

Nearest class centers, and how often they are the own ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from equisep.separation.blocks import Block, blocks_of, exact_products
from equisep.separation.group_sums import as_float64
from equisep.separation.pairs.confusion import Confusion
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Bool, Float, Float64, Int, Shaped

SCREENED = 2**14  # numbers the points have in all, from which on the product is what costs, and half of it is saved
TILE_NUMBERS = 2**24  # distances held at once: 64 MiB in float32
LONGEST = 2**16  # coordinates up to which the bound below has its slack
UNIT32 = 2.0**-24  # the rounding unit of float32
ALIGNED = 16  # coordinates that a GPU multiplies by at once
SLACK = 2.05  # twice the bound, and 2.5 % for the bound's own rounding and for that of float64
ROOM = 2.0**-64, 2.0**64  # scales by which what float32 leaves of a number is as much as without one, to 2⁻⁸⁵ of 1
SQUARED = 1e-150, 1e150  # sizes between these have a square, and a scale


def nearest_centers(
    residuals: Float64[Tensor, "n r"], labels: Int[Tensor, " n"], *, subspace: ClassSubspace
) -> Int[Tensor, " n"]:
    """argmin_k ‖x − m_k‖ of every sample, among the classes that have samples.

    All m_k lie in the center plus the span of the directions, so distances differ only inside it: z are the sample's
    coordinates there and c_k the class's.
    """
    z = residuals + subspace.coordinates.index_select(0, labels)  # n r
    return nearest_points(z, subspace.coordinates, subspace.counts)


def nearest_points(
    z: Float64[Tensor, "n r"], points: Float64[Tensor, "k r"], counts: Int[Tensor, " k"]
) -> Int[Tensor, " n"]:
    """argmin_k ‖z − c_k‖ = argmin ‖c_k‖² − 2 z·c_k in float64, among the points of classes that have samples.

    Of many points, float32 is asked first: half the time. What it cannot tell for sure, float64 does.
    """
    return Points(points, counts).nearest(z)


class Points:
    """Points to be near to, made ready once for many rows: squared norms, and their float32 twins where these are asked first.

    On a GPU they stand beside −‖c_k‖²/2, and rows beside a 1, so that one product has all that is compared: z·c_k − ‖c_k‖²/2.
    """

    def __init__(
        self, points: Float64[Tensor, "k r"], counts: Int[Tensor, " k"], *, beside: bool | None = None
    ) -> None:
        absent, self.points, self.dim = counts == 0, points, points.shape[1]
        self.squares = points.square().sum(dim=1)  # k
        self.beside = points.is_cuda if beside is None else beside
        if self.beside:
            self.points = torch.nn.functional.pad(points, (0, 1 + (-1 - self.dim) % ALIGNED))  # a width that is quick
            self.points[:, self.dim] = (self.squares / -2).masked_fill_(absent, -torch.inf)
        self.absent = absent if not self.beside and bool(absent.any()) else None  # a GPU would be waited for
        self.scale = _scale(self.squares) if _worthwhile(points) and not self.beside else None
        self.short: tuple[Tensor, Tensor] | None = None
        if self.scale is not None:
            self.short = (points * self.scale).float(), (self.squares * self.scale**2).float()

    def nearest(self, z: Float64[Tensor, "n r"]) -> Int[Tensor, " n"]:
        """argmin_k ‖z − c_k‖ of every row."""
        return torch.cat([self._nearest(part) for part in self._tiles(z)])

    def nearest_to(self, residuals: Float64[Tensor, "n r"], y: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """The same of rows that are known by what they differ by from points y."""
        if not self.beside:
            return self.nearest(residuals + self.points.index_select(0, y))
        found = []
        for part, own in zip(residuals.split(self._rows), y.split(self._rows), strict=True):
            z = self.points.index_select(0, own)
            z[:, : self.dim] += part
            z[:, self.dim] = 1
            found.append(self._exactly(z))
        return torch.cat(found)

    def own(self, z: Float64[Tensor, "n r"], y: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
        """Whether the nearest point of every row is that of its own class y, which has samples: quicker than which one it is."""
        tiles = self._tiles(z)
        return torch.cat([self._own(*both) for both in zip(tiles, y.split(len(tiles[0])), strict=True)])

    def _tiles(self, z: Float64[Tensor, "n r"]) -> tuple[Float64[Tensor, "_ w"], ...]:
        """Rows in pieces whose distances fit, made ready for a product."""
        if self.beside:
            z = torch.nn.functional.pad(z, (0, self.points.shape[1] - self.dim), value=1.0)
            z[:, self.dim + 1 :] = 0
        tiles: tuple[Tensor, ...] = z.split(self._rows)
        return tiles

    @property
    def _rows(self) -> int:
        """So many at once that their distances fit."""
        return max(1, TILE_NUMBERS // max(1, len(self.points)))

    def _nearest(self, z: Float64[Tensor, "n r"]) -> Int[Tensor, " n"]:
        if self.short is None or self.scale is None or not exact_products():
            return self._exactly(z)
        near, enough = _screened(z, *self.short, self.absent, scale=self.scale)
        least, guesses = near.min(dim=1)
        second = near.scatter_(1, guesses.unsqueeze(1), torch.inf).amin(dim=1)
        unsure = (~(second.double() - least.double() > enough)).nonzero().flatten()
        if unsure.numel():
            guesses[unsure] = self._exactly(z[unsure])
        return guesses

    def _own(self, z: Float64[Tensor, "n r"], y: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
        if self.short is None or self.scale is None or not exact_products():
            return self._exactly(z) == y
        near, enough = _screened(z, *self.short, self.absent, scale=self.scale)
        mine = near.gather(1, y.unsqueeze(1)).squeeze(1)
        ahead = near.scatter_(1, y.unsqueeze(1), torch.inf).amin(dim=1).double() - mine.double()
        own = ahead > 0
        unsure = (~(ahead.abs() > enough)).nonzero().flatten()
        if unsure.numel():
            own[unsure] = self._exactly(z[unsure]) == y[unsure]
        return own

    def _exactly(self, z: Float64[Tensor, "n r"]) -> Int[Tensor, " n"]:
        if self.beside:
            return (z @ self.points.T).argmax(dim=1)
        return _distances(z, self.points, self.squares, self.absent).argmin(dim=1)


def _distances(z: Tensor, points: Tensor, squares: Tensor, absent: Bool[Tensor, " k"] | None) -> Tensor:
    """‖z − c_k‖² − ‖z‖², infinite where a class has no samples."""
    distances = torch.addmm(squares, z, points.T, alpha=-2)  # n k
    if absent is not None:
        distances[:, absent] = torch.inf
    return distances


def _worthwhile(points: Float64[Tensor, "k r"]) -> bool:
    """Whether float32 is asked first: on a CPU (a GPU would have to be waited for), and if its products are left whole."""
    return (
        points.device.type == "cpu" and points.numel() >= SCREENED and points.shape[1] <= LONGEST and exact_products()
    )


def _scale(squares: Float64[Tensor, " k"]) -> float | None:
    """A power of two by which no point is longer than 1; None where float32 has no room for the points."""
    size = float(squares.max().sqrt())
    if not SQUARED[0] < size < SQUARED[1]:
        return None
    return 2.0 ** -int(torch.frexp(torch.tensor(size, dtype=torch.float64)).exponent)


def _screened(
    z: Float64[Tensor, "n r"],
    points: Float[Tensor, "k r"],
    squares: Float[Tensor, " k"],
    absent: Bool[Tensor, " k"] | None,
    *,
    scale: float,
) -> tuple[Float[Tensor, "n k"], Float64[Tensor, " n"]]:
    """Scaled distances by float32, and by how much two must differ for float64 to have them in the same order.

    With ‖c_k‖ ≤ 1, u = 2⁻²⁴ and γ_m = mu / (1 − mu), a product summed in any order errs by at most γ_r Σ|z_j c_kj| ≤ γ_r ‖z‖
    (Higham 2002, § 3.1). With the rounding of z, of c_k and of ‖c_k‖², its addition, and numbers below float32's range,
    a distance errs by E ≤ γ_{r+8} (1 + 2‖z‖); that of float64 by 2⁻²⁸ of it. Two that differ by more than twice
    the sum of both are in the order in which float64 has them. Where float32 has no room for a row, its norm is infinite (beyond
    10¹⁹, before any distance is), E too, and nothing is sure.
    """
    # rounded, then scaled, is a quarter quicker; sizes far from 1 are scaled first, lest float32 has no room for them
    plain = ROOM[0] < scale < ROOM[1]
    short = z.float().mul_(scale) if plain else torch.mul(z, scale, out=torch.empty_like(z, dtype=torch.float32))
    reach = 1 + 2 * torch.linalg.vector_norm(short, dim=1).double()
    return _distances(short, points, squares, absent), SLACK * UNIT32 * (points.shape[1] + 8) * reach


@dataclass(frozen=True, slots=True)
class CenterCounts:
    """Rows per class whose nearest training center is their own; rows where the classifier disagrees with it (NC4).

    `confusion` counts the classes that rows are nearest to, where that was asked for.
    """

    hits: Int[Tensor, " k"]
    disagreements: int | None
    confusion: Confusion | None = None


@dataclass(slots=True)
class NearestCounts:
    """Nearest centers counted as rows come; the counts stay on the device, so that a GPU need not be waited for."""

    space: ClassSubspace
    layer: nn.Linear | None
    confused: bool
    hits: Int[Tensor, " k"] = field(init=False)
    disagreements: Int[Tensor, ""] = field(init=False)
    confusion: Confusion | None = field(init=False)
    points: Points | None = field(init=False, default=None)  # made ready with the first rows

    def __post_init__(self) -> None:
        self.hits = torch.zeros_like(self.space.counts)
        self.disagreements = self.hits.new_zeros(())
        self.confusion = Confusion(len(self.hits)) if self.confused else None

    def look(
        self,
        residuals: Float64[Tensor, "n r"],
        block: Block,
        y: Int[Tensor, " n"],
        guesses: Int[Tensor, " n"] | None = None,
    ) -> None:
        """Count rows by their residuals on the subspace, where its coordinates are: those of few rows are on the CPU.

        `guesses` are their nearest centers, where these are known.
        """
        home = self.space.coordinates.device
        residuals, y = residuals.to(home), y.to(home)
        if guesses is None:
            if self.points is None:
                self.points = Points(self.space.coordinates, self.space.counts)
            guesses = self.points.nearest_to(residuals, y)
        if self.confusion is not None:
            self.confusion.add(y, guesses)
        else:
            self.hits.index_add_(0, y, (guesses == y).to(self.hits.dtype))
        if self.layer is not None:
            scored = [_scores(self.layer, part.whole()).argmax(dim=1) for _, part in blocks_of(block.parts)]
            self.disagreements += (torch.cat(scored).to(guesses.device) != guesses).sum()

    def counts(self) -> CenterCounts:
        """What was counted."""
        hits = self.hits.cpu() if self.confusion is None else self.confusion.hits
        disagreements = None if self.layer is None else int(self.disagreements)
        return CenterCounts(hits, disagreements, self.confusion)


def _scores(layer: nn.Linear, features: Shaped[Tensor, "n d"]) -> Float64[Tensor, "n k"]:
    """Wh + b in float64: the bias belongs in it (NC4)."""
    h = as_float64(features)
    weight = layer.weight.detach().to(h.device, torch.float64)
    result = h @ weight.T
    return result if layer.bias is None else result + layer.bias.detach().to(h.device, torch.float64)
