"""Answers in words: a profile (or a history) → findings, one rule per file, most important first; no torch.

>>> from equisep.findings import findings_of
>>> findings_of(profile)[0].text
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from equisep.findings.classes import classes
from equisep.findings.collapse import collapse
from equisep.findings.depth import depth
from equisep.findings.facts import Facts
from equisep.findings.fit import fit
from equisep.findings.head import head
from equisep.findings.law import law
from equisep.findings.memorizing import memorizing
from equisep.findings.missing import missing
from equisep.findings.ranking import MOST, WEIGHTS, ranked
from equisep.findings.rare import rare
from equisep.findings.samples import samples
from equisep.findings.training import training
from equisep.findings.wording import WIDTH, explained, spelled
from equisep.findings.work import work
from equisep.results import Profile
from equisep.results.finding import Finding

__all__ = ["MOST", "RULES", "WEIGHTS", "explain", "findings_of", "ranked", "spelled", "training"]

Rule = Callable[[Facts], Iterable[Finding]]
RULES: Mapping[str, Rule] = {
    "fit": fit,
    "classes": classes,
    "head": head,
    "samples": samples,
    "memorizing": memorizing,
    "depth": depth,
    "work": work,
    "law": law,
    "collapse": collapse,
    "rare": rare,
    "missing": missing,
}


def findings_of(profile: Profile, *, most: int = MOST) -> tuple[Finding, ...]:
    """What a profile says, in at most `most` sentences, the one that changes a decision first."""
    facts = Facts.of(profile)
    found = ranked(chain.from_iterable(rule(facts) for rule in RULES.values()), most=most)
    return spelled(found, whole=profile.whole)


def explain(profile: Profile, *, width: int = WIDTH) -> str:
    """The findings as text, `width` columns wide."""
    return explained(findings_of(profile), width=width)
