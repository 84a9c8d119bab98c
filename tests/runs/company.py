"""Cells of every kind that trains in ensembles, and how far two outcomes of one cell are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equisep.figures.cell import Cell
from equisep.figures.figure import Figure, Panel, Series
from equisep.figures.outcome import Outcome
from equisep.runs.plan import groups_of
from equisep.runs.run import run_group

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
