"""What the pages of simulations share: committed results as rows, and tables of Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
DOCS, RESULTS = REPO / "docs", REPO / "simulations" / "results"
Row = Mapping[str, Any]


def rows_of(simulation: str, table: str) -> list[Row]:
    """One table of a simulation's committed result."""
    content = json.loads((RESULTS / f"{simulation}.json").read_text(encoding="utf-8"))
    return list(content["tables"][table])


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> str:
    """A table, all but its first column to the right, unless they hold words."""
    lines = [titles, [":--", *[":--" if words else "--:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float | None) -> str:
    """A rate; the simulations know no more than a tenth of a percent."""
    return "–" if share is None else f"{100 * share:.1f} %"
