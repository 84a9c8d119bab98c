"""What a profile cannot answer because it was not measured, and the command that measures it.

Rule: a question whose numbers are all absent is named once, in one sentence, with the call that brings them, where one does.
`nothing-measured` where there is neither D nor nearest-center accuracy, or fewer than three layers for a law.

Limits: it speaks of this profile; other files may know more.
Tested by: `tests/findings/test_findings_missing.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from equisep.findings.depth import WITHIN
from equisep.findings.facts import Facts, finite
from equisep.findings.ranking import new_finding
from equisep.results.finding import Finding
from equisep.results.records import LEAST_SITES
from equisep.results.wording import plural


def missing(facts: Facts) -> Iterator[Finding]:
    """`nothing-measured` or `not-measured`."""
    curve = [site for site in facts.sites if finite(site.fuzziness) is not None]
    centers = [site for site in facts.sites if finite(site.ncc_train) is not None]
    if not curve and not centers:
        yield new_finding(
            "nothing-measured",
            f"The profile holds neither D nor nearest-center accuracy at any of its {plural(len(facts.sites), 'site')}, so it "
            "answers nothing.",
            rule="missing",
            confidence="cannot be said",
            numbers={"sites": len(facts.sites)},
            next=facts.measured_again(arguments="test"),
        )
        return
    parts, measured = [], False  # whether measuring again would bring what is missing
    if facts.tested_on_training:
        parts.append("whether it memorizes and what a cut would cost (the test data are the training data)")
        measured = True
    elif not facts.n_test:
        parts.append("whether it memorizes and what a cut would cost (no test data)")
        measured = True
    elif facts.n_test * WITHIN < 1:
        parts.append(
            f"what a cut would cost ({plural(facts.n_test, 'test sample')}; from {round(1 / WITHIN)} on one point shows)"
        )
        measured = True
    elif facts.accuracy_test is None:
        unread = any(note.code == "no-scores" for note in facts.profile.notes)
        why = "what the model returns holds no class scores" if unread else "the network's own answers were not read"
        parts.append(f"whether it memorizes and what a cut would cost ({why})")
        measured = not unread
    if not centers:
        parts.append("depth and head (no nearest-center accuracy: metric `ncc`)")
        measured = True
    if not curve and any(note.code == "no-separation" for note in facts.profile.notes):
        parts.append(
            f"law and shares of the work (class means coincide at every {facts.each}, so that D does not exist)"
        )
    elif not curve:
        parts.append("law and shares of the work (no D: metric `fuzziness`)")
        measured = True
    elif len(curve) < LEAST_SITES:
        parts.append(f"a law ({plural(len(curve), 'point')}; two always lie on a line)")
    if facts.n_test and facts.profile.accuracy_class_test is None and facts.accuracy_test is not None:
        parts.append("single classes (their accuracies are not in this profile)")
        measured = True
    if parts:
        yield new_finding(
            "not-measured",
            f"Cannot be said from this profile: {'; '.join(parts)}.",
            rule="missing",
            confidence="cannot be said",
            numbers={"questions": len(parts)},
            next=facts.measured_again("--split both", "test") if measured else None,
        )
