"""A figure of the papers as tables, in the terminal (rich) and in Markdown: claims, series, the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from equisep.figures.evidence import Evidence
from equisep.figures.judge import Verdict
from equisep.figures.quantities import CLAIMED, NEVER, Column, entry_of, quantity_words, standard_quantities
from equisep.figures.rules import LAWS
from equisep.report.figures.cost_table import duration
from equisep.report.figures.spelled import spelled
from equisep.report.figures.summary import LIBRARIES, figure_json, state_of
from equisep.report.formatting import UNICODE, Glyphs, correlation, number, one_line
from equisep.report.tables import GAP, plain_table, room_beside
from equisep.report.terminal import View

__all__ = [
    "claims_markdown",
    "estimates_markdown",
    "figure_json",
    "figure_markdown",
    "markdown_table",
    "printed_markdown",
    "render_figure",
    "seeds_markdown",
    "series_markdown",
    "state_of",
]

VERDICT_STYLES = {"held": "bold green", "not held": "bold red", "indicated": "bold yellow", "not run": "dim"}


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table of series."""

    title: str
    leaves: float
    cells: list[str]


# what a series has beside its quantities: a heading, and when it leaves a narrow terminal
_BESIDE = {
    "rate": Column("rate", 10),
    "n": Column("n", 11),
    "r_eval": Column("r eval", 0),
    "r_optimistic": Column("r\noptimistic", 6),
}


def render_figure(evidence: Evidence, verdicts: Sequence[Verdict], *, recorded: bool = False) -> RenderableType:
    """Title, source, scale and stand-ins; claims; series; the paper's numbers beside ours; what made them."""
    content = figure_json(evidence, verdicts, recorded=recorded)
    return View(lambda glyphs, width: Group(*_blocks(spelled(content, glyphs), glyphs, width)))


