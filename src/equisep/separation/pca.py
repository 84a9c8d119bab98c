"""Principal components of one site's features: found from all of them and applied to any, and two of them for plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equisep.results import Coordinates
from equisep.separation.assignments import Assignments
from equisep.separation.blocks import column_blocks, with_float64
from equisep.shapes import Float64, Int, Shaped

EXACT_SIZE = 4096  # min(n, d) up to which all eigenvectors are computed
THINNED = 1024  # features of a site that a picture needs; of wider ones every so many are taken
DIGITS, EXACT_POWER, NEAR_TIE = 5, 22, 1e-6  # of points; the largest power of ten that a float64 holds; of a last digit
ROUNDS, SPARE = 12, 2  # of subspace iteration beyond it: rounds, and columns a component wanted


@dataclass(frozen=True, slots=True)
class Components:
    """A center and the orthonormal directions of greatest variance around it, as wide as the features."""

    center: Float64[Tensor, " d"]
    directions: Float64[Tensor, "d m"]

    @staticmethod
    def of(parts: list[Shaped[Tensor, "_ d"]], count: int) -> Components | None:
        """The `count` leading principal components of n features in pieces; None where there are no more features than that.

        With X the centered features, the leading eigenvectors u_j of X Xᵀ (n ≤ d) give v_j = Xᵀu_j/√λ_j; those of XᵀX
        (n > d) are the v_j themselves. Both products are float64 sums over blocks, so that beside the features only
        min(n, d)² numbers and the directions are held. Components of no variance (to rounding) are left out.
        """
        n, d = sum(len(part) for part in parts), parts[0].shape[1]
        if d <= count:
            return None
        wide = [with_float64(part) for part in parts]
        center = (
            sum((part.sum(dim=0, dtype=torch.float64) for part in wide), start=torch.zeros((), device=wide[0].device))
            / n
        )
        tall = n <= d
        values, vectors = _leading(_gram(wide, center) if tall else _scatter(wide, center), min(count, n, d))
        if not values[0] > 0:  # all features are equal
            return None
        kept = values > torch.finfo(torch.float64).eps * max(n, d) * values[0]
        values, vectors = values[kept], vectors[:, kept]
        directions = _carried(wide, center, vectors) / values.sqrt() if tall else vectors
        return Components(center, directions)

    def __call__(self, features: Shaped[Tensor, "b d"]) -> Shaped[Tensor, "b m"]:
        """Features on the components, in their own precision."""
        x = with_float64(features)
        found = x.new_zeros(len(x), self.directions.shape[1], dtype=torch.float64)
        for columns in column_blocks(x):
            found.addmm_(
                x[:, columns].to(torch.float64, copy=True).sub_(self.center[columns]), self.directions[columns]
            )
        return found.to(features.dtype if features.is_floating_point() else torch.float64)


def _centered(parts: list[Tensor], center: Tensor, columns: slice) -> Float64[Tensor, "n c"]:
    return torch.cat([part[:, columns] for part in parts]).to(torch.float64, copy=True).sub_(center[columns])


def _columns(parts: list[Tensor]) -> list[slice]:
    n = sum(len(part) for part in parts)
    return list(column_blocks(parts[0][:1].expand(n, -1)))


def _gram(parts: list[Tensor], center: Tensor) -> Float64[Tensor, "n n"]:
    n = sum(len(part) for part in parts)
    found = center.new_zeros(n, n)
    for columns in _columns(parts):
        x = _centered(parts, center, columns)
        found.addmm_(x, x.T)
    return found


def _scatter(parts: list[Tensor], center: Tensor) -> Float64[Tensor, "d d"]:
    found = center.new_zeros(len(center), len(center))
    for part in parts:
        x = part.to(torch.float64, copy=True).sub_(center)
        found.addmm_(x.T, x)
    return found


def _carried(parts: list[Tensor], center: Tensor, vectors: Float64[Tensor, "n m"]) -> Float64[Tensor, "d m"]:
    """Xᵀ times vectors, columns of X in blocks."""
    return torch.cat([_centered(parts, center, columns).T @ vectors for columns in _columns(parts)])


def _leading(matrix: Float64[Tensor, "s s"], count: int) -> tuple[Float64[Tensor, " m"], Float64[Tensor, "s m"]]:
    """The largest eigenvalues, and their vectors, of a symmetric matrix: all computed, or by subspace iteration."""
    size = len(matrix)
    if size <= EXACT_SIZE:
        values, vectors = torch.linalg.eigh(matrix)
    else:
        values, vectors = _iterated(lambda basis: matrix @ basis, size, min(size, SPARE * count + 10), matrix.device)
    return values.flip(0)[:count].clamp(min=0), vectors.flip(1)[:, :count]


def _iterated(
    apply: Callable[[Tensor], Tensor], size: int, columns: int, device: torch.device
) -> tuple[Float64[Tensor, " m"], Float64[Tensor, "s m"]]:
    generator = torch.Generator("cpu").manual_seed(0)
    basis = torch.randn(size, columns, generator=generator, device="cpu", dtype=torch.float64).to(device)
    for _ in range(ROUNDS):
        basis, _ = torch.linalg.qr(apply(basis))
    values, inner = torch.linalg.eigh(basis.T @ apply(basis))
    return values, basis @ inner


class Picture:
    """Some rows of a site on their first two principal components, chosen by number so that it matters not how they come.

    `points` and `labels` are zero for rows that were not seen: those of parts of the data add up.
    """

    def __init__(self, rows: int, *, dim: int, most: int, seed: int) -> None:
        count = min(most, rows) if most >= 3 and rows >= 3 else 0
        self.chosen = _drawn(rows, count, seed)
        self.step = -(-dim // THINNED)  # of wide rows 1024 evenly spaced features are kept
        self.seen = 0
        self.points = torch.zeros(count, -(-dim // self.step), dtype=torch.float64, device="cpu")  # m e
        self.labels = torch.zeros(count, dtype=torch.int64, device="cpu")
        self.found = torch.zeros_like(self.labels)  # how often a row came

    def take(self, parts: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """Some rows, by their numbers, or the next ones where they have none."""
        if not len(self.chosen):
            return
        numbers = torch.arange(self.seen, self.seen + len(rows), device="cpu")
        numbers = numbers if rows.numbers is None else rows.numbers.cpu()
        self.seen += len(rows)
        places = torch.searchsorted(self.chosen, numbers).clamp(max=len(self.chosen) - 1)
        mine = (self.chosen[places] == numbers).nonzero().flatten()
        self.found[places[mine]] += 1
        self.labels[places[mine]] = rows.labels[mine.to(rows.labels.device)].cpu()
        begin = 0
        for part in parts:
            here = mine[(mine >= begin) & (mine < begin + len(part))]
            if here.numel():
                chosen = part[:, :: self.step][(here - begin).to(part.device)]
                self.points[places[here]] = chosen.cpu().to(torch.float64)
            begin += len(part)

    def coordinates(self) -> Coordinates | None:
        """The rows on their plane, to five digits; None where there are fewer than three."""
        if not len(self.chosen):
            return None
        came = self.found == 1
        points = self.points[came]
        if not len(points):
            return None
        points -= points.mean(dim=0)
        total = float(points.square().sum()) or 1.0
        values, places = _two_leading(points)
        signs = places.gather(0, places.abs().argmax(dim=0, keepdim=True)).sign()
        return Coordinates(
            points=tuple(map(tuple, _to_five_digits((places * signs).numpy()).tolist())),
            labels=tuple(self.labels[came].tolist()),
            explained=(float(values[0]) / total, float(values[1]) / total),
        )


def _to_five_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What `float(f"{value:.5g}")` gives of each: a whole number of five digits over or times an exact power of ten.

    Numbers are scaled with a rounding of their own; those that it may have brought over a tie are written out.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        places = DIGITS - 1 - np.floor(np.log10(np.abs(values)))
        exact = np.abs(places) <= EXACT_POWER  # not of zero, nor of what is not finite
        power = 10.0 ** np.where(exact, np.abs(places), 0)
        scaled = np.where(places >= 0, values * power, values / power)
        whole = np.rint(scaled)
        rounded = np.where(places >= 0, whole / power, whole * power)
    doubtful = ~exact | (np.abs(np.abs(scaled - whole) - 0.5) < NEAR_TIE) | (np.abs(whole) < 10 ** (DIGITS - 1))
    for place in zip(*doubtful.nonzero(), strict=True):
        rounded[place] = float(f"{values[place]:.{DIGITS}g}")
    return rounded


def _drawn(rows: int, count: int, seed: int) -> Int[Tensor, " m"]:
    """Numbers of rows in order, drawn without return."""
    if not count:
        return torch.zeros(0, dtype=torch.int64, device="cpu")
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randperm(rows, generator=generator, device="cpu")[:count].sort().values


def _two_leading(points: Float64[Tensor, "m e"]) -> tuple[Float64[Tensor, " two"], Float64[Tensor, "m two"]]:
    """The two largest eigenvalues and the points along them, by the smaller of m×m and e×e: half the digits do here."""
    tall = len(points) > points.shape[1]
    values, vectors = torch.linalg.eigh(points.T @ points if tall else points @ points.T)
    values, vectors = values.flip(0)[:2].clamp(min=0), vectors.flip(1)[:, :2]
    if len(values) < 2:  # a single feature
        values, vectors = (
            torch.cat([values, values.new_zeros(1)]),
            torch.cat([vectors, torch.zeros_like(vectors)], dim=1),
        )
    return values, points @ vectors if tall else vectors * values.sqrt()
