"""Histories: lines that are whole or not there, no number twice, and a reader that says what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from equisep import History, Profile, fit_law
from equisep.errors import InputError, StoreError
from equisep.files import LineFile
from equisep.results import Note, SiteReading
from equisep.tracking import Entry, Header

HEADER = Header(
    model="Net", module="Net", parameters=120, weights="00ff", sites=("input", "a", "b"), classes=2, subset="1-2", samples=20,
    class_names=("cat", "dog"), options={"reading": "eval", "tol": None},
)  # fmt: skip


def profile(scale: float = 1.0) -> Profile:
    """A small profile of three sites; `scale` below 1 makes D fall faster."""
    curve = [4.0, 2.0 * scale, 1.0 * scale**2]
    sites = tuple(
        SiteReading(
            index=i, name=name, dim=3, fuzziness=d, nc1=d / 2, ncc_train=1 - d / 10, ncc_class_train=(1.0, None)
        )
        for i, (name, d) in enumerate(zip(HEADER.sites, curve, strict=True))
    )
    return Profile(
        model="Net", classes=2, counts=(10, 10), sites=sites, law=fit_law(curve), reading="eval", class_names=("cat", "dog"),
        settings={"grain": "layers", "tol": None}, provenance={"torch": "2"}, notes=(Note("a", "b"),), accuracy_train=0.9,
    )  # fmt: skip


def entry(number: int, scale: float = 1.0) -> Entry:
    return Entry(number=number, profile=profile(scale), seconds=0.5, minority_cosine=0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "h.jsonl"


def written(path: Path, numbers: range | list[int]) -> History:
    history = History.open(path, HEADER)
    for number in numbers:
        history.append(entry(number, 1 / number))
    return history


def test_what_is_written_comes_back_whole(path: Path) -> None:
    history = written(path, range(1, 4))
    history.append(Entry(number=4, failure="Site `a` holds NaN."))
    again = History.load(path)
    assert again.header == HEADER
    assert again.entries == history.entries
    assert again.numbers == (1, 2, 3) and len(again) == 4 and 4 in again
    assert again.profile(2) == profile(1 / 2)
    assert again.curves()[3] == profile(1 / 3).curve()
    assert again.last is not None and again.last.failure == "Site `a` holds NaN."
    assert repr(again) == "<History: 4 readings of Net, 3 sites, epochs 1 to 4, 1 failed, ρ 0.167>"


def test_every_beginning_of_a_file_is_a_history(path: Path) -> None:
    """Whatever byte a killed process came to: whole lines are readings, the rest is overwritten by the next."""
    written(path, range(1, 4))
    content = path.read_bytes()
    ends = [i for i, byte in enumerate(content) if byte == ord("\n")]
    for cut in [*range(ends[0] + 1, len(content), 37), *(end + step for end in ends for step in (0, 1))]:
        if cut <= ends[0]:
            continue
        path.write_bytes(content[:cut])
        whole = sum(end < cut for end in ends) - 1
        assert History.load(path).numbers == tuple(range(1, whole + 1))
        again = History.open(path, HEADER)
        again.append(entry(whole + 1, 0.5))
        assert History.load(path).numbers == tuple(range(1, whole + 2))
        assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_training_that_begins_anew_replaces_what_it_reads_again(path: Path) -> None:
    written(path, [2, 4, 6, 8])
    again = History.open(path, HEADER)
    again.forget_after(5)
    again.append(entry(7, 0.1))
    assert again.numbers == (2, 4, 7)
    loaded = History.load(path)
    assert loaded.numbers == (2, 4, 7) and loaded.profile(7) == profile(0.1)
    loaded.append(entry(2, 0.2))
    assert History.load(path).numbers == (2,) and History.load(path).profile(2) == profile(0.2)


def test_a_history_of_another_model_or_other_samples_is_refused(path: Path) -> None:
    written(path, [1])
    for other, words in (
        (
            replace(HEADER, weights="0", parameters=7),
            "it is of `Net` with 120 parameters, and the model is `Net` with 7",
        ),
        (replace(HEADER, weights="0"), "120 of other names or shapes"),
        (replace(HEADER, module="Other"), "the model is `Other`"),
        (replace(HEADER, sites=("input", "c")), "it was read at 3 sites, and the model is read at 2 others"),
        (replace(HEADER, subset="9"), "its 20 samples are others than the 20 drawn now"),
        (
            replace(HEADER, subset="1-2+3-4", samples_test=9),
            "it was read without test data, and now there are 9 test samples",
        ),
        (replace(HEADER, options={"reading": "mixed"}), "it was read with reading='eval', now 'mixed'"),
    ):
        with pytest.raises(StoreError, match=f"does not go on with this training: .*{words}.*Give another file"):
            History.open(path, other)


def test_other_test_samples_are_named() -> None:
    tested = replace(HEADER, subset="1-2+3-4", samples_test=9)
    assert tested.why_other(HEADER) == "it was read with 9 test samples, and now there are no test data"
    other = replace(tested, subset="1-2+3-5", samples_test=8)
    assert tested.why_other(other) == "its 9 test samples are others than the 8 drawn now"


def test_a_training_that_begins_anew_leaves_nothing_of_the_former_in_the_file(path: Path) -> None:
    written(path, [3, 6])
    again = History.open(path, HEADER)
    again.forget_after(1)  # its first epoch, which is not read
    again.append(entry(5))
    again.append(entry(10))
    assert History.load(path).numbers == again.numbers == (5, 10)


def test_a_file_that_was_deleted_is_said_and_may_be_put_back(path: Path) -> None:
    history = written(path, [1, 2])
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StoreError, match=r"is no longer there: it was deleted or moved .* Put it back") as said:
        history.append(entry(3))
    assert "intact" not in str(said.value) and not path.exists()
    path.write_bytes(content)
    history.append(entry(4))
    assert History.load(path).entries == history.entries and history.numbers == (1, 2, 3, 4)


def test_readings_that_fail_in_the_end_have_not_settled() -> None:
    good = [entry(number) for number in range(1, 9)]
    assert History(HEADER, good).settled() and History(HEADER, good).findings[0].code == "settled"
    history = History(HEADER, [*good, *(Entry(number=n, failure="Site `a` holds NaN.") for n in range(9, 12))])
    assert not history.settled()
    assert history.settled().reason == "The last 3 readings, from epoch 9 on, failed."
    (finding,) = history.findings
    assert finding.text.startswith("The last 3 readings, from epoch 9 on, failed: Site `a` holds NaN. The law before: ")
    one = History(HEADER, [*good, Entry(number=9, failure="No memory")])
    assert one.findings[0].text.startswith("The last reading, of epoch 9, failed: No memory.")
    none = History(HEADER, [Entry(number=n, failure="Site `a` holds NaN.") for n in (1, 2)])
    assert [each.text for each in none.findings] == ["All 2 readings failed: Site `a` holds NaN."]
    again = History(HEADER, [*history.entries, entry(12)])
    assert again.settled() and "failed" not in again.findings[0].text
    assert "holds no reading" in History(HEADER).findings[0].text


def test_files_that_are_no_history(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(StoreError, match="No history at"):
        History.load(path)
    path.write_text("")
    with pytest.raises(StoreError, match="is empty, so it is no history"):
        History.load(path)
    for text in ("hello", "hello\n", '{"kind": "equisep profile"}\n', "[]\n"):
        path.write_text(text)
        with pytest.raises(StoreError, match="is no equisep history"):
            History.open(path, HEADER)
        assert path.read_text() == text
    path.write_text('{"kind": "equisep history", "schema": 99}\n')
    with pytest.raises(StoreError, match="newer equisep"):
        History.load(path)
    path.write_text('{"kind": "equisep history", "schema": 1, "model": 3}\n')
    with pytest.raises(StoreError, match="cannot be read as a history"):
        History.load(path)
    with pytest.raises(StoreError, match="cannot be read as a history"):
        History.load(tmp_path)


def test_damaged_lines_in_the_middle_are_passed_over(path: Path) -> None:
    written(path, range(1, 4))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 20 + b"\n"
    path.write_bytes(b"".join(lines))
    history = History.load(path)
    assert history.numbers == (1, 3) and history.damaged == 1


def test_another_program_that_writes_is_noticed(path: Path) -> None:
    one = written(path, [1])
    two = History.open(path, HEADER)
    two.append(entry(2))
    with pytest.raises(StoreError, match="was changed by another program"):
        one.append(entry(2))
    assert History.load(path).numbers == (1, 2)


def test_a_disk_that_is_full_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = written(path, [1])
    real = LineFile.append

    def full(self: LineFile, line: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(LineFile, "append", full)
    for number in (2, 3):
        with pytest.raises(StoreError, match="full"):
            history.append(entry(number))
    assert history.numbers == (1, 2, 3)
    monkeypatch.setattr(LineFile, "append", real)
    history.append(entry(4))
    assert History.load(path).entries == history.entries


def test_bad_questions() -> None:
    history = History(HEADER, [entry(1), Entry(number=2, failure="It failed.")])
    with pytest.raises(InputError, match=r"No reading of epoch 5: the history has 2 readings, from 1 to 2\."):
        history.profile(5)
    with pytest.raises(InputError, match=r"The reading of epoch 2 failed: It failed\."):
        history.profile(2)
    with pytest.raises(InputError, match="No curve `d`"):
        history.curves("d")
    with pytest.raises(InputError, match="no reading to draw"):
        History(HEADER).plot()
    with pytest.raises(InputError, match="the history has no reading"):
        History(HEADER)[1]


def test_frames() -> None:
    pytest.importorskip("pandas")
    history = History(HEADER, [entry(1), entry(2, 0.5), Entry(number=3, failure="It failed.")])
    sites = history.to_frame()
    assert sites.index.names == ["epoch", "site"] and len(sites) == 6
    assert sites.loc[(2, 1), "fuzziness"] == 1.0 and sites.loc[(2, 1), "name"] == "a"
    laws = history.to_frame(sites=False)
    assert list(laws.index) == [1, 2, 3] and laws.loc[3, "failure"] == "It failed."
    empty = History(HEADER, [Entry(number=3, failure="It failed.")]).to_frame()
    assert empty.index.names == ["epoch", "site"] and len(empty) == 0
    assert list(empty.columns) == list(sites.columns)
    assert list(History(HEADER).to_frame().columns) == list(sites.columns)
    none = History(HEADER).to_frame(sites=False)
    assert len(none) == 0 and list(none.columns) == list(laws.columns) and none.index.name == "epoch"
    assert laws.loc[1, "rho"] == pytest.approx(0.5) and laws.loc[2, "fuzziness_last"] == 0.25


def test_plots(tmp_path: Path) -> None:
    history = History(HEADER, [entry(n, 1 / n) for n in range(1, 6)])
    figure = history.plot(tmp_path / "h.png")
    assert (tmp_path / "h.png").stat().st_size > 10_000
    curves, ratio, work, depth, *_ = figure.axes
    assert len(curves.lines) == 5
    (mesh,) = work.collections
    reached = mesh.get_coordinates()[0, :, 0]
    assert (reached.min(), reached.max()) == (1, 5)  # no cell stands where nothing was read
    assert ratio.get_xlim() == work.get_xlim() == depth.get_xlim()
    assert "law from epoch 1" in [text.get_text() for text in ratio.get_legend().get_texts()]
    rising = replace(profile(), law=fit_law([1.0, 2.0, 4.0]), effective_depth=None)
    alone = History(HEADER, [Entry(number=7, unit="step", profile=rising)]).plot(title="one")
    assert "no shares of the work" in "".join(text.get_text() for axes in alone.axes for text in axes.texts)


def test_emergence_of_a_history() -> None:
    history = History(HEADER, [entry(n, 1 / n) for n in range(1, 6)])
    found = history.emergence()
    assert (found["law"].first, found["collapse"].first, found["minority"].judged) == (1, None, 5)
