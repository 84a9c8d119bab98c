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

__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "history": "Entry Header History",
        "stopping": "Settled Stopping",
        "torchmetrics": "Separation",
        "tracker": "Tracker",
    },
)
