"""The statistics of features by class: two mergeable states, ClassMoments and Projections, which together give D."""

from equisep.stats.buffer import FeatureBuffer, in_chunks
from equisep.stats.convention import PAPER, PHD20, Center, Convention, Normalization, Weighting
from equisep.stats.lenses import Lenses
from equisep.stats.marks import Marks
from equisep.stats.moments import ClassMoments, merge_all
from equisep.stats.projections import Projections, nearest_centers, project
from equisep.stats.subspace import ClassSubspace
from equisep.stats.sums import GroupSums

__all__ = [
    "PAPER",
    "PHD20",
    "Center",
    "ClassMoments",
    "ClassSubspace",
    "Convention",
    "FeatureBuffer",
    "GroupSums",
    "Lenses",
    "Marks",
    "Normalization",
    "Projections",
    "Weighting",
    "in_chunks",
    "merge_all",
    "nearest_centers",
    "project",
]
