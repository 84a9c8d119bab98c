"""Frozen records of what was measured, and their JSON; numpy and the standard library only."""

from equisep.results.codec import load_profile, save_profile
from equisep.results.profile import Profile
from equisep.results.records import (
    Break,
    ClassifierReading,
    Coordinates,
    GrainChoice,
    Interval,
    LawFit,
    LawSummary,
    Note,
    SiteReading,
)

__all__ = [
    "Break",
    "ClassifierReading",
    "Coordinates",
    "GrainChoice",
    "Interval",
    "LawFit",
    "LawSummary",
    "Note",
    "Profile",
    "SiteReading",
    "load_profile",
    "save_profile",
]
