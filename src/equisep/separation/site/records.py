"""What is asked of one site, and what two passes over its features found there."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from equisep.results import Coordinates, PopulationEstimate
from equisep.separation.convention import PAPER, Convention
from equisep.separation.group_sums import ClassCenters
from equisep.separation.nearest import CenterCounts
from equisep.separation.noise.mean_noise import FoldNoise
from equisep.separation.pairs.directional import AxisSums
from equisep.separation.subspace import COMPUTED, ClassSubspace, Projections

ROUNDINGS = 16  # steps of float64 by which a mean may be off


@dataclass(frozen=True, slots=True)
class SiteTask:
    """What is asked of one site.

    `collapse` asks for PHD20's weighting beside, `confusion` for who is taken for whom by nearest centers, `directional` for
    the spread along the lines between class means; `layer` is the classifier that reads the site. `steps` is how often its
    numbers were rounded; `offset` the squared norm of what was taken off all rows before, as centered components are;
    `pictured` how many rows are to be shown on a plane; `precision` that of the products, which float32 halves.
    """

    classes: int
    convention: Convention = PAPER
    folds: int = 0
    relabelings: int = 0
    collapse: bool = False
    centers: bool = True
    confusion: bool = False
    directional: bool = False
    layer: nn.Linear | None = None
    steps: float = COMPUTED
    offset: float = 0.0
    pictured: int = 0
    seed: int = 0
    precision: str = "float64"


@dataclass(frozen=True, slots=True)
class Spread:
    """Class means, their subspace and the within-class spread along it: all that D needs."""

    centers: ClassCenters
    subspace: ClassSubspace
    projections: Projections

    def drift(self) -> float:
        """How far class means moved between two readings, beyond the rounding of the means."""
        size = float(self.centers.means.norm())
        return self.projections.drift(rounding=ROUNDINGS * torch.finfo(torch.float64).eps * size)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A spread, and what the samples it is of say about its noise.

    `chance` is D under random labels, `replicates` D without each fold (or of resamples), `noise` what folds show of the
    noise of class means, `population` what it leaves of D, once `estimated` has said so for all sites.
    """

    spread: Spread
    chance: float | None = None
    replicates: tuple[float, ...] | None = None
    noise: FoldNoise | None = None
    population: PopulationEstimate | None = None


@dataclass(frozen=True, slots=True)
class SiteStatistics(Sampled):
    """What two passes over the training data found at one site.

    `axes` is the spread along the lines between class means, `collapse` that under PHD20's convention, `coordinates` are for
    plots.
    """

    nearest: CenterCounts | None = None
    axes: AxisSums | None = None
    collapse: Spread | None = None
    coordinates: Coordinates | None = None


@dataclass(frozen=True, slots=True)
class TestStatistics(Sampled):
    """The test data at one site: their own spread, and nearest *training* centers."""

    __test__ = False  # no test case, whatever pytest makes of the name

    nearest: CenterCounts = field(kw_only=True)
