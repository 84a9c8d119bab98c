"""Which sentence stands first: the one that changes a decision most; what each code weighs, and how many are said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from equisep.results.finding import Confidence, Finding

MOST = 7  # sentences

# Read from the top: would it make the sentences below it moot? Labels that belong to other inputs make everything moot; an
# unfinished network all that is said of depth; one whose answers are at chance has none to judge; lost classes are a loss to be
# undone today; too few samples leave open what all others say; a network that memorizes wants other labels, more samples or less
# training before it wants a new head; then what to do about the shape of the network; then what is.
WEIGHTS: Mapping[str, int] = {
    "nothing-measured": 100,
    "labels-unrelated": 95,
    "unfitted": 90,
    "head-at-chance": 88,
    "lost-classes": 85,
    "too-few-samples": 80,
    "memorizing": 75,
    "head-worse": 70,
    "law-by-block": 60,
    "too-deep": 50,
    "no-law": 45,
    "every-layer-works": 40,
    "idle-layers": 39,
    "settled": 38,
    "still-improving": 38,
    "cut": 36,
    "no-cut": 36,
    "work": 34,
    "law": 30,
    "near-law": 30,
    "test-gain": 26,
    "hardest-class": 24,
    "rare-geometry": 22,
    "collapse": 16,
    "no-collapse": 16,
    "not-measured": 10,
}


SAID_BY: Mapping[str, str] = {"no-cut": "every-layer-works"}  # what another sentence says already


def new_finding(
    code: str,
    text: str,
    *,
    rule: str,
    confidence: Confidence = "sure",
    numbers: Mapping[str, float | None] | None = None,
    next: str | None = None,
    site: str | None = None,
    classes: Iterable[int] = (),
) -> Finding:
    """A finding with the weight of its code."""
    return Finding(code, text, confidence, rule, WEIGHTS[code], dict(numbers or {}), next, site, tuple(classes))


def ranked(findings: Iterable[Finding], *, most: int = MOST) -> tuple[Finding, ...]:
    """The weightiest first; those of one weight in the order of their rules. What was not measured is never cut off."""
    ordered = sorted(findings, key=lambda finding: -finding.weight)
    codes = {finding.code for finding in ordered}
    ordered = [finding for finding in ordered if SAID_BY.get(finding.code) not in codes]
    if len(ordered) > most and ordered[-1].code == "not-measured":
        return (*ordered[: most - 1], ordered[-1])
    return tuple(ordered[:most])
