"""The statistics of features by class: two mergeable states, ClassMoments and Projections, which together give D."""

from equisep.stats.buffer import FeatureBuffer, in_chunks
from equisep.stats.convention import PAPER, PHD20, Center, Convention, Normalization, Weighting
from equisep.stats.moments import ClassMoments, merge_all
from equisep.stats.projections import Projections, nearest_centers, project
from equisep.stats.subspace import ClassSubspace

__all__ = [
    "PAPER",
    "PHD20",
    "Center",
    "ClassMoments",
    "ClassSubspace",
    "Convention",
    "FeatureBuffer",
    "Normalization",
    "Projections",
    "Weighting",
    "in_chunks",
    "merge_all",
    "nearest_centers",
    "project",
]
