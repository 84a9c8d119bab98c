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

__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "choice": "choose_depth minimal_ncc_depth",
        "generalization_bound": "Balancedness ComparativeEstimate balancedness class_share_distance comparative_bound",
        "recommend": "recommend_depth",
        "records": "DepthAdvice DepthSettings MinimalNccDepth Trial",
    },
)
