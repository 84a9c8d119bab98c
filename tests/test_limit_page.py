"""The tables on the limit in docs/training.md are those that are counted and that the committed record of limit.py gives."""

from __future__ import annotations

from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent


def test_tables_are_those_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import _limit_page

    text = (REPO / "docs" / "training.md").read_text(encoding="utf-8")
    page, words = text.splitlines(), " ".join(text.split())
    (record,), (on_two_cores,) = _limit_page.records("nvidia-h200"), _limit_page.records("cpu")
    of_gpu = [line for table in (_limit_page.rates, _limit_page.on_gpu, _limit_page.counters) for line in table(record)]
    for line in [*_limit_page.counted(), *of_gpu, *_limit_page.on_cpu(on_two_cores)]:
        assert line in page, line
    for phrase in _limit_page.said(record):
        assert phrase in words, phrase


def test_a_row_says_what_the_record_has_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
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
    rows = [
        {**row, "kernel_tf32_trainings_per_second": 150.0, "graphs_trainings_per_second": 38.1},
        row,
        {"depth": 8, "width": 100, "members": 1, "builds": {}},
    ]
    assert _limit_page.on_gpu({"rows": rows}) == [
        "| depth | width | members | blocks a member | kernel | TFLOP/s | of the floor | with TF32 | TFLOP/s with TF32 "
        "| graphs |",
        "|---|---|---|---|---|---|---|---|---|---|",
        "| 8 | 100 | 264 | 1 | 71.3 | 17.4 | 27% | 150.0 | 36.5 | 38.1 |",
        "| 8 | 100 | 264 | 1 | 71.3 | 17.4 | 27% | – | – | – |",
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


def test_one_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import subprocess

    import limit

    run = limit.Limit(tmp_path, device="cpu", minutes=1, longest=0.2)
    assert run.take("slow", lambda: subprocess.run(["sleep", "60"], check=True)) is None
    assert run.take("quick", lambda: 1.0) == 1.0
    assert run.record["failed"] == {"slow": "TimeoutError: it took more than 0.2 s"} and run.left > 30


@pytest.mark.parametrize("every_build", [True, False])
@pytest.mark.parametrize("rates", [None, {"operations": 6e13, "bytes": 4e12}])
def test_the_most_telling_is_measured_first(
    rates: dict[str, float] | None, every_build: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fig. 1, the kernel with 264 members of depth 8, its counters, then other depths and widths; with ceilings or without."""
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    import _limit_gpu
    import limit
    from equisep.training import Shape
    from equisep.training.ensemble.kernel import stage
    from equisep.training.ensemble.kernel.layout import Build

    def build_for(shape: Shape, *, tf32: bool, **_: object) -> Build:
        return Build.of(shape, resident=2, tf32=tf32)

    def builds_of(shape: Shape, *_: object, tf32: bool) -> list[Build]:
        return [Build.of(shape, resident=resident, tf32=tf32) for resident in (1, 2)]

    monkeypatch.setattr(stage, "build_for", build_for)
    monkeypatch.setattr(_limit_gpu, "builds_of", builds_of)
    taken: list[str] = []

    class Noted(limit.Limit):
        def take(self, what: str, measure: object, *, into: dict[str, object] | None = None, **_: object) -> object:
            taken.append(what)
            if into is not None and what.startswith("cluster"):
                into[what] = 71.0
            return rates if what == "ceilings_per_second" else None

    run = Noted(None, device="cpu", minutes=1)
    limit.on_gpu(run, every_build=every_build)
    builds = (2, 1) if every_build else (2,)
    first = [
        "fig1_grid_1_seeds",
        "fig1_grid_10_seeds",
        "ceilings_per_second",
        "ceilings_per_second_tf32",
        *(f"cluster 1, resident {n}{ending}" for ending in ("", ", TF32") for n in builds),
        "264 members of depth 8, cluster 1, resident 2",
        "264 members of depth 8, cluster 1, resident 2, TF32",
    ]
    assert taken[: len(first)] == first
    assert taken.index("compiled_trainings_per_second") < taken.index("vmap_264_trainings_per_second")
    rows = [(row["depth"], row["width"], row["members"]) for row in run.record["rows"]]
    assert rows[:3] == [
        (8, 100, 264),
        (20, 100, 264),
        (4, 100, 264),
    ]  # what no record has yet comes before fewer members
    assert ("kernel_share_of_floor" in run.record["rows"][0]) is (rates is not None)
    assert run.record["seconds_of_100000_trainings_of_depth_8_tf32"] == 1e5 / 71
