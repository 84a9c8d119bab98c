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
    claim_words,
    estimates_table,
    printed_table,
    provenance_line,
    series_table,
    stand_in_lines,
    state_line,
)
from equisep.report.figures.summary import Summary, summarize
from equisep.report.formatting import Glyphs, ascii_text, minus_signs, one_line
from equisep.report.tables import GAP, PlainTable, plain_table, room_beside
from equisep.report.terminal import View

VERDICT_STYLES = {
    "held": "bold green", "contradicted": "bold red", "undecided": "bold yellow", "supported": "green", "against": "red",
    "not testable": "dim", "not run": "dim",
}  # fmt: skip


def render_figure(
    evidence: Evidence,
    verdicts: Sequence[Verdict],
    *,
    recorded: bool = False,
    remarks: Sequence[str] = (),
    picture: str = "",
) -> RenderableType:
    """Title, source, scale and stand-ins; remarks; claims; series; the paper's numbers beside ours; what made them."""
    summary = summarize(evidence, verdicts, recorded=recorded)
    return View(lambda glyphs, width: Group(*_blocks(summary, glyphs, width, remarks=remarks, picture=picture)))


def _blocks(
    summary: Summary, glyphs: Glyphs, width: int, *, remarks: Sequence[str], picture: str
) -> Iterator[RenderableType]:
    def said(text: str) -> str:
        return ascii_text(minus_signs(text), glyphs)  # before lines are broken, since words grow by it

    figure = summary.figure
    yield Text.assemble((figure.id, "bold"), "  ", one_line(said(figure.title)))
    yield Text(said(f"{figure.source} · {state_line(summary)}"), style="dim")
    for line in stand_in_lines(summary):
        yield Text(said(line), style="yellow")
    if picture:
        yield Text(f"Picture  {picture}", style="dim")
    if summary.claims:
        yield Text("\nClaims", style="bold")
        yield _claims(summary, said)
    if remarks:
        yield Text("\nWhy it may differ", style="bold")
        yield from (Text(one_line(said(remark))) for remark in remarks)
    series = _spelled(series_table(summary), said)
    if series.rows:
        yield Text("\nSeries, means over seeds at the chosen learning rate", style="bold")
        yield from _fitting(series, glyphs, width)
    if summary.printed:
        yield Text("\nThe paper's numbers beside ours", style="bold")
        yield from _fitting(_spelled(printed_table(summary.printed), said), glyphs, width)
    if summary.estimates:
        yield Text(
            "\nThe comparative bound, estimated for networks of d hidden layers on S1 and a share p of changed labels",
            style="bold",
        )
        yield from _fitting(_spelled(estimates_table(summary.estimates), said), glyphs, width)
    for note in summary.notes:
        yield Text.assemble(("Note  ", "yellow"), one_line(said(note)))
    line = provenance_line(summary)
    if line:
        yield Text(said(f"\n{line}"), style="dim")


def _spelled(table: TextTable, said: Callable[[str], str]) -> TextTable:
    rows = tuple(tuple(map(said, row)) for row in table.rows)
    return TextTable(tuple(map(said, table.titles)), rows, table.left, table.leaves)


def _table(table: TextTable, glyphs: Glyphs) -> PlainTable:
    return plain_table(table.titles, table.rows, glyphs, left=table.left)


def _claims(summary: Summary, said: Callable[[str], str]) -> Table:
    """Every claim with its verdict in color, the paper's words, what was found, and the verdict in each reading.

    What is said of several claims alike is said of the first.
    """
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    told: dict[tuple[str, str], int] = {}
    for index, each in enumerate(claim_words(summary)):
        lines = [Text(one_line(said(each.claim)))]
        whose = ("ours", each.asked) if each.ours else ("paper", each.paper)
        for what, words in (whose, ("here", each.here)):
            first = told.setdefault((what, words), index)
            if words:
                shown = words if first == index else f"as claim {first + 1}"
                lines.append(Text.assemble((f"{what}  ", "dim"), (one_line(said(shown)), "dim")))
        if each.readings:
            parts = [
                Text.assemble((f"{name} ", "dim"), (said(words), VERDICT_STYLES[words.partition(" (")[0]]))
                for name, words in each.readings.items()
            ]
            lines.append(Text(" · " if said("·") == "·" else ", ", style="dim").join(parts))
        number = Text.assemble((f"{index + 1} ", "dim"), (each.verdict, VERDICT_STYLES[each.verdict]))
        grid.add_row(number, Text("\n").join(lines))
    return grid


def _fitting(table: TextTable, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """A table with as many columns as there is room for, and a line that names the others."""
    shown = _narrowed(table, width)
    yield _table(shown, glyphs)
    left_out = [title.replace("\n", " ") for title in table.titles if title not in shown.titles]
    if left_out:
        yield Text(f"No room for {', '.join(left_out)}: widen the terminal, or use --json.", style="dim")


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
