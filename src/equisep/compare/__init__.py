"""Things side by side: two profiles, many in groups of seeds, and a network beside the Layer-Peeled Model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.compare.difference import (
    Difference,
    LawDifference,
    ProfileDifference,
    Ratio,
    SettingDifference,
    SiteDifference,
)
from equisep.compare.groups import GroupSite, ManyProfiles, ProfileGroup, ProfileRow, compare_many
from equisep.compare.profiles import compare_laws, compare_profiles
from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.compare.geometry import NetworkComparison as NetworkComparison
    from equisep.compare.network import compare_geometry as compare_geometry
    from equisep.compare.network import compare_network as compare_network

__all__ = [
    "Difference",
    "GroupSite",
    "LawDifference",
    "ManyProfiles",
    "NetworkComparison",
    "ProfileDifference",
    "ProfileGroup",
    "ProfileRow",
    "Ratio",
    "SettingDifference",
    "SiteDifference",
    "compare_geometry",
    "compare_laws",
    "compare_many",
    "compare_network",
    "compare_profiles",
]

# loaded on first use (PEP 562): profiles are compared without torch
__getattr__, __dir__, _ = on_demand(
    __name__,
    {
        "geometry": "NetworkComparison",
        "network": "compare_geometry compare_network",
    },
    loaded=__all__,
)
