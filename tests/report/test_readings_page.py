"""The page on readings is what its script makes of the committed record, and what must hold of the record holds."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
RECORD = REPO / "results" / "readings" / "readings.json"
needs_record = pytest.mark.skipif(not RECORD.is_file(), reason="there is no record in this copy of the code")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    monkeypatch.syspath_prepend(str(REPO / "scripts"))
    monkeypatch.delitem(sys.modules, "readings_page", raising=False)
    return {name: runpy.run_path(str(REPO / "scripts" / f"{name}.py")) for name in ("readings", "readings_page")}


@needs_record
def test_the_committed_page_is_what_the_script_makes(scripts: dict[str, dict[str, Any]]) -> None:
    record, page = json.loads(RECORD.read_text(encoding="utf-8")), REPO / "docs" / "readings.md"
    text = page.read_text(encoding="utf-8")
    assert scripts["readings_page"]["page_text"](record, text) == text, (
        "run: python scripts/readings.py --draw results/readings/readings.json"
    )


@needs_record
def test_one_key_says_what_all_lines_of_the_drawing_are(scripts: dict[str, dict[str, Any]]) -> None:
    figure = scripts["readings_page"]["draw"](json.loads(RECORD.read_text(encoding="utf-8")))
    (key,) = figure.legends
    assert [text.get_text() for text in key.get_texts()] == [
        "eval reading", "mixed reading", "drawn reading", "8 layers", "20 layers", "95 % interval of the mean",
    ]  # fmt: skip
    figure.draw_without_rendering()
    assert all(axes.get_legend() is None for axes in figure.axes)
    assert all(float(tick).is_integer() for axes in figure.axes[:2] for tick in axes.get_xticks())


@needs_record
def test_what_must_hold_in_the_reading_of_the_paper_holds(scripts: dict[str, dict[str, Any]]) -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    lines = list(scripts["readings_page"]["checks"](record))
    judged = [line for line in lines if line.endswith("hold") or line.endswith("holds")]
    assert record["settings"]["seeds"] >= 10
    assert len(judged) == 6 and all(line.endswith(": holds") for line in judged), "\n".join(judged)
    for data, depths in (("MNIST", (5, 8)), ("Fashion-MNIST", (9, 12)), ("CIFAR-10", (11, 13))):
        found = next(line for line in lines if line.startswith(f"{data}, drawn"))
        assert depths[0] <= int(found.split("least final D at ")[1].split()[0]) <= depths[1]


def test_a_small_run_has_everything_the_page_asks_for(
    scripts: dict[str, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = scripts["readings"]["run"]
    rates = {"adam": {4: 3e-3, 8: 1e-3}, "momentum": {4: 0.3}, "sgd": {4: 0.3}}
    run.__globals__.update({
        "DEPTHS": {"fashion-mnist": (4,)}, "RATES": (3e-3,), "AUTHORS": rates, "EQUAL": 20, "LARGE": 40, "SMALL": (40, 20),
        "BATCHES": (25, 100),
    })  # fmt: skip
    record = run(None, 2, "cpu", epochs=1)
    assert "mnist: not at hand, left out" in capsys.readouterr().out
    scripts["readings"]["saved"](record, tmp_path / "readings.json")
    again = json.loads((tmp_path / "readings.json").read_text(encoding="utf-8"))
    assert len(again["entries"]) == len(record["entries"]) and again["settings"]["data"].keys() == {"fashion-mnist"}
    sizes = {(entry["large"], entry["small"], entry["batch_size"]) for entry in again["entries"]}
    assert {(20, 20, 100), (20, 20, 25), (40, 40, 100), (40, 20, 100), (40, 20, 25)} <= sizes
    for entry in again["entries"]:
        assert list(entry["readings"]) == ["eval", "mixed", "drawn"]
        assert all(len(own[name]) == 2 for own in entry["readings"].values() for name in ("r", "rho", "last"))
