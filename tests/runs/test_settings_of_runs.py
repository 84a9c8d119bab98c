"""Settings of runs in one store: a mistaken one leaves no trace, and rates that are no longer tried are not chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from equisep.errors import DataError, InputError
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure, Panel, Series
from equisep.runs.run import run_figure

BASE = Cell(data="embedded-10x10", per_class=5, test_per_class=5, width=10, depth=3, epochs=1, batch_size=25)
MINE = Figure(
    id="mine/rates", title="", source="", cite="", base=BASE, series=(Series("a"),), panels=(Panel("D"),),
    rates={"adam": (1e-3, 1e-2)}, choose="best r", seeds=1,
)  # fmt: skip


def test_a_mistaken_setting_does_not_spoil_the_store(tmp_path: Path) -> None:
    for changes in ({"rate": -1.0}, {"per_class": 0}, {"depth": -1}, {"width": 0}):
        with pytest.raises(InputError):
            run_figure(MINE, store=tmp_path, changes=changes)
    found = run_figure(MINE, store=tmp_path)
    assert (found.done, found.planned) == (2, 2)
    with pytest.raises(InputError, match="joining them would mix their numbers"):
        run_figure(MINE, store=tmp_path, changes={"rate": 0.1})


def test_a_rate_that_is_no_longer_tried_is_not_chosen(tmp_path: Path) -> None:
    run_figure(MINE, store=tmp_path)
    for rate in MINE.rates["adam"]:
        found = run_figure(replace(MINE, rates={"adam": (rate,)}), store=tmp_path)
        assert (found.series["a"].rate, found.done, found.planned) == (rate, 1, 1)


def test_a_stand_in_that_is_not_there_is_named_without_advice_to_replace_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        run_figure(MINE, store=tmp_path, data={"embedded-10x10": "absent.npz"})
    assert "absent.npz" in str(caught.value) and "--data" not in str(caught.value)
