"""A shorter network: cut after a layer, with a head in closed form, saved as a graph; or the sentence that none will do.

The answer is read and shown without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.advice.cut.answer import CutAnswer as CutAnswer
    from equisep.advice.cut.answer import CutOption as CutOption
    from equisep.advice.cut.cut import Cut as Cut
    from equisep.advice.cut.cut import cut_model as cut_model
    from equisep.advice.cut.heads import EarlyExit as EarlyExit
    from equisep.advice.cut.heads import early_exit as early_exit

__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "answer": "CutAnswer CutOption",
        "cut": "Cut cut_model",
        "heads": "EarlyExit early_exit",
    },
)
