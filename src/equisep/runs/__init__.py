"""Figures made real: plan, execute (here or on Ray), store, provenance."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equisep.runs.run import evidence_of as evidence_of
    from equisep.runs.run import run_figure as run_figure
    from equisep.runs.store import Store as Store

# name → module; loaded on first use (PEP 562), since a store is read, and a record redrawn, without torch
_HOMES = {"Store": "store", "evidence_of": "run", "run_figure": "run"}

__all__ = ["Store", "evidence_of", "run_figure"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equisep.runs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"equisep.runs.{_HOMES[name]}"), name)
