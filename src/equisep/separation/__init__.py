"""How far classes are separated: the statistics of labeled vectors in two mergeable passes, and the numbers made from them."""

from equisep.separation.assignments import Assignments
from equisep.separation.centers import cdnv, ncc_accuracy
from equisep.separation.collapse import Geometry, geometry_of
from equisep.separation.convention import PAPER, PHD20, Center, Convention, Normalization, Weighting
from equisep.separation.fuzziness import class_fuzziness, fuzziness
from equisep.separation.group_sums import ClassCenters, GroupSums
from equisep.separation.nearest import nearest_centers
from equisep.separation.relabeled import Relabelings
from equisep.separation.site import Sampled, SiteStatistics, SiteTask, Spread, TestSite, TestStatistics, TrainSite
from equisep.separation.subspace import ClassSubspace, Projections

__all__ = [
    "PAPER",
    "PHD20",
    "Assignments",
    "Center",
    "ClassCenters",
    "ClassSubspace",
    "Convention",
    "Geometry",
    "GroupSums",
    "Normalization",
    "Projections",
    "Relabelings",
    "Sampled",
    "SiteStatistics",
    "SiteTask",
    "Spread",
    "TestSite",
    "TestStatistics",
    "TrainSite",
    "Weighting",
    "cdnv",
    "class_fuzziness",
    "fuzziness",
    "geometry_of",
    "ncc_accuracy",
    "nearest_centers",
]
