"""Features apart from their network: measured where they lie, and written there."""

from equisep.measuring.features.measure import measure_features
from equisep.measuring.features.write import write_features

__all__ = ["measure_features", "write_features"]
