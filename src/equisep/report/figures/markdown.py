"""A figure of the papers as Markdown: its tables, and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from equisep.figures.evidence import Evidence
from equisep.figures.judge import Verdict
from equisep.report.figures.cells import (
    TextTable,
    claims_table,
    estimates_table,
    printed_table,
    provenance_line,
    seeds_table,
    series_table,
    stand_in_lines,
    state_line,
)
from equisep.report.figures.summary import Summary, summarize
from equisep.report.formatting import one_line


def figure_markdown(evidence: Evidence, verdicts: Sequence[Verdict], *, recorded: bool = False, level: int = 2) -> str:
    """Everything that the terminal shows of a figure, under a heading of this level."""
    summary = summarize(evidence, verdicts, recorded=recorded)
    parts = [
        f"{'#' * level} {summary.figure.id}: {escaped(summary.figure.title)}",
        escaped(state_line(summary)),
        *(escaped(line) for line in stand_in_lines(summary)),
        claims_markdown(summary),
        series_markdown(summary),
        printed_markdown(summary),
        estimates_markdown(summary),
        *map(escaped, summary.notes),
        escaped(provenance_line(summary)),
        escaped(summary.figure.cite),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def claims_markdown(summary: Summary) -> str:
    """The table of claims, with the reason of each verdict; nothing for a figure without one."""
    table = claims_table(summary.verdicts)
    rows = tuple((*row, verdict.reason) for row, verdict in zip(table.rows, summary.verdicts, strict=True))
    return _or_nothing(replace(table, titles=(*table.titles, "found"), rows=rows, left=(*table.left, "found")))


def series_markdown(summary: Summary) -> str:
    """The table of series; nothing where none was run."""
    return _or_nothing(series_table(summary))


def seeds_markdown(summary: Summary) -> str:
    """Every seed's r; nothing where no series has one."""
    return _or_nothing(seeds_table(summary))


def printed_markdown(summary: Summary) -> str:
    """The table of printed numbers, paper against ours; nothing where the paper prints none."""
    return _or_nothing(printed_table(summary.printed))


def estimates_markdown(summary: Summary) -> str:
    """The comparative bound at each share p; nothing for other figures."""
    return _or_nothing(estimates_table(summary.estimates))


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: Iterable[str] = ()) -> str:
    """A table of plain cells; the columns named in `left` are text."""
    words = set(left)
    head = [title.replace("\n", " ") for title in titles]
    lines = [head, [":--" if title in words else "--:" for title in titles]]
    lines += [[escaped(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is: on one line, in no table's way, nothing starred."""
    return one_line(text.replace("\n", " ")).replace("|", "\\|").replace("*", "\\*")


def _or_nothing(table: TextTable) -> str:
    return markdown_table(table.titles, table.rows, left=table.left) if table.rows else ""
