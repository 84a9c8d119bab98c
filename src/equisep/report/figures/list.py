"""Tables of many figures in the terminal: how far each was run and how its claims fared, and what runs would cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from equisep.figures.evidence import Evidence
from equisep.figures.figure import Figure
from equisep.figures.judge import WORDS, Verdict
from equisep.figures.papers import PAPERS
from equisep.report.figures.summary import counts_of, state_of
from equisep.report.figures.tables import VERDICT_STYLES
from equisep.report.formatting import Glyphs, ascii_text, duration, one_line, size
from equisep.report.tables import GAP, plain_table
from equisep.report.terminal import View
from equisep.results.wording import plural

_CLAIMS = 40  # the most that the column of claims takes
_WIDEST = 130  # a line that is longer is hard to read


@dataclass(frozen=True, slots=True)
class ListRow:
    """One figure: how far it was run, at which scale (None: not at all), and how many claims fared how."""

    figure: Figure
    state: str
    scale: str | None
    claims: Mapping[str, int]

    @property
    def paper(self) -> str:
        """The part of its id before the stroke."""
        return self.figure.id.partition("/")[0]

    @property
    def name(self) -> str:
        """The part behind it."""
        return self.figure.id.partition("/")[2] or self.figure.id


def list_row(evidence: Evidence, verdicts: Sequence[Verdict], *, recorded: bool = False) -> ListRow:
    """The row of a figure, of its evidence, its verdicts, and whether it is the record's."""
    return ListRow(
        evidence.figure,
        state_of(evidence, recorded=recorded),
        evidence.scale if evidence.done else None,
        counts_of(verdicts),
    )


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
    """A table per paper, and a line with the sums in the same words."""
    return View(lambda glyphs, width: Group(*_papers(rows, glyphs, width), Text(_sums(rows), style="dim")))


def _papers(rows: Sequence[ListRow], glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Figures under the name of their paper; titles and claims go on in the next line where they have no room."""
    names = max((cell_len(row.name) for row in rows), default=0)
    room = max(20, min(width, _WIDEST) - names - 3 * GAP)
    claims = min(_CLAIMS, room // 2)
    for paper, own in groupby(rows, key=lambda row: row.paper):
        title = PAPERS.get(paper, paper)
        yield Text(f"{ascii_text(title, glyphs)} ({paper})", style="bold")
        table = Table.grid(padding=(0, GAP, 0, 0))
        table.add_column(width=names + 1, no_wrap=True)
        table.add_column(width=room - claims)
        table.add_column(width=claims)
        for row in own:
            style = "dim" if row.state == "not run" else ""
            words = Text(one_line(ascii_text(row.figure.title, glyphs)), style=style)
            table.add_row(Text(f" {row.name}", style=style), words, _fared(row))
        yield table
        yield Text("")


def _fared(row: ListRow) -> Text:
    """How far a figure was run, where not wholly, and how its claims fared, each word in its color."""
    if row.state == "not run":
        return Text("not run", style="dim")
    parts = [Text(row.state.removeprefix("partly run (").removesuffix(")"))] if row.state.startswith("partly") else []
    if row.scale == "smoke":
        parts.append(Text("smoke scale", style="yellow"))
    parts += [Text(f"{row.claims[word]} {word}", style=VERDICT_STYLES[word]) for word in WORDS if row.claims[word]]
    return Text(", ").join(parts) if parts else Text("no claims", style="dim")


def _sums(rows: Sequence[ListRow]) -> str:
    run = sum(row.state != "not run" for row in rows)
    claims = ", ".join(f"{sum(row.claims[word] for row in rows)} {word}" for word in WORDS)
    return f"{len(rows)} figures, {run} of them run; claims: {claims}."


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
    return View(lambda glyphs, width: Group(_table(rows, glyphs), Text(_cost_sums(rows), style="dim")))


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


def _cost_sums(rows: Sequence[CostRow]) -> str:
    cells, groups = plural(sum(row.cells_to_run for row in rows), "cell"), sum(row.groups for row in rows)
    together = f"{plural(groups, 'group')} that {'trains' if groups == 1 else 'train'} together"
    time = duration(sum(row.seconds for row in rows))
    most = size(max((row.bytes for row in rows), default=0))
    device = rows[0].device if rows else ""
    return f"{cells} in {together}; predicted for {device}: {time}, at most {most} at once. Nothing was run."
