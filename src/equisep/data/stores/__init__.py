"""Features that lie in files, local or by URL: what they hold, and their batches in order."""

from equisep.data.stores.batches import StoredBatches
from equisep.data.stores.layout import StoredFeatures, StoredSplit, held_features, open_features
from equisep.data.stores.write import FeatureWriter

__all__ = ["FeatureWriter", "StoredBatches", "StoredFeatures", "StoredSplit", "held_features", "open_features"]
