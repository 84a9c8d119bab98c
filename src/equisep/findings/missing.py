"""What a profile cannot answer because it was not measured, and the command that measures it.

Rule: a question whose numbers are all absent is named once, in one sentence, with the call that brings them. `nothing-measured`
where there is neither D nor nearest-center accuracy, or fewer than three layers for a law.

Limits: it speaks of this profile; other files may know more.
Tested by: `tests/findings/test_findings_missing.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from equisep.findings.facts import Facts, known
from equisep.findings.ranking import made
from equisep.results.finding import Finding
from equisep.results.records import LEAST_SITES


def missing(facts: Facts) -> Iterator[Finding]:
    """`nothing-measured` or `not-measured`."""
    curve = [site for site in facts.sites if known(site.fuzziness) is not None]
    centers = [site for site in facts.sites if known(site.ncc_train) is not None]
    if not curve and not centers:
        yield made(
            "nothing-measured",
            f"The profile holds neither D nor nearest-center accuracy at any of its {len(facts.sites)} sites, so it "
            "answers nothing.",
            rule="missing",
            confidence="cannot be said",
            numbers={"sites": len(facts.sites)},
            next=facts.measured_again(arguments="test"),
        )
        return
    parts = []
    if not facts.n_test:
        parts.append("whether it memorizes and what a cut would cost (no test data)")
    elif facts.accuracy_test is None:
        parts.append("whether it memorizes and what a cut would cost (the network's own answers were not read)")
    if not centers:
        parts.append("depth and head (no nearest-center accuracy: metric `ncc`)")
    if not curve:
        parts.append("law and shares of the work (no D: metric `fuzziness`)")
    elif len(curve) < LEAST_SITES:
        parts.append(f"a law ({len(curve)} points; two always lie on a line)")
    if facts.n_test and facts.profile.accuracy_class_test is None and facts.accuracy_test is not None:
        parts.append("single classes (their accuracies are not in this profile)")
    if parts:
        yield made(
            "not-measured",
            f"Cannot be said from this profile: {'; '.join(parts)}.",
            rule="missing",
            confidence="cannot be said",
            numbers={"questions": len(parts)},
            next=facts.measured_again("--split both", "test"),
        )
