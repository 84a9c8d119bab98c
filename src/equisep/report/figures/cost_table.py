"""What runs would cost, in the terminal: cells, groups, time and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.report.formatting import Glyphs
from equisep.report.tables import plain_table
from equisep.report.terminal import View


def render_plans(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One row a figure, and what they take together."""
    return View(lambda glyphs, width: Group(_table(rows, glyphs), Text(_sums(rows), style="dim")))


def _table(rows: Sequence[Mapping[str, Any]], glyphs: Glyphs) -> RenderableType:
    titles = ("figure", "cells", "stored", "to run", "groups", "time", "memory")
    cells = [
        [
            row["id"],
            str(row["cells"]),
            str(row["stored"]),
            str(row["cells_to_run"]),
            str(row["groups"]),
            duration(row["seconds"]),
            size(row["bytes"]),
        ]
        for row in rows
    ]
    return plain_table(titles, cells, glyphs, left=("figure",))


def _sums(rows: Sequence[Mapping[str, Any]]) -> str:
    cells, groups = (sum(row[name] for row in rows) for name in ("cells_to_run", "groups"))
    time = duration(sum(row["seconds"] for row in rows))
    most = size(max((row["bytes"] for row in rows), default=0))
    device = rows[0]["device"] if rows else ""
    return (
        f"{cells} cells in {groups} groups that train together; predicted for {device}: {time}, at most {most} at once. "
        "Nothing was run."
    )


def duration(seconds: float) -> str:
    """`0.4 s`, `12 min`, `3.5 h`, `2.1 days`, `3.4 years`."""
    for unit, name in ((365.25 * 86400, "years"), (86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.2g} s"


def size(count: int) -> str:
    """Bytes in the largest unit that leaves one or more: `3.4 GiB`."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"
