"""The same numbers while any loop trains: a tracker, its history, when a training has settled, and a metric.

A history is read, drawn and judged without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.tracking.history import Entry as Entry
    from equisep.tracking.history import Header as Header
    from equisep.tracking.history import History as History
    from equisep.tracking.stopping import Settled as Settled
    from equisep.tracking.stopping import Stopping as Stopping
    from equisep.tracking.torchmetrics import Separation as Separation
    from equisep.tracking.tracker import Tracker as Tracker

_HOMES = {
    "Entry": "equisep.tracking.history",
    "Header": "equisep.tracking.history",
    "History": "equisep.tracking.history",
    "Separation": "equisep.tracking.torchmetrics",
    "Settled": "equisep.tracking.stopping",
    "Stopping": "equisep.tracking.stopping",
    "Tracker": "equisep.tracking.tracker",
}

__all__ = ["Entry", "Header", "History", "Separation", "Settled", "Stopping", "Tracker"]

__getattr__, __dir__ = on_demand(__name__, _HOMES)
