"""The tables on the limit in docs/training.md are those that are counted and that the committed record of limit.py gives."""

from __future__ import annotations

from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent


def test_tables_are_those_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import _limit_page

    page = (REPO / "docs" / "training.md").read_text(encoding="utf-8").splitlines()
    (record,), (on_two_cores,) = _limit_page.records("nvidia-h200"), _limit_page.records("cpu")
    for line in [*_limit_page.counted(), *_limit_page.on_gpu(record), *_limit_page.on_cpu(on_two_cores)]:
        assert line in page, line


def test_tf32_has_columns_where_a_record_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that was not reached is left out, one without TF32 says so."""
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import _limit_page

    row = {
        "depth": 8,
        "width": 100,
        "members": 264,
        "build": "cluster 1, resident 2",
        "kernel_trainings_per_second": 71.3,
    }
    rows = [{**row, "kernel_tf32_trainings_per_second": 150.0}, row, {"depth": 8, "width": 100, "members": 1}]
    assert _limit_page.on_gpu({"rows": rows}) == [
        "| depth | members | blocks a member | trainings a second | TFLOP/s | of the floor | with TF32 | TFLOP/s with TF32 |",
        "|---|---|---|---|---|---|---|---|",
        "| 8 | 264 | 1 | 71.3 | 17.4 | 27% | 150.0 | 36.5 |",
        "| 8 | 264 | 1 | 71.3 | 17.4 | 27% | – | – |",
    ]


def test_a_run_that_is_cut_off_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every measurement is written at once; one that fails is named, and none begins when time is up."""
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import json

    import limit

    run = limit.Limit(tmp_path, device="cpu", minutes=1)
    run.take("first", lambda: 1.5)
    (path,) = tmp_path.glob("limit-cpu-*.json")
    assert json.loads(path.read_text())["first"] == 1.5
    run.take("broken", lambda: 1 / 0)
    row = run.row("rows", depth=8)
    run.take("cell", lambda: {"rate": 2.0}, into=row, flat=True)
    run.until = 0.0
    assert run.take("late", lambda: 3.0) is None
    kept = json.loads(path.read_text())
    assert kept["failed"] == {"broken": "ZeroDivisionError: division by zero"} and kept["not_reached"] == ["late"]
    assert kept["rows"] == [{"depth": 8, "rate": 2.0}] and kept["machine"]["device"] == "cpu"
