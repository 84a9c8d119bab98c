"""The tables of docs/scale.md are those that the committed record of benchmarks/scale.py gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]


def test_the_tables_are_those_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import scale

    (path,) = (REPO / "benchmarks" / "results").glob("scale-cpu-*.json")
    record, page = (
        json.loads(path.read_text(encoding="utf-8")),
        (REPO / "docs" / "scale.md").read_text(encoding="utf-8"),
    )
    assert scale.speed_of(record) in page
    assert scale.stored_of(record) in page
    assert scale.costs_of(record) in page
    (path,) = (REPO / "benchmarks" / "results").glob("scale-nvidia-*.json")
    assert scale.gpu_of(json.loads(path.read_text(encoding="utf-8"))) in page
    for name in ("scale", "scale_gpu", "fuzziness", "_record"):  # named as modules of others may be
        sys.modules.pop(name, None)
