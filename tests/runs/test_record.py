"""The committed record: what goes in comes back to 7 digits, the same rates are chosen from it, and it stays small."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equisep.errors import InputError, StoreError
from equisep.figures.cell import Cell
from equisep.figures.evidence import Entry, gather
from equisep.figures.figure import Figure, Panel, Series
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.quantities import quantity
from equisep.runs.packing import COLUMNS, lines_of, pack, rounded, unpack
from equisep.runs.record import find_results, read_record, record_content, recorded_evidence, write_record

RATES = (0.1, 0.01, 0.001)
MADE = {"equisep": "0.1.0", "device": "NVIDIA H200", "flags": {"tf32": False}, "data": "sha256:" + "0" * 64}


def figure(series: int = 2) -> Figure:
    lines = tuple(Series(f"adam-{depth}", {"depth": depth}) for depth in range(4, 4 + series))
    return Figure(
        id="he2023/fig1",
        title="",
        source="",
        cite="",
        base=Cell(stands_for="Fashion-MNIST"),
        series=lines,
        panels=(Panel("a"),),
        rates={"adam": RATES},
        choose="best r",
    )


def outcome(dice: random.Random, *, sites: int = 20, epochs: tuple[int, ...] = (600,), points: int = 0) -> Outcome:
    names = ("input", *(f"layers.{place}.activation" for place in range(1, sites)))

    def curve() -> tuple[float, ...]:
        return tuple(math.exp(-0.3 * site + dice.gauss(0, 1)) for site in range(sites))

    def shares() -> tuple[float, ...]:
        return tuple(dice.randrange(1000) / 1000 for _ in range(sites))

    readings = tuple(
        Curves(
            epoch=epoch,
            reading=mode,
            sites=names,
            fuzziness=curve(),
            cdnv=curve(),
            ncc=shares(),
            fuzziness_test=curve(),
            cdnv_test=curve(),
            ncc_test=shares(),
            class_fuzziness=(curve(), curve()) if points else (),
            loss=dice.random(),
            accuracy=dice.randrange(1000) / 1000,
            accuracy_test=dice.randrange(10_000) / 10_000,
        )
        for epoch in epochs
        for mode in ("mixed", "eval")
    )
    cloud = tuple((dice.gauss(0, 1), dice.gauss(0, 1), float(dice.randrange(10))) for _ in range(points))
    return Outcome(
        readings=readings,
        numbers={"final_loss": dice.random(), "none": None},
        arrays={"class_accuracy_test": shares()},
        points={"input": cloud, "layers.1.activation": cloud} if points else {},
        notes=("Two classes were small.",),
    )


def run(one: Figure, *, seeds: int = 3, **options: Any) -> list[Entry]:
    dice = random.Random(5)
    return [
        Entry(series.name, cell, outcome(dice, **options), {**MADE, "wall_s": dice.random() * 100})
        for series in one.series
        for cell in one.cells(series, seeds=range(seeds))
    ]


def same_to_7_digits(one: Any, two: Any, *, digits: int = 7) -> None:
    if isinstance(one, float):
        assert two == float(f"{one:.{digits}g}")
    elif isinstance(one, dict):
        assert set(one) == set(two)
        for name in one:
            same_to_7_digits(one[name], two[name], digits=4 if name == "points" else digits)
    elif isinstance(one, list):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            same_to_7_digits(a, b, digits=digits)
    else:
        assert one == two


# what goes in comes back


def test_everything_comes_back_where_all_is_kept(tmp_path: Path) -> None:
    entries = run(figure(), epochs=(100, 600), points=5)
    plan = [(entry.series, entry.cell) for entry in entries]
    plan.append((plan[-1][0], plan[-1][1].with_(seed=99, data_seed=99)))
    path = write_record(tmp_path / "he2023" / "fig1.json", entries, figure(), "paper", plan=plan, keep="all")
    found, scale, planned, missing = read_record(path)
    assert (scale, planned, len(found)) == ("paper", len(entries) + 1, len(entries))
    assert missing == plan[-1:] and recorded_evidence(figure(), path).series[plan[-1][0]].missing == (plan[-1][1],)
    for one, two in zip(entries, found, strict=True):
        assert two.series == one.series and two.cell == one.cell and two.cell.key == one.cell.key
        same_to_7_digits(one.outcome.to_dict(), two.outcome.to_dict())
        same_to_7_digits(dict(one.provenance), dict(two.provenance))


def test_what_the_cells_of_a_series_share_is_said_once_and_records_without_that_are_read(tmp_path: Path) -> None:
    entries = run(figure(), seeds=2)
    content = pack(entries, figure(), "paper")
    shared = content["series"]
    assert any(shared.values()) and len({entry.series for entry in entries}) >= len(shared)
    for line in content["entries"]:
        assert not set(line.get("cell", {})) & set(shared.get(line["series"], {}))
    former = {name: value for name, value in content.items() if name != "series"} | {"schema": 1}
    former["entries"] = [
        {**line, "cell": {**shared.get(line["series"], {}), **line.get("cell", {})}} for line in content["entries"]
    ]
    (tmp_path / "former.json").write_text(json.dumps(former))
    assert read_record(tmp_path / "former.json").entries == unpack(content)
    assert [entry.cell for entry in unpack(content)] == [entry.cell for entry in entries]


def test_what_another_record_holds_is_named_and_comes_back(tmp_path: Path) -> None:
    """Two of three cells are those of the first record, under another name of the series; records that hold all are read."""
    first = write_record(tmp_path / "he2023" / "fig1.json", run(figure(1), seeds=1), figure(1), "paper", keep="all")
    entries = [replace(entry, series="adam-9") for entry in run(figure(1), seeds=1)]
    entries[1] = replace(entries[1], outcome=replace(entries[1].outcome, numbers={"final_loss": 2.0}))
    other = replace(figure(1), id="he2023/fig2", series=(Series("adam-9", {"depth": 4}),))
    path = tmp_path / "he2023" / "fig2.json"
    whole = read_record(write_record(path, entries, other, "paper", keep="all"))
    size, held = path.stat().st_size, lines_of(record_content(first))
    former = path.read_text().replace('"schema":3', '"schema":2')
    assert len(held) == 3 and {place["in"] for place in held.values()} == {"he2023/fig1"}
    write_record(path, entries, other, "paper", keep="all", elsewhere=held)
    assert path.stat().st_size < 0.6 * size
    assert read_record(path) == whole and [entry.series for entry in whole.entries] == ["adam-9"] * 3
    lines = record_content(path)["entries"]
    assert ["in" in line for line in lines] == [True, False, True]
    assert len(lines_of(record_content(path))) == 1  # what it names is not its own to be named again
    (tmp_path / "he2023" / "former.json").write_text(former)
    assert read_record(tmp_path / "he2023" / "former.json") == whole
    first.write_text(first.read_text().replace('"final_loss":0', '"final_loss":1'))
    with pytest.raises(StoreError, match=r"the record of `he2023/fig1` does not hold the cell `[0-9a-f]{16}` any more"):
        read_record(path)
    first.unlink()
    with pytest.raises(StoreError, match=r"fig2.json` is damaged, .*: No record at `.*fig1.json`"):
        read_record(path)


def test_rates_not_chosen_keep_what_choosing_needs() -> None:
    one = figure()
    entries = run(one, epochs=(100, 600), points=5)
    found = unpack(pack(entries, one, "paper"))
    before, after = gather(one, entries, scale="paper"), gather(one, found, scale="paper")
    whole = slim = 0
    for name, evidence in before.series.items():
        again = after.series[name]
        assert again.rate == evidence.rate and list(again.chosen) == list(evidence.chosen)
        assert {seed: entry.cell for seed, entry in again.best.items()} == {
            seed: entry.cell for seed, entry in evidence.best.items()
        }
        chosen = {entry.cell for entry in evidence.chosen.values()}
        best = {entry.cell for entry in evidence.best.values()}
        for old, new in zip(evidence.entries, again.entries, strict=True):
            assert new.cell == old.cell
            for text in ("r", "r@reading=eval", "accuracy_test", "final_loss", "loss@reading=eval"):
                a, b = quantity(old.outcome, text), quantity(new.outcome, text)
                assert a is not None and b is not None and math.isclose(a, b, rel_tol=2e-6)
            if old.cell in chosen | best:
                whole += 1
                draws = old.cell in chosen and old.cell.seed == min(evidence.chosen)
                assert new.outcome == rounded(old.outcome if draws else replace(old.outcome, points={}))
            else:
                slim += 1
                assert {reading.epoch for reading in new.outcome.readings} == {600} and not new.outcome.points
                assert [reading.reading for reading in new.outcome.readings] == ["mixed", "eval"]
                assert all(reading.sites and not reading.ncc for reading in new.outcome.readings)
                assert not new.outcome.arrays
            assert new.outcome.notes == old.outcome.notes
        at_100 = "r@epoch=100"  # r optimistic of a claim at an earlier epoch is of all seeds, also read from a record
        assert evidence.optimistic(at_100).keys() == again.optimistic(at_100).keys() == evidence.best.keys()
    assert whole == 9 and slim == 9


def test_the_same_choice_is_made_of_rounded_numbers() -> None:
    """Two rates whose r differ only beyond the 7th digit of D: the record chooses as its reader will."""
    one = figure(series=1)
    base = one.cell(one.series[0])
    curve = (27.0, 9.1, 2.9)
    rates = {0.1: (27.0, 9.1, 2.9), 0.01: (27.0, 9.1 * (1 - 3e-9), 2.9)}
    entries = [
        Entry(
            "adam-4",
            base.with_(rate=rate),
            Outcome(readings=(Curves(epoch=1, reading="mixed", fuzziness=D, ncc=curve),)),
        )
        for rate, D in rates.items()
    ]
    found = unpack(pack(entries, one, "paper"))
    chosen = gather(one, found, scale="paper").series["adam-4"]
    assert chosen.chosen[0].outcome.readings[0].ncc == curve


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32) | st.none()
curves = st.lists(numbers, max_size=4).map(tuple)
readings = st.builds(
    Curves,
    epoch=st.integers(0, 600),
    reading=st.sampled_from(("mixed", "eval")),
    grain=st.sampled_from(("layers", "blocks")),
    sites=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    **dict.fromkeys(("fuzziness", "cdnv", "ncc", "fuzziness_test", "cdnv_test", "ncc_test"), curves),
    class_fuzziness=st.lists(curves, max_size=2).map(tuple),
    loss=numbers,
    accuracy=numbers,
    accuracy_test=numbers,
)
outcomes = st.builds(
    Outcome,
    readings=st.lists(readings, max_size=3).map(tuple),
    numbers=st.dictionaries(st.text(max_size=3), numbers, max_size=3),
    arrays=st.dictionaries(st.text(max_size=3), curves, max_size=2),
    points=st.dictionaries(
        st.text(max_size=3),
        st.lists(st.tuples(*[st.floats(-9, 9, width=16)] * 2, st.integers(0, 9).map(float)), max_size=3).map(tuple),
        max_size=2,
    ),
    diverged=st.none() | st.integers(0, 9),
    notes=st.lists(st.text(max_size=5), max_size=2).map(tuple),
)
entries_of_any_kind = st.builds(
    Entry,
    series=st.sampled_from(("adam-4", "adam-5")),
    cell=st.builds(
        Cell,
        seed=st.integers(0, 3),
        rate=st.sampled_from((0.1, 1.0, 1e-3)),
        sizes=st.none() | st.lists(st.integers(0, 9), max_size=2).map(tuple),
        noise=st.lists(st.floats(0, 1), max_size=2).map(tuple),
        stands_for=st.sampled_from(("", "CIFAR-10")),
    ),
    outcome=outcomes,
    provenance=st.dictionaries(st.sampled_from(("wall_s", "device", "a")), numbers | st.text(max_size=3), max_size=3),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=st.lists(entries_of_any_kind, max_size=6))
def test_any_entries_make_the_round_trip(tmp_path: Path, entries: list[Entry]) -> None:
    path = write_record(tmp_path / "record.json", entries, figure(), "smoke", keep="all")
    found, scale, planned, _ = read_record(path)
    assert (scale, planned, len(found)) == ("smoke", len(entries), len(entries))
    for one, two in zip(entries, found, strict=True):
        assert (two.series, two.cell, two.cell.key) == (one.series, one.cell, one.cell.key)
        assert two.outcome == rounded(one.outcome)
        same_to_7_digits(one.outcome.to_dict(), two.outcome.to_dict())
        assert set(two.provenance) == set(one.provenance)
        assert two.provenance.get("device") == one.provenance.get("device")
    again = tmp_path / "again.json"
    write_record(again, found, figure(), "smoke", keep="all")
    assert json.loads(again.read_text())["entries"] == json.loads(path.read_text())["entries"]


def test_numbers_that_are_not_finite_are_missing() -> None:
    entry = Entry(
        "adam-4", Cell(), Outcome(numbers={"loss": math.inf}, arrays={"a": (math.nan, 1.0)}), {"wall_s": math.nan}
    )
    (found,) = unpack(pack([entry], figure(), "paper", keep="all"))
    assert found.outcome == Outcome(numbers={"loss": None}, arrays={"a": (None, 1.0)})
    assert found.provenance == {"wall_s": None}


# how it is written


def test_a_record_is_compact(tmp_path: Path) -> None:
    """5000 entries of 20 sites with every metric, read in two readings, must stay below 10 MiB."""
    entries = run(figure(series=8), seeds=10)
    size = write_record(tmp_path / "record.json", entries, figure(series=8), "paper").stat().st_size
    assert size / len(entries) * 5000 < 10 * 2**20


def test_one_line_an_entry_and_nothing_said_twice(tmp_path: Path) -> None:
    entries = run(figure())
    lines = write_record(tmp_path / "record.json", entries, figure(), "paper").read_text().splitlines()
    assert lines[0] == '{"kind":"equisep record",'
    assert sum(line.startswith('{"series":"') for line in lines) == len(entries)
    assert sum("NVIDIA H200" in line for line in lines) == sum("layers.3.activation" in line for line in lines) == 1
    content = json.loads("".join(lines))
    assert content["base"]["stands_for"] == "Fashion-MNIST" and all("stands_for" not in e for e in content["entries"])
    assert ", " not in lines[-3] and '": ' not in lines[-3]


def test_provenance_that_differs_from_entry_to_entry_fills_no_table() -> None:
    entries = [
        replace(entry, provenance={**MADE, "started": place}) for place, entry in enumerate(run(figure(), seeds=5))
    ]
    content = pack(entries, figure(), "paper")
    assert len(content["made"]) == 1
    assert [entry.provenance for entry in unpack(content)] == [entry.provenance for entry in entries]


def test_a_changed_entry_changes_one_line(tmp_path: Path) -> None:
    entries = run(figure())
    before = write_record(tmp_path / "a.json", entries, figure(), "paper", keep="all").read_text().splitlines()
    entries[4] = replace(entries[4], outcome=replace(entries[4].outcome, numbers={"final_loss": 2.0}))
    after = write_record(tmp_path / "b.json", entries, figure(), "paper", keep="all").read_text().splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_every_metric_of_a_reading_is_a_column() -> None:
    """A metric added to `Curves` is in the record without a change there."""
    assert {"epoch", "reading", "grain", "reduction", "weighting", "sites", *COLUMNS} == set(
        Curves.__dataclass_fields__
    )


# bad input


def test_what_was_asked_for_in_fewer_epochs_is_whole_and_keeps_what_was_chosen() -> None:
    """Of a figure whose first runs choose: trainings shorter than the figure's own are short runs only if longer were planned."""
    one = replace(figure(series=1), choose="best two")
    entries = [replace(entry, cell=entry.cell.with_(epochs=60)) for entry in run(one, epochs=(60,), points=5)]
    planned = [(entry.series, entry.cell) for entry in entries]
    found = unpack(pack(entries, one, "paper", plan=planned))
    assert sum(bool(entry.outcome.points) for entry in found) == 1
    (series,) = gather(one, found, scale="paper", plan=planned).series.values()
    assert series.chosen
    longer = [*planned, (planned[0][0], planned[0][1].with_(epochs=600))]
    assert not any(entry.outcome.points for entry in unpack(pack(entries, one, "paper", plan=longer)))


