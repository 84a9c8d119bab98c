"""Trained long enough? A rule over the history of a training; one profile does not tell.

He & Su (2023, Fig. 2): the law emerges during training. Rule: the training has settled where ρ, D of the last layer and
nearest-center accuracy have all stopped improving (`tracking/stopping.py`); when the law emerged is said beside it
(`law/emergence.py`). r alone is no rule: it can worsen while ρ and accuracy still improve.

Limits: settled is said of these readings and tolerances; that a longer training or another rate would not do better is not.
Tested by: `tests/findings/test_findings_training.py` for the words; what stopping there saves or costs by an experiment of its
own (docs/findings.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from equisep.findings.facts import Facts, finite
from equisep.findings.fit import fit, unfitted
from equisep.findings.ranking import new_finding
from equisep.results import Profile
from equisep.results.finding import Finding
from equisep.results.wording import percent

if TYPE_CHECKING:
    from equisep.law.emergence import Emergence


def training(
    last: Profile | None,
    *,
    emergence: Mapping[str, Emergence],
    settled: bool,
    since: int | None,
    reason: str,
    unit: str = "epoch",
) -> Iterator[Finding]:
    """`settled` or `still-improving`, and where the last reading says so `unfitted`."""
    if last is None:
        yield new_finding(
            "nothing-measured",
            "The history holds no reading, so it answers nothing.",
            rule="training",
            confidence="cannot be said",
            next="equisep.Tracker(model, train, test, history='run.jsonl')",
        )
        return
    facts = Facts(last)
    if unfitted(facts):
        yield from fit(facts)
    rose = emergence.get("law")
    law = "" if rose is None else f" The law: {rose.sentence(unit)}."
    accuracy = "" if facts.accuracy_test is None else f"; test accuracy is {percent(facts.accuracy_test)} %"
    plain = reason.rstrip(".")
    early = not settled and "that it takes" in reason
    code = "settled" if settled else "still-improving"
    if early:
        text = f"Whether the training has settled cannot be said yet: {plain}.{law}"
    else:
        head = f"The training has settled since {unit} {since}" if settled else "The training has not settled"
        text = f"{head}: {plain[0].lower() + plain[1:]}{accuracy}.{law}"
    yield new_finding(
        code,
        text,
        rule="training",
        confidence="cannot be said" if early else "likely",
        numbers={
            "since": since,
            "law_first": None if rose is None else rose.first,
            "rho": finite(last.law.rho),
            "accuracy_test": facts.accuracy_test,
        },
    )
