"""Weightings of D as a reading of its own: as `measure` weighs, alike for equal classes, and there in the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from equisep.data import Batches
from equisep.figures import Cell, Claim, Entry, Figure, Outcome, Panel, Series, gather, quantity
from equisep.measuring import measure
from equisep.runs import evidence_of, run_figure
from equisep.runs.cell_data import cell_data_of
from equisep.runs.record import read_record, write_record
from equisep.runs.run import run_group
from equisep.runs.runners import ensembles
from equisep.runs.store import Store

NAMES = ("sample", "class", "mixed")
SMALL = Cell(
    data="embedded-10x10", per_class=8, test_per_class=4, depth=4, width=12, epochs=2, batch_size=32, weightings=NAMES
)
UNEQUAL = SMALL.with_(per_class=None, sizes=(12,) * 5 + (4,) * 5)


def outcome_of(cell: Cell) -> Outcome:
    return run_group([cell])[0][1]


def test_weightings_agree_for_equal_classes_and_differ_for_unequal_ones() -> None:
    equal, unequal = outcome_of(SMALL), outcome_of(UNEQUAL)
    for reading in SMALL.readings:
        sample, by_class, mixed = (quantity(equal, f"last@weighting={name},reading={reading}") for name in NAMES)
        assert by_class == pytest.approx(sample, rel=1e-5) and mixed == pytest.approx(sample, rel=1e-5)
        apart = {round(quantity(unequal, f"last@weighting={name},reading={reading}") or 0.0, 4) for name in NAMES}
        assert len(apart) == 3
    assert quantity(unequal, "last") == quantity(unequal, "last@weighting=sample")


def test_they_are_what_measure_weighs(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.nn.Module] = []
    plain = ensembles.weighed

    def keep(cell: Cell, network: torch.nn.Module, *data: torch.Tensor) -> object:
        kept.append(network)
        return plain(cell, network, *data)

    monkeypatch.setattr(ensembles, "weighed", keep)
    outcome = outcome_of(UNEQUAL)
    x, y = cell_data_of([UNEQUAL]).of(0)
    for name in NAMES:
        profile = measure(kept[0], Batches(x.flatten(1), y), reading="eval", weighting=name, intervals="none")
        read = outcome.reading(reading="eval", weighting=name)
        assert read is not None
        assert read.fuzziness == pytest.approx([site.fuzziness for site in profile.sites], rel=1e-5)


def test_convolutional_networks_are_weighed_too() -> None:
    cell = UNEQUAL.with_(network="pure-cnn", width=None, channels=4, depth=2, epochs=1, readings=("eval",))
    found = [quantity(outcome_of(cell), f"last@weighting={name}") for name in NAMES]
    assert None not in found and len({round(value or 0.0, 4) for value in found}) == 3


def test_the_record_keeps_them(tmp_path: Path) -> None:
    made = figure(UNEQUAL)
    entry = Entry("a", UNEQUAL, outcome_of(UNEQUAL))
    write_record(tmp_path / "record.json", [entry], made, "paper")
    kept = gather(made, read_record(tmp_path / "record.json").entries, scale="paper").series["a"]
    for name in NAMES:
        text = f"r@weighting={name}"
        assert kept.values(text)[0] == pytest.approx(quantity(entry.outcome, text), rel=1e-6)


def figure(cell: Cell) -> Figure:
    claims = (Claim("…", "at least", ("a",), "r", value=-1.0),)
    return Figure("mine/a", "", "", "", cell, (Series("a", panel="a"),), (Panel("a"),), claims, seeds=1)


def test_a_figure_that_was_edited_is_not_shown_with_its_older_cells(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    before = figure(SMALL)
    run_figure(before, store=store)
    after = replace(before, base=SMALL.with_(width=6))
    assert evidence_of(after, store, "paper").done == 0
    found = run_figure(after, store=store)
    assert (found.done, found.planned) == (1, 1)
    assert found.series["a"].chosen[0].cell.width == 6
    assert evidence_of(before, store, "paper").series["a"].chosen[0].cell.width == 12