def test_keep_what() -> None:
    with pytest.raises(InputError, match=r"keeps `chosen` entries or `all` of them; found `best`"):
        pack([], figure(), "paper", keep="best")


def damaged(tmp_path: Path, old: str, new: str) -> Path:
    path = write_record(tmp_path / "record.json", run(figure(), seeds=1), figure(), "paper")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"schema":3', '"schema":4', r"newer equisep \(schema 4; this version reads up to 3\). Upgrade"),
        ('"equisep record"', '"equisep profile"', r"is no record of a figure: its field `kind` is 'equisep profile'"),
        ('"schema":3', '"schema":"3"', r"is no record of a figure"),
        ('"ways":', '"way":', r"damaged, or written by a newer equisep: it has no 'ways'"),
        ('"depth":5', '"deepth":5', r"A cell has no field `deepth`. Did you mean `depth`"),
        ('"fuzziness":[[', '"fuzziness":[["x",', r"should be a number; found 'x'"),
        ('"made":0', '"made":7', r"list index out of range"),
        ('"way":[0,1]', '"way":[0,1,1]', r"damaged"),
        ('"ncc":', '"nccc":', r"unknown field `nccc`"),
        (']}\n', "", r"truncated or no JSON"),
        ('"final_loss":0', '"final_loss":NaN,"x":0', r"it holds NaN"),
    ],
)  # fmt: skip
def test_a_damaged_record_is_one_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence):
        read_record(damaged(tmp_path, old, new))


