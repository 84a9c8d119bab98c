"""A figure at the rates that the authors' public code names: its numbers there, and its claims judged again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from equisep.figures.evidence import Evidence, SeriesEvidence, gather
from equisep.figures.judge import judge
from equisep.report.figures.markdown import markdown_table
from equisep.report.formatting import UNICODE, correlation, number, percent


def rate_parts(evidence: Evidence) -> Iterator[str]:
    """The same figure at the rates that the authors' code names, where it does: numbers, and the claims judged again."""
    named = evidence.figure.code_rates
    theirs = _at_rates(evidence, named)
    if not theirs.done:
        return
    yield (
        "At the rates that the authors' public code names; the paper chooses each panel's rate by the most negative r. Means "
        "over seeds, at our rate and at theirs:"
    )
    rows = []
    for name in named:
        ours, other = evidence.series[name], theirs.series[name]
        rows.append([name, *_law_cells(ours), *_law_cells(other)])
    numbers = ("r", "ρ", "final D", "train %")
    yield markdown_table(
        ("series", "our rate", *numbers, "their rate", *(f"{word} there" for word in numbers)), rows, left=("series",)
    )
    judged = [verdict for verdict in judge(theirs) if verdict.verdict != "not run"]
    before = {verdict.claim.text: verdict.verdict for verdict in judge(evidence)}
    cells = [[one.claim.text, before[one.claim.text], one.verdict, one.reason] for one in judged]
    yield markdown_table(
        ("claim", "at our rates", "at theirs", "found at theirs"), cells, left=("claim", "found at theirs")
    )


def _at_rates(evidence: Evidence, rates: Mapping[str, float]) -> Evidence:
    """The evidence of those series alone, at one rate each."""
    entries = [
        entry
        for name, found in evidence.series.items()
        for entry in found.entries
        if name in rates and entry.training.rate == rates[name]
    ]
    return gather(evidence.figure, entries, scale=evidence.scale)


def _law_cells(found: SeriesEvidence) -> list[str]:
    means = {name: _mean(found.values(name)) for name in ("r", "rho", "last", "accuracy")}
    rate = UNICODE.missing if found.rate is None else f"{found.rate:g}"
    return [
        rate,
        correlation(means["r"]),
        number(means["rho"], 3),
        number(means["last"], 3),
        percent(means["accuracy"]),
    ]


def _mean(values: Mapping[int, float]) -> float | None:
    return float(np.mean(list(values.values()))) if values else None
