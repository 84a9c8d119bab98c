"""All figures in one table: id, state, claims, title."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from equisep.figures.evidence import Evidence
from equisep.figures.judge import Verdict
from equisep.report.figures.spelled import spelled
from equisep.report.figures.summary import counts_of, state_of
from equisep.report.formatting import Glyphs, one_line
from equisep.report.tables import plain_table
from equisep.report.terminal import View

_COUNTED = {"held": "held", "not held": "not", "indicated": "ind.", "not run": "open"}  # verdict → head of its column
_LEAST_TITLE = 12


def list_rows(found: Iterable[tuple[Evidence, Sequence[Verdict], bool]]) -> list[dict[str, Any]]:
    """One row a figure, of its evidence, its verdicts, and whether it is the record's; plain JSON types."""
    return [
        {
            "id": evidence.figure.id,
            "title": evidence.figure.title,
            "source": evidence.figure.source,
            "state": state_of(evidence, recorded=recorded),
            "scale": evidence.scale if evidence.done else None,
            "claims": counts_of(verdicts),
        }
        for evidence, verdicts, recorded in found
    ]


def render_list(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The table, and a line with the sums."""
    return View(lambda glyphs, width: Group(_table(rows, glyphs, width), Text(_sums(rows), style="dim")))


def _table(rows: Sequence[Mapping[str, Any]], glyphs: Glyphs, width: int) -> RenderableType:
    """One line a figure: claims as four narrow columns of counts, and as much of the title as there is room for."""
    head = ("figure", "state", *_COUNTED.values(), "title")
    lines = [_line(row, glyphs) for row in rows]
    widths = [max(cell_len(line[place]) for line in (head, *lines)) for place in range(len(head) - 1)]
    room = width - sum(widths) - 2 * len(head)  # a blank on each side of a column
    shown = len(head) if room >= _LEAST_TITLE else len(head) - 1
    table = plain_table(head[:shown], (), glyphs, left=("figure", "state", "title"))
    for row, line in zip(rows, lines, strict=True):
        title = Text(line[-1])
        title.truncate(max(0, room), overflow="ellipsis")
        style = "dim" if row["state"] == "not run" else ""
        table.add_row(*[*(Text(cell, style=style) for cell in line[:-1]), title][:shown])
    return table


def _line(row: Mapping[str, Any], glyphs: Glyphs) -> tuple[str, ...]:
    scale = f", {row['scale']}" if row["scale"] == "smoke" else ""
    state = row["state"].removeprefix("partly run (").removesuffix(")")  # `5 of 10 cells` says it
    counts = (str(row["claims"][word]) if row["claims"][word] else "" for word in _COUNTED)
    return (row["id"], f"{state}{scale}", *counts, one_line(spelled(row["title"], glyphs)))


def _sums(rows: Sequence[Mapping[str, Any]]) -> str:
    run = sum(row["state"] != "not run" for row in rows)
    words = ("held", "not held", "indicated", "not run")
    claims = ", ".join(f"{sum(row['claims'][word] for row in rows)} {word}" for word in words)
    return f"{len(rows)} figures, {run} of them run; claims (held, not, ind., open): {claims}."
