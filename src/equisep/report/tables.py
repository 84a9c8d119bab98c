"""The look of every table in the terminal: a rule under the head, no walls, numbers at the right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.box import Box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from equisep.report.formatting import ASCII, Glyphs

GAP = 2  # characters between two columns
_WORD = 10  # characters that a name needs to be known again
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
    edges: bool = True,
) -> PlainTable:
    """A table of plain cells (nothing in them is read as markup); the columns in `left` are text.

    Where a word has no room it ends in an ellipsis, in the columns in `fold` it goes on in the next line.
    """
    cells = tuple(tuple(cell if isinstance(cell, Text) else Text(cell) for cell in row) for row in rows)
    return PlainTable(tuple(titles), cells, glyphs, frozenset(left), frozenset(fold), edges)


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table that loses no number: where its columns find no room side by side, each row is a list below its first cell."""

    titles: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    glyphs: Glyphs
    left: frozenset[str]
    fold: frozenset[str]
    edges: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        """Columns, or lists."""
        widths = self._widths(options.max_width)
        yield self._columns(widths) if widths else Group(Text(""), *self._lists(), Text(""))

    def _widths(self, room: int) -> list[int]:
        """Columns in which every number stands whole, and every word can be known again; none where there is no room for them."""
        widths = [
            max(*map(len, title.split("\n")), *(row[position].cell_len for row in self.rows), 0)
            for position, title in enumerate(self.titles)
        ]
        excess = sum(widths) + GAP * (len(widths) - (not self.edges)) - room
        words = [position for position, title in enumerate(self.titles) if title in self.left | self.fold]
        while excess > 0:  # rich would take from numbers as well
            widest = max(words, key=lambda position: widths[position], default=None)
            if widest is None or widths[widest] <= _WORD:
                return []
            widths[widest] -= 1
            excess -= 1
        return widths

    def _columns(self, widths: Sequence[int]) -> Table:
        # The box has a column of its own between two cells, so the padding is one less than the gap.
        box = _PLAIN_BOX if self.glyphs is ASCII else _FINE_BOX
        table = Table(box=box, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=self.edges)
        styles = {"site": "dim", "layer": "dim", "block": "dim", "D": "bold"}
        for title, width in zip(self.titles, widths, strict=True):
            justify: Literal["left", "right"] = "left" if title in self.left else "right"
            look: dict[str, Any] = {"justify": justify, "vertical": "bottom", "max_width": width}
            if title in self.fold:
                table.add_column(Text(title), overflow="fold", **look)
            else:
                table.add_column(Text(title), style=styles.get(title), no_wrap=True, **look)
        for row in self.rows:
            table.add_row(*row)
        return table

    def _lists(self) -> Iterable[RenderableType]:
        words = [title.replace("\n", " ") for title in self.titles]
        for row in self.rows:
            cells = [(word, cell) for word, cell in zip(words, row, strict=True) if cell.plain.strip()]
            if not cells:
                continue
            (word, first), *others = cells
            yield first if word in self.left else Text.assemble(f"{word} ", first)
            grid = Table.grid(padding=(0, 2))
            for label, cell in others:
                grid.add_row(Text(f"  {label}", style="dim"), cell)
            yield grid


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
