"""A shorter network: cut after a layer, with a head in closed form, saved as a graph; or the sentence that none will do.

The answer is read and shown without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equisep.advice.cut.answer import CutAnswer as CutAnswer
    from equisep.advice.cut.answer import CutOption as CutOption
    from equisep.advice.cut.cut import Cut as Cut
    from equisep.advice.cut.cut import cut_model as cut_model
    from equisep.advice.cut.exit import EarlyExit as EarlyExit
    from equisep.advice.cut.exit import early_exit as early_exit

_HOMES = {
    "Cut": "equisep.advice.cut.cut",
    "CutAnswer": "equisep.advice.cut.answer",
    "CutOption": "equisep.advice.cut.answer",
    "EarlyExit": "equisep.advice.cut.exit",
    "early_exit": "equisep.advice.cut.exit",
    "cut_model": "equisep.advice.cut.cut",
}

__all__ = ["Cut", "CutAnswer", "CutOption", "EarlyExit", "cut_model", "early_exit"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equisep.advice.cut' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
