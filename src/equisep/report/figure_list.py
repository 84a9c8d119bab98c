"""All figures in one table: id, state, claims, title."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.figures.evidence import Evidence
from equisep.figures.judge import Verdict
from equisep.report.figure_rows import counts_of, state_of
from equisep.report.tables import plain_table
from equisep.report.terminal import View
from equisep.report.words import Glyphs, one_line


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
    return View(lambda glyphs, width: Group(_table(rows, glyphs), Text(_sums(rows), style="dim")))


def _table(rows: Sequence[Mapping[str, Any]], glyphs: Glyphs) -> RenderableType:
    table = plain_table(("figure", "state", "claims", "title"), (), glyphs, left=("figure", "state", "claims", "title"))
    table.columns[-1].no_wrap = False
    for column in table.columns:
        column.vertical = "top"
    for row in rows:
        scale = f", {row['scale']}" if row["scale"] == "smoke" else ""
        state = Text(f"{row['state']}{scale}", style="dim" if row["state"] == "not run" else "")
        table.add_row(Text(row["id"]), state, Text(claim_words(row["claims"])), Text(one_line(row["title"])))
    return table


def claim_words(counts: Mapping[str, int]) -> str:
    """`3 held, 1 not held`; those not run only where nothing else is to tell."""
    told = [f"{n} {word}" for word, n in counts.items() if n and word != "not run"]
    rest = counts["not run"]
    if not told:
        return f"{rest} not run" if rest else "none"
    return ", ".join([*told, f"{rest} not run"] if rest else told)


def _sums(rows: Sequence[Mapping[str, Any]]) -> str:
    run = sum(row["state"] != "not run" for row in rows)
    words = ("held", "not held", "indicated", "not run")
    claims = ", ".join(f"{sum(row['claims'][word] for row in rows)} {word}" for word in words)
    return f"{len(rows)} figures, {run} of them run; claims: {claims}."
