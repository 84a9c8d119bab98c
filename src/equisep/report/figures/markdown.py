"""A figure of the papers as Markdown: its tables, and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equisep.figures.evidence import Evidence
from equisep.figures.judge import Verdict
from equisep.report.figures.cells import (
    TextTable,
    claim_words,
    estimates_table,
    printed_table,
    provenance_line,
    series_table,
    stand_in_lines,
    state_line,
)
from equisep.report.figures.summary import Summary, summarize
from equisep.report.formatting import minus_signs, one_line


def figure_markdown(
    evidence: Evidence,
    verdicts: Sequence[Verdict],
    *,
    recorded: bool = False,
    remarks: Sequence[str] = (),
    level: int = 2,
) -> str:
    """Everything that the terminal shows of a figure, under a heading of this level."""
    summary = summarize(evidence, verdicts, recorded=recorded)
    parts = [
        f"{'#' * level} {summary.figure.id}: {escaped(summary.figure.title)}",
        escaped(state_line(summary)),
        *(escaped(line) for line in stand_in_lines(summary)),
        *map(escaped, remarks),
        claims_markdown(summary),
        table_markdown(series_table(summary)),
        printed_markdown(summary),
        estimates_markdown(summary),
        *map(escaped, summary.notes),
        escaped(provenance_line(summary)),
        escaped(summary.figure.cite),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def claims_markdown(summary: Summary) -> str:
    """A row per claim: its verdict, the paper's words, what was found, and its verdict in every reading; nothing without any."""
    words = claim_words(summary)
    readings = tuple(dict.fromkeys(name for each in words for name in each.readings))
    rows = [
        (each.verdict, each.claim, each.paper, each.here, *(each.readings.get(name, "") for name in readings))
        for each in words
    ]
    titles = ("verdict", "claim", "the paper", "here", *readings)
    return markdown_table(titles, rows, left=titles) if rows else ""


def printed_markdown(summary: Summary) -> str:
    """The table of printed numbers, paper against ours; nothing where the paper prints none."""
    return table_markdown(printed_table(summary.printed))


def estimates_markdown(summary: Summary) -> str:
    """The comparative bound at each share p; nothing for other figures."""
    return table_markdown(estimates_table(summary.estimates))


def markdown_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: Iterable[str] = (), raw: bool = False
) -> str:
    """A table of plain cells, or of `raw` Markdown; the columns named in `left` are text."""
    words = set(left)
    head = [title.replace("\n", " ") for title in titles]
    lines = [head, [":--" if title in words else "--:" for title in titles]]
    lines += [[cell if raw else escaped(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is: on one line, in no table's way, nothing starred; signs of numbers as in papers."""
    return minus_signs(one_line(text.replace("\n", " ")).replace("|", "\\|").replace("*", "\\*"))


def table_markdown(table: TextTable) -> str:
    """A table; nothing where it has no rows."""
    return markdown_table(table.titles, table.rows, left=table.left) if table.rows else ""