def figure_markdown(evidence: Evidence, verdicts: Sequence[Verdict], *, recorded: bool = False, level: int = 2) -> str:
    """The same as Markdown, under a heading of this level."""
    content = figure_json(evidence, verdicts, recorded=recorded)
    parts = [
        f"{'#' * level} {content['id']}: {escaped(content['title'])}",
        escaped(state_line(content)),
        *(escaped(line) for line in stand_in_lines(content)),
        claims_markdown(content["claims"]),
        series_markdown(content),
        printed_markdown(content["printed"]),
        estimates_markdown(content),
        *(f"{escaped(note)}" for note in content["notes"]),
        escaped(provenance_line(content)),
        escaped(content["cite"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def claims_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of claims; nothing for a figure without one."""
    if not rows:
        return ""
    cells = [[*_claim_cells(row, UNICODE), row["reason"]] for row in rows]
    titles = ("verdict", "claim", "ours", "paper", "n", "95 % interval", "found")
    return markdown_table(titles, cells, left=("verdict", "claim", "found"))


def series_markdown(content: Mapping[str, Any]) -> str:
    """The table of series; nothing where none was run."""
    columns = _series_columns(content, UNICODE)
    if not columns[0].cells:
        return ""
    rows = zip(*(column.cells for column in columns), strict=True)
    return markdown_table([column.title for column in columns], rows, left=("series",))


def seeds_markdown(content: Mapping[str, Any]) -> str:
    """Every seed's r, as read first and in eval mode; nothing where no series has an r."""
    rows = [row for row in content["series"] if row["r_by_seed"]]
    if not rows:
        return ""
    cells = [
        [row["series"], *(" ".join(correlation(r) for r in row[name]) for name in ("r_by_seed", "r_eval_by_seed"))]
        for row in rows
    ]
    return markdown_table(("series", "r, seed by seed", "in eval mode"), cells, left=("series",))


def printed_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of printed numbers, paper against ours; nothing where the paper prints none."""
    if not rows:
        return ""
    titles = ("series", "quantity", "paper", "ours", "n", "95 % interval", "place")
    return markdown_table(titles, (_printed_cells(row, UNICODE) for row in rows), left=("series", "quantity", "place"))


def estimates_markdown(content: Mapping[str, Any]) -> str:
    """The comparative bound at each share p; nothing for other figures."""
    if not content["estimates"]:
        return ""
    columns = _estimate_columns(content, UNICODE)
    return markdown_table(list(columns), zip(*columns.values(), strict=True))


def _estimate_columns(content: Mapping[str, Any], glyphs: Glyphs) -> dict[str, list[str]]:
    rows = content["estimates"]
    return {
        "p": [f"{row['p']:g}" for row in rows],
        "n": [str(row["n"]) for row in rows],
        "P": [number(row["probability"], 3) for row in rows],
        "P + p": [number(row["value"], 3) for row in rows],
        "least depth": [number(row["least_depth"], 3, missing=glyphs.missing) for row in rows],
    }


def _blocks(content: Mapping[str, Any], glyphs: Glyphs, width: int) -> Iterable[RenderableType]:
    yield Text.assemble((content["id"], "bold"), "  ", one_line(content["title"]))
    yield Text(f"{content['source']} {glyphs.dot} {state_line(content)}", style="dim")
    for line in stand_in_lines(content):
        yield Text(line, style="yellow")
    if content["claims"]:
        yield _claims_table(content["claims"], glyphs)
        yield _reasons(content["claims"])
    series = _series_columns(content, glyphs)
    if series[0].cells:
        yield Text("\nSeries, means over seeds at the chosen rate", style="bold")
        yield _series_table(series, glyphs, width)
    if content["printed"]:
        yield Text("\nBeside the paper", style="bold")
        titles = ("series", "quantity", "paper", "ours", "n", "95 % interval", "place")
        rows = [_printed_cells(row, glyphs) for row in content["printed"]]
        table = plain_table(titles, rows, glyphs, left=("series", "quantity", "place"))
        table.columns[-1].no_wrap = False
        yield table
    if content["estimates"]:
        yield Text("\nThe comparative bound, estimated at each share p", style="bold")
        columns = _estimate_columns(content, glyphs)
        yield plain_table(list(columns), zip(*columns.values(), strict=True), glyphs)
    for note in content["notes"]:
        yield Text.assemble(("Note  ", "yellow"), one_line(note))
    line = provenance_line(content)
    if line:
        yield Text(f"\n{line}", style="dim")


def _claims_table(rows: Sequence[Mapping[str, Any]], glyphs: Glyphs) -> Table:
    titles = ("", "verdict", "claim", "ours", "paper", "n", "95 % interval")
    table = plain_table(titles, (), glyphs, left=("verdict", "claim"))
    table.columns[2].no_wrap = False
    for place, row in enumerate(rows):
        verdict, claim, *numbers = _claim_cells(row, glyphs)
        word = Text(verdict, style=VERDICT_STYLES[verdict])
        table.add_row(Text(str(place + 1), style="dim"), word, Text(one_line(claim)), *(Text(cell) for cell in numbers))
    for column in table.columns:
        column.vertical = "top"
    return table


def _reasons(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Why, claim by claim; one reason for several claims is told once."""
    told: dict[str, list[str]] = {}
    for place, row in enumerate(rows):
        told.setdefault(row["reason"], []).append(str(place + 1))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    for reason, places in told.items():
        many = f"{places[0]} … {places[-1]}" if len(places) > 2 else ", ".join(places)
        grid.add_row(Text(many, style="dim"), Text(one_line(reason), style="dim"))
    return grid


def _claim_cells(row: Mapping[str, Any], glyphs: Glyphs) -> list[str]:
    name = row["quantity"] if row["rule"] in (*LAWS, "at least", "at most", "near") else ""
    return [
        row["verdict"],
        row["claim"],
        _shown(name, row["ours"], glyphs),
        _paper_cell(name, row, glyphs),
        str(row["n"]),
        _between(name, row["interval"], glyphs),
    ]


def _paper_cell(name: str, row: Mapping[str, Any], glyphs: Glyphs) -> str:
    """The paper's number; where it prints none, the bound that the claim is held against."""
    sign = {"at least": "≥ ", "at most": "≤ "}.get(row["rule"]) if row["paper"] is None else None
    if sign is None:
        return _shown(name, row["paper"], glyphs)
    return f"{spelled(sign, glyphs)}{_shown(name, row['value'], glyphs)}"


def _printed_cells(row: Mapping[str, Any], glyphs: Glyphs) -> list[str]:
    name = row["quantity"]
    return [
        row["series"],
        spelled(quantity_words(name), glyphs),
        f"{row['paper']:g}",
        _shown(name, row["ours"], glyphs),
        str(row["n"]),
        _between(name, row["interval"], glyphs),
        row["place"],
    ]


def _series_table(columns: Sequence[_Column], glyphs: Glyphs, width: int) -> Table:
    """As many columns as there is room for: a number is shown whole or not at all."""
    shown = {column.title: column.cells for column in columns}
    # of the columns that leave together, the last goes first
    for _, column in sorted(enumerate(columns), key=lambda at: (at[1].leaves, -at[0])):
        if column.leaves == NEVER or room_beside(shown, width) >= -GAP:  # none more has to fit
            break
        del shown[column.title]
    return plain_table(list(shown), zip(*shown.values(), strict=True), glyphs, left=("series",))


def _series_columns(content: Mapping[str, Any], glyphs: Glyphs) -> list[_Column]:
    """The columns of the series that were run, their names first; columns that no series fills are left out."""
    rows = [row for row in content["series"] if row["n"]]
    standard = {entry.name: entry.column for entry in standard_quantities() if entry.column is not None}
    heads = {"rate": _BESIDE["rate"], "n": _BESIDE["n"], **standard, **_BESIDE}
    asked = [text for claim in content["claims"] for text in claim["quantity"].split(";")]
    heads |= {text: Column(quantity_words(text), CLAIMED) for text in asked if text not in heads}
    columns = [_Column("series", NEVER, [row["series"] for row in rows])]
    for name, head in heads.items():
        cells = [_in_column(name, row[name], glyphs) for row in rows]
        if name == "n" or any(cell != glyphs.missing for cell in cells):
            columns.append(_Column(spelled(head.title, glyphs), head.leaves, cells))
    return columns


def _in_column(name: str, value: float | None, glyphs: Glyphs) -> str:
    """A number under its heading, which says percent of accuracies."""
    entry = entry_of(name.partition("@")[0])
    percent = value is not None and entry.column is not None and entry.style == "share"
    return f"{100 * value:.2f}" if percent and value is not None else _shown(name, value, glyphs)


def _shown(name: str, value: float | None, glyphs: Glyphs) -> str:
    """A number as its quantity is read: r to as many digits as it takes, rates and seeds as they are."""
    if value is None:
        return glyphs.missing
    bare = name.partition("@")[0]
    if bare in ("rate", "n"):
        return f"{value:g}"
    if bare in ("r_eval", "r_optimistic") or entry_of(bare).style == "correlation":
        return correlation(value)
    return number(value, 4)


def _between(name: str, ends: Sequence[float] | None, glyphs: Glyphs) -> str:
    if ends is None:
        return glyphs.missing
    return f"[{_shown(name, ends[0], glyphs)}, {_shown(name, ends[1], glyphs)}]"


def state_line(content: Mapping[str, Any]) -> str:
    """Scale, cells, state and claims in a line."""
    if content["state"] == "not run":
        return "not run"
    counts = ", ".join(f"{n} {word}" for word, n in content["counts"].items() if n)
    claims = f"; claims: {counts}" if counts else ""
    run = content["cells"]["run"]
    return f"{content['scale']} scale, {run} {'cell' if run == 1 else 'cells'}, {content['state']}{claims}"


def stand_in_lines(content: Mapping[str, Any]) -> list[str]:
    """A sentence for each data set that stands in for the paper's."""
    return [f"{used} stands in for the paper's {wanted}." for wanted, used in content["stand_ins"].items()]


def provenance_line(content: Mapping[str, Any]) -> str:
    """Devices, versions and time; nothing where nothing was run."""
    made = content["provenance"]
    devices = " and ".join(made["device"])
    versions = ", ".join(f"{name} {' and '.join(made[name])}" for name in LIBRARIES if made[name])
    if not devices and not versions:
        return ""
    tf32 = ", TF32 allowed" if made["tf32"] else ""
    return (
        f"Made on {devices or 'an unnamed device'}{tf32}, with {versions}, in {duration(made['wall_s'])} of computing."
    )


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: Iterable[str] = ()) -> str:
    """A table of plain cells; the columns named in `left` are text."""
    words = set(left)
    head = [title.replace("\n", " ") for title in titles]
    lines = [head, [":--" if title in words else "--:" for title in titles]]
    lines += [[escaped(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is: on one line, in no table's way, nothing starred."""
    return one_line(text.replace("\n", " ")).replace("|", "\\|").replace("*", "\\*")
