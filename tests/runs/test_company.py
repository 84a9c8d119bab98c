"""The same cells alone, in an ensemble and on Ray: in float64 the same numbers, in float32 nearly so."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equisep.figures.cell import Cell
from equisep.figures.figure import Figure, Panel, Series
from equisep.figures.outcome import Outcome
from equisep.figures.quantities import quantity
from equisep.runs.plan import groups_of
from equisep.runs.run import run_figure, run_group
from equisep.runs.store import Store

SMALL = Cell(
    data="embedded-10x10", per_class=20, test_per_class=10, depth=5, width=30, epochs=1, batch_size=64, dtype="float64"
)  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"test_sites": True, "class_wise": True, "classifier": True, "read_epochs": (0,)},
    "frozen": {"kind": "staged", "first_epochs": 1, "first_trains": 2, "keep": 2, "last_epochs": 1},
    "grafted": {"kind": "staged", "first_epochs": 1, "first_depth": 6, "keep": 2, "renew": True},
    "noisy": {"noise": (0.01, 0.05), "noise_draws": 2, "label_noise": 0.2},
    "second": {"second": 5, "second_noise": 0.5},
}
FIGURE = Figure(
    id="test/company", title="", source="", cite="", base=SMALL, seeds=2,
    series=tuple(Series(name, changes) for name, changes in KINDS.items()), panels=(Panel("D"),),
    rates={"adam": (1e-3, 3e-3)}, choose="best r",
)  # fmt: skip
CELLS = tuple(cell for series in FIGURE.series for cell in FIGURE.cells(series, seeds=(0, 1)))
EXACT = 1e-10
FLOAT32 = 2.0**-23  # the history of losses is kept in float32, whatever the networks train in


def numbers_of(outcome: Outcome) -> dict[str, float]:
    """Every number of an outcome under its path; one that does not exist is NaN."""
    found: dict[str, float] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for name, entry in value.items():
                walk(entry, f"{path}.{name}")
        elif isinstance(value, list | tuple):
            for place, entry in enumerate(value):
                walk(entry, f"{path}.{place}")
        elif not isinstance(value, str):
            found[path] = math.nan if value is None else float(value)

    walk(outcome.to_dict(), "")
    return found


def farthest(one: Outcome, two: Outcome) -> float:
    """The largest relative difference of two outcomes; of the loss of an epoch, what float32 leaves of it."""
    a, b = numbers_of(one), numbers_of(two)
    assert list(a) == list(b)
    gaps = [0.0]
    for path, value in a.items():
        other = b[path]
        if value == other or (math.isnan(value) and math.isnan(other)):
            continue
        gap = abs(value - other) / max(abs(value), abs(other), 1e-300)
        gaps.append(0.0 if path == ".numbers.final_loss" and gap <= FLOAT32 else gap)
    return max(gaps)


def alone(cells: Sequence[Cell]) -> dict[str, Outcome]:
    return {cell.key: outcome for cell in cells for _, outcome, _ in run_group([cell])}


def together(cells: Sequence[Cell]) -> dict[str, Outcome]:
    return {cell.key: outcome for group in groups_of(cells) for cell, outcome, _ in run_group(group)}


@pytest.fixture(scope="module")
def single() -> dict[str, Outcome]:
    return alone(CELLS)


@pytest.fixture
def own_ray(monkeypatch: pytest.MonkeyPatch, one_ray: None) -> Iterator[None]:
    """A cluster that only this test knows; its workers train with one thread, as the tests do."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install equisep[ray]", exc_type=ImportError)
    place = Path(tempfile.mkdtemp(prefix="ray"))  # short: Ray puts sockets there
    monkeypatch.setenv("RAY_TMPDIR", str(place))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield
    shutil.rmtree(place, ignore_errors=True)


def test_groups_hold_several_cells() -> None:
    assert [len(group) for group in groups_of(CELLS)] == [4] * len(KINDS)


def test_a_cell_alone_and_in_an_ensemble_is_the_same_in_float64(single: dict[str, Outcome]) -> None:
    ensemble = together(CELLS)
    gaps = {cell.key: farthest(single[cell.key], ensemble[cell.key]) for cell in CELLS}
    assert max(gaps.values()) <= EXACT
    # and there was something to compare: sites in both readings, classifiers, noise
    numbers = numbers_of(ensemble[CELLS[0].key])
    assert len(numbers) > 200 and all(math.isfinite(value) for path, value in numbers.items() if "fuzziness" in path)
    noisy = next(cell for cell in CELLS if cell.noise)
    assert all(change is not None and change > 0 for change in ensemble[noisy.key].arrays["noise_change"])


def test_cells_of_different_seeds_and_rates_differ(single: dict[str, Outcome]) -> None:
    """So that agreement means something."""
    for group in groups_of(CELLS):
        for one, two in combinations(group, 2):
            assert farthest(single[one.key], single[two.key]) > 1e-3


def test_a_cell_on_ray_is_the_same_in_float64(single: dict[str, Outcome], own_ray: None, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    told: list[tuple[int, int | None]] = []
    evidence = run_figure(FIGURE, store=store, on="ray", progress=lambda what, done, total: told.append((done, total)))
    assert told[-1] == (len(KINDS), len(KINDS))
    assert evidence.done == evidence.planned == len(CELLS)
    for name in KINDS:
        for entry in evidence.series[name].entries:
            assert farthest(single[entry.cell.key], entry.outcome) <= EXACT
            assert entry.provenance["together"] == 4
    # from here on the store has them: no cluster is asked, and none is started
    again = run_figure(FIGURE, store=store, on="ray://127.0.0.1:1")
    assert again.done == len(CELLS)
    assert not any(name.startswith("RAY_ADDRESS") for name in os.environ)


def test_float32_differs_by_rounding_far_less_than_seeds_do() -> None:
    cells = [SMALL.with_(dtype="float32", epochs=4, rate=3e-3, seed=seed, data_seed=seed) for seed in range(4)]
    one, all_of_them = alone(cells), together(cells)
    for name in ("r", "rho", "log_last"):
        found = [[quantity(kept[cell.key], name) for cell in cells] for kept in (one, all_of_them)]
        single, ensemble = np.array(found, dtype=np.float64)
        assert np.abs(single - ensemble).max() <= 0.1 * single.std(ddof=1), name
