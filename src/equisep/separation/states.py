"""What is known of one site when all data have been read, whether its features were kept or read twice."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equisep.results import Coordinates
from equisep.separation.blocks import Block
from equisep.separation.convention import PHD20, Convention
from equisep.separation.moments import ClassMoments, as_float64
from equisep.separation.projections import Projections, nearest_centers
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64, Int, Shaped

ROUNDINGS = 16  # steps of float64 by which a mean may be off


@dataclass(frozen=True, slots=True)
class Spread:
    """Moments, class-mean subspace and the within-class spread along it: all that D needs."""

    moments: ClassMoments
    subspace: ClassSubspace
    projections: Projections

    def drift(self) -> float:
        """How far class means moved between two readings, beyond the rounding of the means."""
        size = float(self.moments.means.norm())
        return self.projections.drift(rounding=ROUNDINGS * torch.finfo(torch.float64).eps * size)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The test data at one site: their own spread; nearest *training* centers hit; classifier disagreements."""

    spread: Spread
    hits: int
    disagreements: int | None


@dataclass(frozen=True, slots=True)
class SiteStates:
    """All statistics of one site; `collapse` is the spread under PHD20's convention."""

    train: Spread
    collapse: Spread | None = None
    null: float | None = None
    hits: int | None = None
    disagreements: int | None = None
    test: HeldOut | None = None
    replicates: Float64[Tensor, " m"] | None = None
    drift: float = 0.0
    coordinates: Coordinates | None = None


def same_for_collapse(counts: Int[Tensor, " k"], convention: Convention) -> bool:
    """Whether D and NC1 see the same matrices: equal class sizes make all weightings one."""
    present = counts[counts > 0]
    balanced = bool((present == present[0]).all())
    plain = convention.center is None and convention.normalization == "none" and convention.tol is None
    return plain and (balanced or convention.weighting == PHD20.weighting)


def scores(layer: nn.Linear, features: Shaped[Tensor, "n d"]) -> Float64[Tensor, "n k"]:
    """Wh + b in float64: the bias belongs in it (NC4)."""
    h = as_float64(features)
    weight = layer.weight.detach().to(h.device, torch.float64)
    result = h @ weight.T
    return result if layer.bias is None else result + layer.bias.detach().to(h.device, torch.float64)


def center_counts(
    residuals: Float64[Tensor, "n r"],
    block: Block,
    y: Int[Tensor, " n"],
    subspace: ClassSubspace,
    layer: nn.Linear | None,
) -> tuple[Int[Tensor, ""], Int[Tensor, ""]]:
    """Samples whose nearest training center is their label; samples where the classifier disagrees with it (NC4).

    They stay on the device, so that a GPU need not be waited for.
    """
    guesses = nearest_centers(residuals, y, subspace=subspace)
    hits = (guesses == y.to(guesses.device)).sum()
    if layer is None:
        return hits, torch.zeros_like(hits)
    return hits, (scores(layer, block.whole()).argmax(dim=1) != guesses).sum()
