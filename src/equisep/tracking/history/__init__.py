"""The readings of one training, in memory and in a file of JSON lines."""

from equisep.tracking.history.history import History
from equisep.tracking.history.records import Entry, Header, Unit

__all__ = ["Entry", "Header", "History", "Unit"]
