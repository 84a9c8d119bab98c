"""Which classes are a minority, and how near to each other their vectors stand: 1 is minority collapse (Fang et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equisep.display import brief
from equisep.shapes import Bool, Float64, Int

HALF = "at most half of the largest size"  # what counts as minority where none is named


def small_classes(sizes: Sequence[int] | Int[np.ndarray, " k"]) -> Bool[np.ndarray, " k"]:
    """The classes of at most half the largest size."""
    counts = np.asarray(sizes)
    return np.asarray(2 * counts <= counts.max())


@brief
@dataclass(frozen=True, slots=True)
class Cosines:
    """Mean cosines between vectors of different classes: both minority, both majority, one of each.

    `None` where there is no such pair, or where its vectors are zero and have no direction.
    """

    minority: float | None
    majority: float | None
    between: float | None


def measured_cosines(vectors: Float64[np.ndarray, "k p"], small: Bool[np.ndarray, " k"]) -> Cosines:
    """Means over pairs, without the K×K matrix: Σ_{k≠j} cos = ‖Σ u_k‖² − n for unit vectors u_k."""
    norms = np.linalg.norm(vectors, axis=1)
    directed = norms > 0  # NaN is not
    sums, counts = [], []
    for chosen in (small & directed, ~small & directed):
        sums.append((vectors[chosen] / norms[chosen, None]).sum(axis=0))
        counts.append(int(chosen.sum()))
    within = [float((one @ one - n) / (n * (n - 1))) if n > 1 else None for one, n in zip(sums, counts, strict=True)]
    pairs = counts[0] * counts[1]
    return Cosines(within[0], within[1], float(sums[0] @ sums[1] / pairs) if pairs else None)
