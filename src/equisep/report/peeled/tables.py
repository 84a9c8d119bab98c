"""The parts that everything printed of the Layer-Peeled wing is made of: tables cut to a screen, labels, states, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from equisep.report.formatting import Glyphs, number
from equisep.report.tables import plain_table

Row = list[str | Text]

MOST_ROWS = 40  # of a table; --json has them all
LOST = "Lost: on its own samples another class scores as high or higher, a margin that is not above 0."


def table_of(titles: Sequence[str], rows: Sequence[Row], glyphs: Glyphs, *, left: Iterable[str] = ()) -> RenderableType:
    """A table, with the number of rows that did not find room."""
    table = plain_table(titles, rows[:MOST_ROWS], glyphs, left=left)
    if len(rows) <= MOST_ROWS:
        return table
    return Group(table, Text(f"{len(rows) - MOST_ROWS} more; --json prints them all.", style="dim"))


def grid_of(rows: Iterable[tuple[str, str]]) -> Table:
    """Labels and values."""
    grid = Table.grid(padding=(0, 2))
    for label, value in rows:
        grid.add_row(Text(f"  {label}", style="dim"), Text(value))
    return grid


def state_word(state: str) -> Text:
    """The state in its color: what is told apart needs none."""
    return Text(state, style="bold red" if state.startswith(("lost", "not solved")) else "")


def shown(value: Any, glyphs: Glyphs | None = None) -> str:
    """A number, or the words that stand for one in JSON."""
    if value is None or value != value:  # noqa: PLR0124 (NaN)
        return glyphs.missing if glyphs else "none"
    return str(value) if isinstance(value, str | int) else number(float(value), 6)
