"""Which depth: networks of several depths trained on the same data, compared over seeds, and one of them recommended or none.

What was found is read, said and drawn without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.advice.depth.choice import choose_depth as choose_depth
    from equisep.advice.depth.choice import minimal_ncc_depth as minimal_ncc_depth
    from equisep.advice.depth.generalization_bound import Balancedness as Balancedness
    from equisep.advice.depth.generalization_bound import ComparativeEstimate as ComparativeEstimate
    from equisep.advice.depth.generalization_bound import balancedness as balancedness
    from equisep.advice.depth.generalization_bound import class_share_distance as class_share_distance
    from equisep.advice.depth.generalization_bound import comparative_bound as comparative_bound
    from equisep.advice.depth.recommend import recommend_depth as recommend_depth
    from equisep.advice.depth.records import DepthAdvice as DepthAdvice
    from equisep.advice.depth.records import DepthSettings as DepthSettings
    from equisep.advice.depth.records import MinimalNccDepth as MinimalNccDepth
    from equisep.advice.depth.records import Trial as Trial

_HOMES = {
    "Balancedness": "equisep.advice.depth.generalization_bound",
    "ComparativeEstimate": "equisep.advice.depth.generalization_bound",
    "DepthAdvice": "equisep.advice.depth.records",
    "DepthSettings": "equisep.advice.depth.records",
    "MinimalNccDepth": "equisep.advice.depth.records",
    "Trial": "equisep.advice.depth.records",
    "balancedness": "equisep.advice.depth.generalization_bound",
    "choose_depth": "equisep.advice.depth.choice",
    "class_share_distance": "equisep.advice.depth.generalization_bound",
    "comparative_bound": "equisep.advice.depth.generalization_bound",
    "minimal_ncc_depth": "equisep.advice.depth.choice",
    "recommend_depth": "equisep.advice.depth.recommend",
}

__all__ = [
    "Balancedness",
    "ComparativeEstimate",
    "DepthAdvice",
    "DepthSettings",
    "MinimalNccDepth",
    "Trial",
    "balancedness",
    "choose_depth",
    "class_share_distance",
    "comparative_bound",
    "minimal_ncc_depth",
    "recommend_depth",
]

__getattr__, __dir__ = on_demand(__name__, _HOMES)