def test_no_record(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"No record at `.*none.json`. `equisep figures list` names"):
        read_record(tmp_path / "none.json")
    with pytest.raises(StoreError, match=r"cannot be read: Is a directory"):
        read_record(tmp_path)
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(StoreError, match=r"holds a list, not an object"):
        read_record(tmp_path / "list.json")


def test_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreError, match=r"The record of `he2023/fig1` could not be stored in .*: Not a directory|File exists"
    ):
        write_record(tmp_path / "file" / "fig1.json", [], figure(), "paper")


# where records are


def test_results_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EQUISEP_RESULTS", raising=False)
    own = find_results()
    assert own is None or (own / ".." / "src" / "equisep").is_dir()  # that of the checkout, where there is one
    (tmp_path / "results" / "other").mkdir(parents=True)
    (tmp_path / "results" / "other" / "a.json").write_text("{}")
    assert find_results() == own  # another program's folder
    write_record(tmp_path / "results" / "he2023" / "fig1.json", [], figure(), "paper")
    assert find_results() == Path("results")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("EQUISEP_RESULTS", str(tmp_path / "elsewhere"))
    assert find_results() == tmp_path / "elsewhere"
    assert find_results(tmp_path) == tmp_path
    assert find_results(tmp_path / "none") is None
    monkeypatch.setenv("EQUISEP_RESULTS", str(tmp_path / "none"))
    assert find_results() is None
