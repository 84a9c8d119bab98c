"""How far classes are separated: the statistics of labeled vectors, and the numbers made from them."""

from equisep.separation.assignments import Marks
from equisep.separation.buffer import FeatureBuffer, in_chunks
from equisep.separation.centers import cdnv, effective_depth, ncc_accuracy
from equisep.separation.collapse import Geometry, geometry_of
from equisep.separation.convention import PAPER, PHD20, Center, Convention, Normalization, Weighting
from equisep.separation.fuzziness import class_fuzziness, fuzziness
from equisep.separation.group_sums import GroupSums
from equisep.separation.moments import ClassMoments, merge_all
from equisep.separation.projections import Projections, nearest_centers, project
from equisep.separation.relabeled import Lenses
from equisep.separation.subspace import ClassSubspace

__all__ = [
    "PAPER",
    "PHD20",
    "Center",
    "ClassMoments",
    "ClassSubspace",
    "Convention",
    "FeatureBuffer",
    "Geometry",
    "GroupSums",
    "Lenses",
    "Marks",
    "Normalization",
    "Projections",
    "Weighting",
    "cdnv",
    "class_fuzziness",
    "effective_depth",
    "fuzziness",
    "geometry_of",
    "in_chunks",
    "merge_all",
    "ncc_accuracy",
    "nearest_centers",
    "project",
]
