"""All figures in one table: id, state, claims, title."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from equisep.figures.evidence import Evidence
from equisep.figures.figure import Figure
from equisep.figures.judge import WORDS, Verdict
from equisep.report.figures.summary import counts_of, state_of
from equisep.report.formatting import Glyphs, ascii_text, one_line
from equisep.report.tables import plain_table
from equisep.report.terminal import View

# head of a column → the verdicts counted there
_COUNTED = {
    "held": ("held",),
    "contra": ("contradicted",),
    "und": ("undecided", "supported", "against"),
    "open": ("not testable", "not run"),
}
_LEAST_TITLE = 12


@dataclass(frozen=True, slots=True)
class ListRow:
    """One figure: how far it was run, at which scale (None: not at all), and how many claims fared how."""

    figure: Figure
    state: str
    scale: str | None
    claims: Mapping[str, int]


def list_rows(figures: Iterable[tuple[Evidence, Sequence[Verdict], bool]]) -> list[ListRow]:
    """A row for each figure, of its evidence, its verdicts, and whether it is the record's."""
    return [
        ListRow(
            evidence.figure,
            state_of(evidence, recorded=recorded),
            evidence.scale if evidence.done else None,
            counts_of(verdicts),
        )
        for evidence, verdicts, recorded in figures
    ]


def list_json(rows: Iterable[ListRow]) -> list[dict[str, Any]]:
    """The rows as plain JSON types."""
    return [
        {
            "id": row.figure.id,
            "title": row.figure.title,
            "source": row.figure.source,
            "state": row.state,
            "scale": row.scale,
            "claims": dict(row.claims),
        }
        for row in rows
    ]


def render_list(rows: Sequence[ListRow]) -> RenderableType:
    """The table, and a line with the sums."""
    return View(lambda glyphs, width: Group(_table(rows, glyphs, width), Text(_sums(rows), style="dim")))


def _table(rows: Sequence[ListRow], glyphs: Glyphs, width: int) -> RenderableType:
    """One line per figure: claims as narrow columns of counts, and as much of the title as there is room for."""
    head = ("figure", "state", *_COUNTED, "title")
    lines = [_line(row, glyphs) for row in rows]
    widths = [max(cell_len(line[column]) for line in (head, *lines)) for column in range(len(head) - 1)]
    room = width - sum(widths) - 2 * len(head)  # a blank on each side of a column
    shown = len(head) if room >= _LEAST_TITLE else len(head) - 1
    table = plain_table(head[:shown], (), glyphs, left=("figure", "state", "title"))
    for row, line in zip(rows, lines, strict=True):
        title = Text(line[-1])
        title.truncate(max(0, room), overflow="ellipsis")
        style = "dim" if row.state == "not run" else ""
        table.add_row(*[*(Text(cell, style=style) for cell in line[:-1]), title][:shown])
    return table


def _line(row: ListRow, glyphs: Glyphs) -> tuple[str, ...]:
    scale = f", {row.scale}" if row.scale == "smoke" else ""
    state = row.state.removeprefix("partly run (").removesuffix(")")  # `5 of 10 cells` says it
    sums = (sum(row.claims[word] for word in words) for words in _COUNTED.values())
    counts = (str(each) if each else "" for each in sums)
    return (row.figure.id, f"{state}{scale}", *counts, one_line(ascii_text(row.figure.title, glyphs)))


def _sums(rows: Sequence[ListRow]) -> str:
    run = sum(row.state != "not run" for row in rows)
    claims = ", ".join(f"{sum(row.claims[word] for row in rows)} {word}" for word in WORDS)
    return f"{len(rows)} figures, {run} of them run; claims: {claims}."
