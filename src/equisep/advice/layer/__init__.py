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

_HOMES = {
    "Candidate": "equisep.advice.layer.rank",
    "LayerAdvice": "equisep.advice.layer.records",
    "RankAdvice": "equisep.advice.layer.records",
    "choose_layer": "equisep.advice.layer.choose",
    "rank_models": "equisep.advice.layer.rank",
}

__all__ = ["Candidate", "LayerAdvice", "RankAdvice", "choose_layer", "rank_models"]

__getattr__, __dir__ = on_demand(__name__, _HOMES)
