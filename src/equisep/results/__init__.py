"""Frozen records of what was measured, and their JSON; numpy and the standard library only."""

from equisep.results.codec import load_profile, save_profile
from equisep.results.finding import Confidence, Finding
from equisep.results.profile import Profile
from equisep.results.readings import READINGS, Reading, former_reading, reading_named
from equisep.results.records import (
    Break,
    ClassCosines,
    ClassifierReading,
    ClassPair,
    Coordinates,
    Corrected,
    GrainChoice,
    Interval,
    LawFit,
    LawSummary,
    Note,
    PopulationEstimate,
    SampleOrder,
    SiteReading,
    Verdict,
    law_verdict,
)

__all__ = [
    "READINGS",
    "Break",
    "ClassCosines",
    "ClassPair",
    "ClassifierReading",
    "Confidence",
    "Coordinates",
    "Corrected",
    "Finding",
    "GrainChoice",
    "Interval",
    "LawFit",
    "LawSummary",
    "Note",
    "PopulationEstimate",
    "Profile",
    "Reading",
    "SampleOrder",
    "SiteReading",
    "Verdict",
    "former_reading",
    "law_verdict",
    "load_profile",
    "reading_named",
    "save_profile",
]
