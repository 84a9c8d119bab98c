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

__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "classes": "rare_classes",
        "records": "Alternatives Fate RareAtEnergy RareClasses",
    },
)
