"""The page of one figure: its picture, three sentences, its claims beside the paper's words, how it was run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from equisep.figures.evidence import Evidence, SeriesEvidence, gather
from equisep.figures.judge import judge
from equisep.report.figures.cells import provenance_line, series_table, stand_in_lines
from equisep.report.figures.markdown import (
    claims_markdown,
    escaped,
    estimates_markdown,
    markdown_table,
    printed_markdown,
    table_markdown,
)
from equisep.report.figures.summary import Summary
from equisep.report.formatting import UNICODE, correlation, number, percent
from equisep.results import READINGS
from figure_pages.recorded import Recorded
from figure_pages.words import asked_words, found_sentence, paper_sentence

# means over seeds that the page tells of each series; all others, and every seed, are in the JSON
_COLUMNS = (
    "series",
    "learning rate",
    "seeds",
    "r",
    "ρ",
    "half-life layers",
    "half-life blocks",
    "last D",
    "train %",
    "test %",
)
_READINGS = tuple(reversed(READINGS))  # the paper's own first
_NAMES = 2  # the first of them in any table of series: its name, and how many seeds


def figure_page(each: Recorded, results: Path) -> str:
    """The whole page of a figure that is recorded; `results` holds its picture."""
    summary = each.summary
    assert summary is not None  # a figure without a record has no page
    figure, title = each.figure, escaped(each.figure.title)
    beside = " and ".join(f"[`{other}`](../../results/{other}.json)" for other in each.beside)
    parts = [
        f"# {escaped(figure.source)}: {title}",
        f"[All figures](index.md) · `{figure.id}` · [every number, seed by seed](../../results/{figure.id}.json)"
        + (f"; some of them stand in the record of {beside}" if beside else ""),
        f"![{title}](../../results/{figure.id}.png)" if (results / f"{figure.id}.png").is_file() else "",
        f"**What {asked_words(each)}.** {said}" if (said := paper_sentence(each)) else "",
        f"**What we found.** {found_sentence(each)}",
        f"**Why it may differ.** {' '.join(escaped(remark) for remark in each.remarks)}" if each.remarks else "",
        claims_markdown(summary),
        *_how_it_was_run(each, summary),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _how_it_was_run(each: Recorded, summary: Summary) -> Iterator[str]:
    """Folded: data, networks, the paper's numbers beside ours, what made them, how to run it again."""
    table = series_table(summary)
    at = [index for index, name in enumerate(table.titles) if name.replace("\n", " ") in _COLUMNS]
    short = replace(
        table,
        titles=tuple(table.titles[index] for index in at),
        rows=tuple(tuple(row[index] for index in at) for row in table.rows),
        leaves=(),
    )
    yield "<details markdown><summary>How it was run</summary>"
    yield " ".join(f"**{escaped(line)}**" for line in stand_in_lines(summary))
    yield " ".join(map(escaped, summary.notes))
    if len(at) > _NAMES:  # of solved problems there is neither a rate nor a network to tell of
        yield f"Means over seeds at the chosen rate:\n\n{table_markdown(short)}"
    printed = printed_markdown(summary)
    yield f"The paper's numbers beside ours:\n\n{printed}" if printed else ""
    estimates = estimates_markdown(summary)
    yield (
        f"The comparative bound, estimated for networks of d hidden layers on S1 and a share p of changed labels:\n\n{estimates}"
        if estimates
        else ""
    )
    yield from reading_rate_parts(summary.evidence)
    yield from rate_parts(summary.evidence)
    state = "" if summary.state == "recorded" else f" {summary.state.capitalize()}."
    yield f"{escaped(provenance_line(summary))}{state} Run it again: `equisep figures run {each.figure.id}`."
    yield escaped(each.figure.cite)
    yield "</details>"


def reading_rate_parts(evidence: Evidence) -> Iterator[str]:
    """The rates that each reading by itself would choose, and r there, of series in which readings disagree."""
    own = {
        name: {reading: rate for reading in _READINGS if (rate := found.rate_in(reading)) is not None}
        for name, found in evidence.series.items()
    }
    apart = {name: rates for name, rates in own.items() if len(set(rates.values())) > 1}
    readings = [reading for reading in _READINGS if any(reading in rates for rates in apart.values())]
    if not apart:
        return
    there = {
        reading: _at_rates(evidence, {name: rates[reading] for name, rates in apart.items() if reading in rates})
        for reading in readings
    }
    rows = []
    for name, rates in apart.items():
        values = (there[reading].series[name].values(f"r@reading={reading}") for reading in readings)
        pairs = (
            (_rate(rates.get(reading)), correlation(_mean(r))) for reading, r in zip(readings, values, strict=True)
        )
        rows.append([name, *(cell for pair in pairs for cell in pair)])
    titles = ("series", *(f"{word} {reading}" for reading in readings for word in ("rate by", "r in")))
    yield "The rate that each reading by itself would choose, and the mean r in it there, of series in which they differ:"
    yield markdown_table(titles, rows, left=("series",))


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
    return [
        _rate(found.rate),
        correlation(means["r"]),
        number(means["rho"], 3),
        number(means["last"], 3),
        percent(means["accuracy"]),
    ]


def _rate(rate: float | None) -> str:
    return UNICODE.missing if rate is None else f"{rate:g}"


def _mean(values: Mapping[int, float]) -> float | None:
    return float(np.mean(list(values.values()))) if values else None
