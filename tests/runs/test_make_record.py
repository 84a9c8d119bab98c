"""What `scripts/make_record.py` takes of a figure: all, some series, or these at one rate, with what is recorded reused."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from equisep.figures.catalogue import figure_of
from equisep.runs.plan import RunOptions, cells_to_run
from equisep.runs.record import read_record
from equisep.runs.store import Store

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(REPO / "scripts" / "make_record.py"))


def test_series_at_one_rate_are_trained_at_that_rate_alone(script: dict[str, Any]) -> None:
    figure = figure_of("he2023/fig4")
    part = script["part_of"](figure, "alexnet-*", 1e-3)
    assert [series.name for series in part.series] == ["alexnet-fm", "alexnet-cifar"]
    planned = cells_to_run(part, RunOptions(scale="paper", seeds=2))
    assert {each.cell.rate for each in planned} == {1e-3} and len(planned) == 4
    assert {each.cell.seed for each in planned} == {0, 1}
    whole = script["part_of"](figure, "alexnet-*", None)
    assert whole.choose == figure.choose and whole.series[0].rates == figure.series[0].rates


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("he2023/fig4:alexnet-*@0.05", "Series `alexnet-fm` of `he2023/fig4` is not tried at rate 0.05. Give one of 3e-05, "),
        ("fang2021/balanced:*@0.1", "is not tried at rate 0.1. Leave the rate out."),
        ("he2023/fig4:resnet-*", "Figure `he2023/fig4` has no series `resnet-*`."),
        ("he2023/fig4:alexnet-*@fast", "asked for as ID[:GLOB[@RATE]][=SEEDS], such as he2023/fig4:alexnet-*@1e-3=3; found"),
        ("he2023/fig4=many", "found `he2023/fig4=many`."),
    ],
)  # fmt: skip
def test_what_a_figure_does_not_have_is_refused_before_anything_is_trained(
    script: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: str, words: str
) -> None:
    """What was trained at a rate that the figure does not try would be no part of it."""
    monkeypatch.setattr("sys.argv", ["make_record.py", "he2023/fig1", asked])
    with pytest.raises(SystemExit):
        script["main"]()
    assert words in capsys.readouterr().err


def test_what_is_recorded_is_not_trained_again(script: dict[str, Any], tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    script["take_recorded"](REPO / "results", {"he2023/figS3"}, store)
    record = read_record(REPO / "results" / "he2023" / "figS3.json")
    keys = {entry.cell.key for entry in record.entries}
    assert keys and store.done(keys) == keys
