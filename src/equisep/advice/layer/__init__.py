"""Which layer's features for my labels, and which model's: probes, few shots and a certificate, from one pass.

What was found is said and drawn without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.advice.layer.choose import choose_layer as choose_layer
    from equisep.advice.layer.rank import Candidate as Candidate
    from equisep.advice.layer.rank import rank_models as rank_models
    from equisep.advice.layer.records import LayerAdvice as LayerAdvice
    from equisep.advice.layer.records import RankAdvice as RankAdvice

__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "choose": "choose_layer",
        "rank": "Candidate rank_models",
        "records": "LayerAdvice RankAdvice",
    },
)
