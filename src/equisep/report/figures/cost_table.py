"""What runs would cost, in the terminal: cells, groups, time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.report.formatting import Glyphs, duration, size
from equisep.report.tables import plain_table
from equisep.report.terminal import View


@dataclass(frozen=True, slots=True)
class CostRow:
    """One figure: its cells, those that are stored, and what the others take."""

    id: str
    scale: str
    cells: int
    stored: int
    cells_to_run: int
    groups: int
    seconds: float
    bytes: int
    device: str


def render_plans(rows: Sequence[CostRow]) -> RenderableType:
    """A row for each figure, and what they take together."""
    return View(lambda glyphs, width: Group(_table(rows, glyphs), Text(_sums(rows), style="dim")))


def _table(rows: Sequence[CostRow], glyphs: Glyphs) -> RenderableType:
    titles = ("figure", "cells", "stored", "to run", "groups", "time", "memory")
    cells = [
        (
            row.id,
            *map(str, (row.cells, row.stored, row.cells_to_run, row.groups)),
            duration(row.seconds),
            size(row.bytes),
        )
        for row in rows
    ]
    return plain_table(titles, cells, glyphs, left=("figure",))


def _sums(rows: Sequence[CostRow]) -> str:
    cells, groups = sum(row.cells_to_run for row in rows), sum(row.groups for row in rows)
    time = duration(sum(row.seconds for row in rows))
    most = size(max((row.bytes for row in rows), default=0))
    device = rows[0].device if rows else ""
    return (
        f"{cells} cells in {groups} groups that train together; predicted for {device}: {time}, at most {most} at once. "
        "Nothing was run."
    )
