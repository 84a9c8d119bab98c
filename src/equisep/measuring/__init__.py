"""From a model and its data to a profile: reading, statistics, metrics and the law joined in one call."""

from equisep.measuring.features import measure_features, write_features
from equisep.measuring.measure import measure
from equisep.measuring.request import METRICS, Options
from equisep.measuring.sample_size import corrected_fuzziness, subsamples

__all__ = ["METRICS", "Options", "corrected_fuzziness", "measure", "measure_features", "subsamples", "write_features"]
