"""A figure of the papers in the terminal (rich): claims, series, the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from equisep.figures.evidence import Evidence
from equisep.figures.judge import Verdict
from equisep.figures.quantities import NEVER
from equisep.report.figures.cells import (
    TextTable,
    claims_table,
    estimates_table,
    printed_table,
    provenance_line,
    series_table,
    stand_in_lines,
    state_line,
)
from equisep.report.figures.summary import Summary, summarize
from equisep.report.formatting import Glyphs, ascii_text, one_line
from equisep.report.tables import GAP, plain_table, room_beside
from equisep.report.terminal import View

VERDICT_STYLES = {
    "held": "bold green", "contradicted": "bold red", "undecided": "bold yellow", "supported": "green", "against": "red",
    "not testable": "dim", "not run": "dim",
}  # fmt: skip


def render_figure(evidence: Evidence, verdicts: Sequence[Verdict], *, recorded: bool = False) -> RenderableType:
    """Title, source, scale and stand-ins; claims; series; the paper's numbers beside ours; what made them."""
    summary = summarize(evidence, verdicts, recorded=recorded)
    return View(lambda glyphs, width: Group(*_blocks(summary, glyphs, width)))


def _blocks(summary: Summary, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    def said(text: str) -> str:
        return ascii_text(text, glyphs)  # before lines are broken, since words grow by it

    figure = summary.figure
    yield Text.assemble((figure.id, "bold"), "  ", one_line(said(figure.title)))
    yield Text(said(f"{figure.source} · {state_line(summary)}"), style="dim")
    for line in stand_in_lines(summary):
        yield Text(said(line), style="yellow")
    if summary.verdicts:
        yield _claims(_spelled(claims_table(summary.verdicts), said), glyphs)
        yield _reasons([said(verdict.reason) for verdict in summary.verdicts])
    series = _spelled(series_table(summary), said)
    if series.rows:
        yield Text("\nSeries, means over seeds at the chosen rate", style="bold")
        yield _table(_narrowed(series, width), glyphs)
    if summary.printed:
        yield Text("\nBeside the paper", style="bold")
        table = _table(_spelled(printed_table(summary.printed), said), glyphs)
        table.columns[-1].no_wrap = False
        yield table
    if summary.estimates:
        yield Text("\nThe comparative bound, estimated at each share p", style="bold")
        yield _table(_spelled(estimates_table(summary.estimates), said), glyphs)
    for note in summary.notes:
        yield Text.assemble(("Note  ", "yellow"), one_line(said(note)))
    line = provenance_line(summary)
    if line:
        yield Text(said(f"\n{line}"), style="dim")


def _spelled(table: TextTable, said: Callable[[str], str]) -> TextTable:
    rows = tuple(tuple(map(said, row)) for row in table.rows)
    return TextTable(tuple(map(said, table.titles)), rows, table.left, table.leaves)


def _table(table: TextTable, glyphs: Glyphs) -> Table:
    return plain_table(table.titles, table.rows, glyphs, left=table.left)


def _claims(claims: TextTable, glyphs: Glyphs) -> Table:
    table = plain_table(("", *claims.titles), (), glyphs, left=claims.left)
    table.columns[2].no_wrap = False
    for index, (verdict, claim, *numbers) in enumerate(claims.rows):
        word = Text(verdict, style=VERDICT_STYLES[verdict])
        table.add_row(Text(str(index + 1), style="dim"), word, Text(one_line(claim)), *map(Text, numbers))
    for column in table.columns:
        column.vertical = "top"
    return table


def _reasons(reasons: Sequence[str]) -> Table:
    """Why, claim by claim; one reason for several claims is told once."""
    told: dict[str, list[str]] = {}
    for index, reason in enumerate(reasons):
        told.setdefault(reason, []).append(str(index + 1))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    for reason, claims in told.items():
        many = f"{claims[0]} … {claims[-1]}" if len(claims) > 2 else ", ".join(claims)
        grid.add_row(Text(many, style="dim"), Text(one_line(reason), style="dim"))
    return grid


def _narrowed(table: TextTable, width: int) -> TextTable:
    """As many columns as there is room for: a number is shown whole or not at all."""
    columns = dict(zip(table.titles, zip(*table.rows, strict=True), strict=True))
    # of the columns that leave together, the last goes first
    order = sorted(range(len(table.titles)), key=lambda at: (table.leaves[at], -at))
    for at in order:
        if table.leaves[at] == NEVER or room_beside(columns, width) >= -GAP:  # none more has to fit
            break
        del columns[table.titles[at]]
    return TextTable(tuple(columns), tuple(zip(*columns.values(), strict=True)), table.left)
