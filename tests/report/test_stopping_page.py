"""The section of docs/tracking.md on stopping is what the committed record says, and so is what `Stopping` says of itself."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from equisep.figures.judge import judge
from equisep.tracking import Stopping

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(REPO / "scripts" / "stopping_page.py"))


def test_the_page_says_what_the_record_says(script: dict[str, Any]) -> None:
    text = script["PAGE"].read_text(encoding="utf-8")
    assert script["page_text"](text, script["recorded"]()) == text, "run scripts/stopping_page.py"
    with pytest.raises(SystemExit, match=r"tracking.md has lost"):
        script["page_text"](text.replace("<!-- end of the best rule -->", ""), script["recorded"]())


def test_stopping_recommends_nothing_that_the_record_does_not_support(script: dict[str, Any]) -> None:
    evidence = script["recorded"]()
    assert all(len(found.chosen) == 10 for found in evidence.series.values())
    costs = {each.claim.of[0]: each for each in judge(evidence) if each.claim.quantity == "lost_law"}
    clean = [
        costs[f"{setting}-{schedule}"] for setting in ("fm8", "fm20", "few8") for schedule in ("steps", "constant")
    ]
    verdicts = [each.verdict for each in clean]
    assert set(verdicts) == {"contradicted", "undecided"} and verdicts.count("contradicted") == 5
    assert all(1 <= (each.ours or 0) < 4.5 for each in clean), "one to four points, as the docstring of `Stopping` says"
    assert "Not a rule to be recommended" in (Stopping.__doc__ or "")
