"""Pairs of class means: how far apart, which are nearest, and the cosines between them, by tiles of the K × K matrix."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import torch
from torch import Tensor

from equisep.results import ClassCosines, ClassPair
from equisep.separation.group_sums import ClassCenters
from equisep.separation.pairs.confusion import MOST_PAIRS
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64, Int

TILE_ROWS, TILE_NUMBERS = 256, 2**22  # classes whose distances to others are held at once, and distances
GPU_ROWS, GPU_NUMBERS = 4096, 2**24  # … on a GPU, which wants few and large tiles
FEW_CLASSES = 128  # up to here distances are taken by differences, which costs little
NEAR = 1 / 16  # of the squared norms of both: points no nearer keep their digits in a product
MANY_NEAR = 1 / 16  # of a tile: where more pairs are near, all are taken by differences
ALL_CLASSES = 100  # up to here a profile keeps the cosines of all pairs; beyond, the extremes
EPS64 = torch.finfo(torch.float64).eps


def squared_distances(points: Float64[Tensor, "k r"]) -> Iterator[tuple[slice, slice, Float64[Tensor, "b c"]]]:
    """‖c_i − c_j‖² of all pairs i < j, some rows i with some columns j from the first of them on; infinite where j ≤ i.

    By differences; of many points by a product, ‖c_i‖² + ‖c_j‖² − 2 c_i·c_j, which errs by at most γ_{r+3} (‖c_i‖ + ‖c_j‖)²
    (Higham 2002, § 3.1), 2⁻⁵³·32 (r + 3) of a distance that is no smaller than 1/16 of ‖c_i‖² + ‖c_j‖²: twelve digits and more.
    Of nearer points it would keep fewer: these are taken by differences.
    """
    about = points - points.mean(dim=0) if len(points) > FEW_CLASSES else None
    squares = None if about is None else about.square().sum(dim=1)
    for rows, columns in _tiles(len(points), points.device):
        tile = (
            _by_differences(points[rows], points[columns])
            if about is None or squares is None
            else _by_products(points, about, squares, rows, columns)
        )
        yield rows, columns, _later(tile, rows, columns, torch.inf)


def _by_differences(a: Float64[Tensor, "b r"], c: Float64[Tensor, "c r"]) -> Float64[Tensor, "b c"]:
    return torch.cdist(a, c, compute_mode="donot_use_mm_for_euclid_dist").square_()


def _by_products(
    points: Float64[Tensor, "k r"],
    about: Float64[Tensor, "k r"],
    squares: Float64[Tensor, " k"],
    rows: slice,
    columns: slice,
) -> Float64[Tensor, "b c"]:
    """Of points about their mean, which makes the products small; near pairs by the points themselves."""
    sizes = squares[rows].unsqueeze(1) + squares[columns]  # b c
    tile = torch.addmm(sizes, about[rows], about[columns].T, alpha=-2)
    near = (tile < sizes.mul_(NEAR)).nonzero()
    if len(near) > MANY_NEAR * tile.numel():
        return _by_differences(points[rows], points[columns])
    for part in near.split(max(1, TILE_NUMBERS // max(1, points.shape[1]))):
        i, j = part.unbind(dim=1)
        tile[i, j] = (points[rows][i] - points[columns][j]).square_().sum(dim=1)
    return tile


def squared_rounding(centers: ClassCenters) -> float:
    """The squared rounding of a class mean: means that are no further apart coincide."""
    return float(EPS64**2 * centers.n * centers.distances.max())


def _tiles(classes: int, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Rows, and of the columns from the first of them on so many at once that their tile has room."""
    size, numbers = (TILE_ROWS, TILE_NUMBERS) if device.type == "cpu" else (GPU_ROWS, GPU_NUMBERS)
    size = max(1, min(size, isqrt(numbers)))
    width = numbers // size
    for start in range(0, classes, size):
        rows = slice(start, min(start + size, classes))
        yield from ((rows, slice(begin, min(begin + width, classes))) for begin in range(start, classes, width))


