"""Rare classes: which are told apart, which are lost, and the least loss weights that change it.

What was found is read and said without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equisep.advice.rare.classes import rare_classes as rare_classes
    from equisep.advice.rare.records import Alternatives as Alternatives
    from equisep.advice.rare.records import Fate as Fate
    from equisep.advice.rare.records import RareAtEnergy as RareAtEnergy
    from equisep.advice.rare.records import RareClasses as RareClasses

_HOMES = {
    "Alternatives": "records",
    "Fate": "records",
    "RareAtEnergy": "records",
    "RareClasses": "records",
    "rare_classes": "classes",
}

__all__ = ["Alternatives", "Fate", "RareAtEnergy", "RareClasses", "rare_classes"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equisep.advice.rare' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"equisep.advice.rare.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
