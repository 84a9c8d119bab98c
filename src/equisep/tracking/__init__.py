"""The same numbers while any loop trains: a tracker, its history, when a training has settled, and a metric.

A history is read, drawn and judged without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equisep.tracking' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
