"""From statistics to numbers, one idea a file; the plain functions take tensors or arrays."""

from equisep.metrics.centers import cdnv, effective_depth, ncc_accuracy
from equisep.metrics.collapse import Geometry, geometry_of
from equisep.metrics.fuzziness import class_fuzziness, fuzziness

__all__ = ["Geometry", "cdnv", "class_fuzziness", "effective_depth", "fuzziness", "geometry_of", "ncc_accuracy"]
