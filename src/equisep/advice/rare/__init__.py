"""Rare classes: which are told apart, which are lost, and the least loss weights that change it.

What was found is read and said without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.advice.rare.classes import rare_classes as rare_classes
    from equisep.advice.rare.records import Alternatives as Alternatives
    from equisep.advice.rare.records import Fate as Fate
    from equisep.advice.rare.records import RareAtEnergy as RareAtEnergy
    from equisep.advice.rare.records import RareClasses as RareClasses

_HOMES = {
    "Alternatives": "equisep.advice.rare.records",
    "Fate": "equisep.advice.rare.records",
    "RareAtEnergy": "equisep.advice.rare.records",
    "RareClasses": "equisep.advice.rare.records",
    "rare_classes": "equisep.advice.rare.classes",
}

__all__ = ["Alternatives", "Fate", "RareAtEnergy", "RareClasses", "rare_classes"]

__getattr__, __dir__ = on_demand(__name__, _HOMES)
