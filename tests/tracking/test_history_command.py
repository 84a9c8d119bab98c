"""`equisep history`: the law over the epochs in the terminal, as JSON and as a drawing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_history import HEADER, entry

from cli.running import equisep
from equisep import History
from equisep.tracking import Entry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    history = History.open(tmp_path / "h.jsonl", replace(HEADER, minority=()))
    for number in range(1, 46):
        history.append(replace(entry(number, max(0.02, 1 / number)), minority_cosine=None))
    history.append(Entry(number=46, failure="Site `a` holds NaN."))
    return tmp_path


def test_the_terminal(folder: Path) -> None:
    done = equisep("history", "h.jsonl", "--draw", "h.png", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "Net: 46 readings of 20 samples at 3 sites" in done.stdout
    assert "The law: emerged at epoch 1. Rule: there at r ≤ -0.996" in done.stdout
    assert "Neural collapse: emerged at epoch 8." in done.stdout
    flat = " ".join(done.stdout.split())
    assert "Minority collapse: cannot be said: no class is a minority (at most half of the largest size)." in flat
    assert "1 of 46 readings failed; the last: Site `a` holds NaN." in flat
    assert flat.startswith(
        "1. The last reading, of epoch 46, failed: Site `a` holds NaN. The law before: emerged at epoch 1."
    )
    assert sum(line.split()[:1] == ["46"] for line in done.stdout.splitlines()) == 1
    assert (folder / "h.png").stat().st_size > 10_000


def test_json(folder: Path) -> None:
    done = equisep("history", "h.jsonl", "--json", folder=folder)
    content = json.loads(done.stdout)
    assert len(content["readings"]) == 46 and content["readings"][1]["rho"] == pytest.approx(0.25)
    assert content["emergence"]["law"]["first"] == 1 and content["settled"]["settled"] is False
    assert [each["code"] for each in content["findings"]] == ["nothing-measured"]
    assert content["header"]["model"] == "Net" and content["damaged_lines"] == 0


def test_what_is_no_history_is_one_sentence(folder: Path) -> None:
    done = equisep("history", "none.jsonl", folder=folder)
    assert done.returncode == 2 and "No history at `none.jsonl`" in done.stderr
    unfit = equisep("history", "h.jsonl", "--draw", "h.doc", folder=folder)
    assert unfit.returncode == 2 and "h.doc" in unfit.stderr


def test_a_history_is_no_profile_and_the_error_names_the_command(folder: Path) -> None:
    done = equisep("law", "h.jsonl", folder=folder)
    assert done.returncode == 2
    assert "is the history of a training, not a profile" in " ".join(done.stderr.split())
    assert "equisep history h.jsonl" in " ".join(done.stderr.split())


def test_a_profile_of_one_epoch(folder: Path) -> None:
    for options, number in (((), 45), (("--epoch", "7"), 7)):
        done = equisep("history", "h.jsonl", "--out", "p.json", *options, folder=folder)
        assert done.returncode == 0 and f"The profile of epoch {number}: p.json" in done.stderr
        written = History.load(folder / "h.jsonl").profile(number)
        assert json.loads((folder / "p.json").read_text())["law"]["rho"] == written.law.rho
    assert equisep("law", "p.json", folder=folder).returncode == 0
    for options, words in (
        (("--epoch", "7"), "say where to, with `--out FILE`"),
        (("--epoch", "77", "--out", "p.json"), "No reading of epoch 77: the history has 46 readings, from 1 to 46."),
        (("--epoch", "46", "--out", "p.json"), "The reading of epoch 46 failed: Site `a` holds NaN."),
    ):
        wrong = equisep("history", "h.jsonl", *options, folder=folder)
        assert wrong.returncode == 2 and words in " ".join(wrong.stderr.split())


def test_damaged_lines_are_told_of_and_files_that_are_none_are_refused(folder: Path) -> None:
    lines = (folder / "h.jsonl").read_text().splitlines(keepends=True)
    (folder / "hurt.jsonl").write_text("".join([*lines[:3], lines[3][:40] + "\n", *lines[4:]]))
    told = equisep("history", "hurt.jsonl", folder=folder)
    assert told.returncode == 0 and "1 line of the file is damaged and passed over" in " ".join(told.stdout.split())
    (folder / "empty.jsonl").touch()
    refused = equisep("history", "empty.jsonl", folder=folder)
    assert refused.returncode == 2 and "`empty.jsonl` is empty" in refused.stderr
    refused = equisep("explain", ".", folder=folder)
    assert refused.returncode == 2 and "`.` is a folder, not a profile." in refused.stderr
