"""Has neural collapse been reached at the last layer?

Papyan, Han & Donoho (2020): in the terminal phase of training the features of every class become one vector (NC1 → 0).

Rule (of `law/emergence.py`): NC1 = Tr(SSw SSb⁺)/K of the last layer at most 0.01 is collapse; above 0.02 it is not; between the
two nothing is said. It is said of fitted networks only, and not where half of the classes have one sample (`samples`).

Limits: on training data, in the reading named in the profile; collapse on training data says nothing about test data.
Tested by: `tests/findings/test_findings_rules.py`, on features that are collapsed by construction and ones that are not.
"""

from __future__ import annotations

from collections.abc import Iterator

from equisep.findings.facts import Facts, finite
from equisep.findings.fit import unfitted
from equisep.findings.ranking import new_finding
from equisep.findings.samples import single
from equisep.results.finding import Finding
from equisep.results.records import COLLAPSED, NOT_COLLAPSED
from equisep.results.wording import number


def collapse(facts: Facts) -> Iterator[Finding]:
    """`collapse` or `no-collapse`."""
    nc1 = None if facts.last is None else finite(facts.last.nc1)
    if facts.last is None or nc1 is None or COLLAPSED < nc1 <= NOT_COLLAPSED or unfitted(facts) or single(facts):
        return
    there = nc1 <= COLLAPSED
    text = (
        f"Neural collapse is {'' if there else 'not '}reached at the last {facts.each}: the spread within classes "
        f"over that between them (NC1) is {number(nc1, 2)} on training data, and {COLLAPSED:g} or less counts as collapse."
    )
    yield new_finding(
        "collapse" if there else "no-collapse", text, rule="collapse", numbers={"nc1": nc1}, site=facts.last.name
    )
