"""The look of every table in the terminal: a rule under the head, no walls, numbers at the right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from rich.box import Box
from rich.table import Table
from rich.text import Text

from equisep.report.formatting import ASCII, Glyphs

GAP = 2  # characters between two columns
_RULED = "    \n    \n {0}{0} \n    \n    \n    \n    \n    \n"
_FINE_BOX = Box(_RULED.format("─"))
_PLAIN_BOX = Box(_RULED.format("-"), ascii=True)


def plain_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    glyphs: Glyphs,
    *,
    left: Iterable[str] = (),
    fold: Iterable[str] = (),
) -> Table:
    """A table of plain cells (nothing in them is read as markup); the columns in `left` are text.

    Where a cell has no room it ends in an ellipsis, in the columns in `fold` it goes on in the next line.
    """
    # The box has a column of its own between two cells, so the padding is one less than the gap.
    table = Table(box=_PLAIN_BOX if glyphs is ASCII else _FINE_BOX, padding=(0, GAP - 1, 0, 0), pad_edge=False)
    words, folded = set(left), set(fold)
    styles = {"site": "dim", "layer": "dim", "block": "dim", "D": "bold"}
    for title in titles:
        justify: Literal["left", "right"] = "left" if title in words else "right"
        if title in folded:
            table.add_column(Text(title), justify=justify, overflow="fold", vertical="bottom")
        else:
            table.add_column(Text(title), justify=justify, style=styles.get(title), no_wrap=True, vertical="bottom")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def room_beside(columns: Mapping[str, Sequence[str | Text]], width: int) -> int:
    """What these columns leave of `width` for one more, gaps counted."""
    used = sum(max(map(len, (*title.split("\n"), *cells))) + GAP for title, cells in columns.items())
    return width - used - 2  # the box keeps one character at each edge


def grid_of(rows: Iterable[tuple[str, str]]) -> Table:
    """Labels and values, indented."""
    grid = Table.grid(padding=(0, 2))
    for label, value in rows:
        grid.add_row(Text(f"  {label}", style="dim"), Text(value))
    return grid
