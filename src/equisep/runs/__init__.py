"""Figures made real: plan, execute (here or on Ray), store, provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.runs.run import evidence_of as evidence_of
    from equisep.runs.run import run_figure as run_figure
    from equisep.runs.store import Store as Store

# loaded on first use (PEP 562), since a store is read, and a record redrawn, without torch
__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "run": "evidence_of run_figure",
        "store": "Store",
    },
)
