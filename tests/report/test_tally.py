"""The tally of a record: a row stands for judging only while all that it was made of is unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from equisep.cli.app import main
from equisep.figures.catalogue import all_figures
from equisep.figures.figure import Figure
from equisep.figures.judge import judge
from equisep.report.figures import tally as tallying
from equisep.report.figures.list import ListRow, list_row
from equisep.report.figures.tally import TALLY, Tally, tally_text
from equisep.runs.record import recorded_evidence, write_record
from figures.synthetic_figures import shown_evidence

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Figure, ListRow]:
    """A folder with one record and its tally: the figure, and the row that judging gives."""
    found = shown_evidence()
    entries = [entry for each in found.series.values() for entry in each.entries]
    path = write_record(tmp_path / f"{found.figure.id}.json", entries, found.figure, "paper")
    evidence = recorded_evidence(found.figure, path)
    row = list_row(evidence, judge(evidence), recorded=True)
    other = ListRow(replace(found.figure, id="test/other"), "not run", None, row.claims)
    (tmp_path / TALLY).write_text(tally_text((row, other), tmp_path))
    return found.figure, row


def test_a_row_is_what_judging_gives(kept: tuple[Figure, ListRow], tmp_path: Path) -> None:
    figure, row = kept
    tally = Tally.of(tmp_path)
    assert list(tally.figures) == [figure.id]  # what has no record has no row
    assert tally.row(figure) == row and row.claims["held"] == 2
    assert tally.row(replace(figure, id="test/other")) is None


def test_a_row_is_gone_when_anything_it_was_made_of_changes(
    kept: tuple[Figure, ListRow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure, row = kept
    tally = Tally.of(tmp_path)
    stricter = tuple(replace(claim, text=f"{claim.text}!") for claim in figure.claims)
    assert tally.row(replace(figure, claims=stricter)) is None
    monkeypatch.setattr(tallying, "_rules", lambda: b"other rules")
    assert tally.row(figure) is None
    monkeypatch.undo()
    assert tally.row(figure) == row
    path = tmp_path / f"{figure.id}.json"
    path.write_text(path.read_text() + "\n")
    assert Tally.of(tmp_path).row(figure) is None
    path.unlink()
    assert Tally.of(tmp_path).row(figure) is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"kind":"other","figures":{}}', '{"kind":"equisep-tally"}'])
def test_a_tally_that_cannot_be_read_says_nothing(kept: tuple[Figure, ListRow], tmp_path: Path, content: str) -> None:
    (tmp_path / TALLY).write_text(content)
    assert Tally.of(tmp_path).row(kept[0]) is None
    assert Tally.of(None).row(kept[0]) is None


@pytest.mark.skipif(not RESULTS.is_dir(), reason="there is no record in this copy of the code")
def test_the_list_reads_the_tally_of_the_committed_record_and_judges_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """That its rows are what judging gives, the test of the committed pages shows: one script writes both."""

    def read(*_: object) -> None:
        raise AssertionError("a record was read; run: python scripts/make_figures_page.py")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUISEP_RESULTS", str(RESULTS))
    monkeypatch.setattr("equisep.runs.record.recorded_evidence", read)
    monkeypatch.setattr("sys.argv", ["equisep", "figures", "list", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == [figure.id for figure in all_figures()]
    known = {row["id"] for row in rows if row["state"] != "not run"}
    assert known == {figure.id for figure in all_figures() if (RESULTS / f"{figure.id}.json").is_file()}