def _later(tile: Float64[Tensor, "b c"], rows: slice, columns: slice, value: float) -> Float64[Tensor, "b c"]:
    """The tile with `value` where a pair is a class with itself, or has been seen the other way round."""
    if columns.start >= rows.stop:
        return tile
    return tile.masked_fill_(torch.ones_like(tile, dtype=torch.bool).tril_(rows.start - columns.start), value)


def nearest_pairs(subspace: ClassSubspace, *, most: int = MOST_PAIRS) -> tuple[ClassPair, ...]:
    """The pairs of classes whose means are nearest, with ‖m_i − m_j‖, nearest first; of classes that have samples."""
    present = subspace.counts.nonzero().flatten()
    best = _Least(most)
    for rows, columns, squared in squared_distances(subspace.coordinates[present]):
        best.add(squared, rows, columns)
    return tuple(ClassPair(i, j, value**0.5) for i, j, value in best.pairs(present))


def cosines_of(subspace: ClassSubspace, *, most: int = MOST_PAIRS) -> ClassCosines | None:
    """Cosines between the class means, centered on the mean of class means: of all pairs up to 100 classes, else the extremes.

    A class has none without samples, or where its mean is the common mean (to rounding); None where fewer than two have any.
    """
    present = subspace.counts.nonzero().flatten()
    points = subspace.coordinates[present]
    points = points - points.mean(dim=0)
    norms = points.norm(dim=1)
    known = norms > len(points) * EPS64 * norms.max()
    unit, classes = points[known] / norms[known].unsqueeze(1), present[known]
    count = len(classes)
    if count < 2:
        return None
    # ‖Σu‖² = K + the cosines of all ordered pairs
    mean = max(-1.0, (float(unit.sum(dim=0).square().sum()) - count) / (count * (count - 1)))
    if len(subspace.counts) <= ALL_CLASSES:
        return ClassCosines(mean=mean, rows=_rows((unit @ unit.T).clamp(-1, 1), classes, len(subspace.counts)))
    least, greatest = _Least(most), _Least(most)
    for rows, columns in _tiles(count, unit.device):
        tile = (unit[rows] @ unit[columns].T).clamp_(-1, 1)
        greatest.add(_later(-tile, rows, columns, torch.inf), rows, columns)
        least.add(_later(tile, rows, columns, torch.inf), rows, columns)
    return ClassCosines(
        mean=mean,
        least=tuple(ClassPair(i, j, value) for i, j, value in least.pairs(classes)),
        greatest=tuple(ClassPair(i, j, -value) for i, j, value in greatest.pairs(classes)),
    )


def _rows(
    cosines: Float64[Tensor, "p p"], classes: Int[Tensor, " p"], total: int
) -> tuple[tuple[float | None, ...], ...]:
    """The cosines of class i + 1 with the classes before it; None for a class that has none."""
    at = {k: index for index, k in enumerate(classes.tolist())}
    values = cosines.tolist()
    return tuple(
        tuple(values[at[i]][at[j]] if i in at and j in at else None for j in range(i)) for i in range(1, total)
    )


class _Least:
    """The least values of a matrix that comes in tiles, and where they stand."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: list[tuple[float, int, int]] = []

    def add(self, tile: Float64[Tensor, "b c"], rows: slice, columns: slice) -> None:
        values, at = tile.flatten().topk(min(self.most, tile.numel()), largest=False)
        width = tile.shape[1]
        new = zip(values.tolist(), at.tolist(), strict=True)
        found = [(value, rows.start + p // width, columns.start + p % width) for value, p in new if value < torch.inf]
        self.kept = sorted(self.kept + found)[: self.most]

    def pairs(self, classes: Int[Tensor, " p"]) -> list[tuple[int, int, float]]:
        """Both classes by their own numbers, and the value."""
        names = classes.tolist()
        return [(names[i], names[j], value) for value, i, j in self.kept]
