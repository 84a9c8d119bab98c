"""Pairs of class means: how far apart, which are nearest, and the cosines between them, by tiles of the K × K matrix."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from equisep.results import ClassCosines, ClassPair
from equisep.separation.group_sums import ClassCenters
from equisep.separation.pairs.confusion import MOST_PAIRS
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64, Int

TILE_ROWS = 256  # classes whose distances to all later ones are held at once
ALL_CLASSES = 100  # up to here a profile keeps the cosines of all pairs; beyond, the extremes
EPS64 = torch.finfo(torch.float64).eps


def squared_distances(points: Float64[Tensor, "k r"]) -> Iterator[tuple[slice, slice, Float64[Tensor, "b c"]]]:
    """‖c_i − c_j‖² of all pairs i < j, some rows i with all columns j from the first of them on; infinite where j ≤ i.

    By differences: of near points a product of them would keep few digits.
    """
    for rows, columns in _tiles(len(points)):
        tile = torch.cdist(points[rows], points[columns], compute_mode="donot_use_mm_for_euclid_dist").square_()
        yield rows, columns, tile.masked_fill_(_not_later(tile), torch.inf)


def squared_rounding(centers: ClassCenters) -> float:
    """The squared rounding of a class mean: means that are no further apart coincide."""
    return float(EPS64**2 * centers.n * centers.distances.max())


def _tiles(classes: int) -> Iterator[tuple[slice, slice]]:
    for start in range(0, classes, TILE_ROWS):
        yield slice(start, min(start + TILE_ROWS, classes)), slice(start, classes)


def _not_later(tile: Float64[Tensor, "b c"]) -> Tensor:
    """Where a pair is a class with itself, or has been seen the other way round."""
    return torch.ones_like(tile, dtype=torch.bool).tril_()


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
    for rows, columns in _tiles(count):
        tile = (unit[rows] @ unit[columns].T).clamp_(-1, 1)
        earlier = _not_later(tile)
        least.add(tile.masked_fill(earlier, torch.inf), rows, columns)
        greatest.add((-tile).masked_fill_(earlier, torch.inf), rows, columns)
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
