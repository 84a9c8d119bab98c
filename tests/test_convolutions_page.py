"""What docs/training.md says of convolutions on a GPU is what the committed record of benchmarks/convolutions.py holds."""

from __future__ import annotations

import json
from pathlib import Path

REPO = Path(__file__).parent.parent


def test_ratios_are_those_of_the_record() -> None:
    (path,) = (REPO / "benchmarks" / "results").glob("convolutions-*.json")
    rows = json.loads(path.read_text(encoding="utf-8"))["networks"]
    words = " ".join((REPO / "docs" / "training.md").read_text(encoding="utf-8").split())

    def span(way: str, other: str) -> str:
        ratios = [row[way]["ms"] / row[other]["ms"] for row in rows]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    assert len(rows) == 10 and "H200" in path.name.upper()
    assert f"takes {span('channels_last', 'graphs')} of the time per step of the usual layout" in words
    assert f"changes a step by a factor of {span('tried', 'channels_last')}" in words
    assert f"replayed steps take {span('graphs', 'eager')} of the time of a plain loop's" in words
