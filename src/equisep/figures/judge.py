"""Claims judged, in every reading in which their figure is: one verdict for each, and what they say together.

D depends on how samples are read, so a claim may hold in one reading and be contradicted in another: then it is a property of
the reading, not of the trained networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from equisep.figures.evidence import Evidence
from equisep.figures.figure import Claim, Figure
from equisep.figures.quantities import depends_on_reading
from equisep.figures.rules import FEW, LEVEL, check_claims, quantities_of
from equisep.figures.verdict import WORDS, Part, Verdict, Word, judge_claim

__all__ = [
    "FEW", "LEVEL", "STANDINGS", "WORDS", "ClaimVerdicts", "Part", "Standing", "Verdict", "judge", "judge_readings",
    "readings_of",
]  # fmt: skip

Standing = Literal["confirmed", "contradicted", "reading", "undecided", "untested"]
STANDINGS: tuple[Standing, ...] = ("confirmed", "contradicted", "reading", "undecided", "untested")
_STANDING: dict[Word, Standing] = {
    "held": "confirmed",
    "contradicted": "contradicted",
    "undecided": "undecided",
    "supported": "undecided",
    "against": "undecided",
    "not testable": "untested",
    "not run": "untested",
}


@dataclass(frozen=True, slots=True)
class ClaimVerdicts:
    """A claim with one verdict for each reading it is judged in, the paper's own reading first; else with one alone."""

    claim: Claim
    verdicts: tuple[Verdict, ...]

    @property
    def main(self) -> Verdict:
        """The verdict in the paper's reading, or in the first one after it that was run; else one that has a number."""
        run = [verdict for verdict in self.verdicts if verdict.verdict != "not run"]
        partly = [verdict for verdict in self.verdicts if verdict.ours is not None]
        return (*run, *partly, *self.verdicts)[0]

    @property
    def by_reading(self) -> dict[str, Verdict]:
        """The verdicts by reading; none where the claim is judged once."""
        return {verdict.reading: verdict for verdict in self.verdicts if verdict.reading}

    @property
    def standing(self) -> Standing:
        """`confirmed`, `contradicted`, `reading` (it holds in one and is contradicted in another), `undecided` or `untested`.

        What only other readings than the paper's contradict is undecided: it may be a property of them.
        """
        if {"held", "contradicted"} <= {verdict.verdict for verdict in self.verdicts}:
            return "reading"
        if self.main.verdict == "contradicted" and self.main is not self.verdicts[0]:
            return "undecided"
        return _STANDING[self.main.verdict]


def judge(evidence: Evidence) -> tuple[Verdict, ...]:
    """One verdict for each claim of the figure, in their order: `ClaimVerdicts.main`; see `judge_claim` for the rules."""
    return tuple(each.main for each in judge_readings(evidence))


def judge_readings(evidence: Evidence) -> tuple[ClaimVerdicts, ...]:
    """Every claim of the figure, judged in every reading that the figure names."""
    check_claims(evidence.figure)
    return tuple(_verdicts(evidence, claim) for claim in evidence.figure.claims)


def readings_of(figure: Figure, claim: Claim) -> Sequence[str]:
    """In which readings a claim is judged: none where it is not about features, or names its own."""
    return figure.readings if any(depends_on_reading(text) for text in quantities_of(claim)) else ()


def _verdicts(evidence: Evidence, claim: Claim) -> ClaimVerdicts:
    readings = readings_of(evidence.figure, claim)
    return ClaimVerdicts(claim, tuple(judge_claim(evidence, claim, reading) for reading in readings or ("",)))
