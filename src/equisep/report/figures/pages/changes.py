"""The page of changes: claims that were restated or dropped after numbers had been seen, each with its date and its reason."""

from __future__ import annotations

from collections.abc import Sequence

from equisep.figures.changes import Change
from equisep.report.figures.markdown import markdown_table


def changes_page(changes: Sequence[Change]) -> str:
    """A table of all changes, the latest first."""
    rows = [
        (one.date, one.figure, one.was, one.now or "dropped", one.why)
        for one in sorted(changes, key=lambda one: one.date, reverse=True)
    ]
    titles = ("date", "figure", "was", "now", "why")
    table = markdown_table(titles, rows, left=titles) if rows else "None."
    intro = "A rule that changes after numbers have been seen is a finding too. Each change is dated, with its reason."
    return f"# Claims that were restated\n\n{intro} [All figures](index.md)\n\n{table}\n"
