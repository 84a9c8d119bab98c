"""Scales: the cells of a figure at `paper` scale, as the paper has them, or at `smoke` scale, small enough to try."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from equisep.errors import InputError, did_you_mean
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure, Series

SCALES = ("paper", "smoke")
EPOCHS, PER_CLASS, TEST_PER_CLASS, LARGEST, WIDEST = 6, 12, 10, 24, 100
RATES, SEEDS = 2, 2
NARROW = 1 / 16  # of a convolutional network's channels


def check_scale(scale: str) -> str:
    """The scale, refused where there is none of that name."""
    if scale not in SCALES:
        raise InputError(f"No scale `{scale}`.{did_you_mean(scale, SCALES)} Known: {', '.join(SCALES)}.")
    return scale


def seeds_at(figure: Figure, scale: str, seeds: int | None) -> tuple[int, ...]:
    """The seeds that are run: those asked for, else the figure's own number, or two at smoke scale."""
    count = seeds if seeds is not None else figure.seeds if scale == "paper" else min(SEEDS, figure.seeds)
    if count < 1:
        raise InputError(f"`seeds` was {count}; at least one is needed.")
    return tuple(range(count))


def rates_at(figure: Figure, series: Series, scale: str) -> tuple[float, ...]:
    """The rates that are tried; at smoke scale two from the middle, so that there is still something to choose."""
    tried = figure.rates_of(series)
    if scale == "paper" or len(tried) <= RATES:
        return tried
    middle = (len(tried) - RATES) // 2
    return tried[middle : middle + RATES]


def scaled(cell: Cell, figure: Figure, scale: str) -> Cell:
    """The cell at a scale. Smoke shrinks epochs, samples, readings and widths, never the wiring."""
    if scale == "paper":
        return cell
    most = int(figure.smoke.get("epochs", EPOCHS))
    changes = _solved_small(cell) if cell.kind == "solve" else _trained_small(cell, most)
    own = {name: value for name, value in figure.smoke.items() if name not in ("data", "epochs")}
    return cell.with_(**{**changes, **own})


def _solved_small(cell: Cell) -> dict[str, Any]:
    return {"ratios": cell.ratios[:: max(1, len(cell.ratios) // 5)], "starts": min(cell.starts, 2)}


def _trained_small(cell: Cell, most: int) -> dict[str, Any]:
    epochs = min(cell.epochs, most)
    shorter = epochs / cell.epochs if cell.epochs else 1.0
    changes: dict[str, Any] = {
        "epochs": epochs,
        "test_per_class": TEST_PER_CLASS,
        "read_epochs": tuple(sorted({round(epoch * shorter) for epoch in cell.read_epochs})),
        "coordinates": min(cell.coordinates, 60),
        "noise_draws": min(cell.noise_draws, 2),
        "second": min(cell.second, PER_CLASS),
        "reductions": tuple("pca=10" if name.startswith("pca=") else name for name in cell.reductions),
        "width_multiplier": _narrow(cell),
    }
    changes |= {name: _fewer(getattr(cell, name), shorter) for name in ("first_epochs", "last_epochs")}
    changes["first_schedule"] = _fewer(cell.first_schedule, shorter)
    changes |= _few_samples(cell)
    return changes


def _fewer(epochs: int, shorter: float) -> int:
    return max(1, round(epochs * shorter)) if epochs else 0


def _narrow(cell: Cell) -> float:
    if cell.network.startswith("fnn"):
        widest = max(cell.widths or (cell.width or WIDEST,))
        return min(1.0, WIDEST / widest)
    return NARROW


def _few_samples(cell: Cell) -> Mapping[str, Any]:
    if cell.sizes is None:
        return {"per_class": PER_CLASS if cell.per_class is None else _between(cell.per_class)}
    most = max(cell.sizes)
    return {"sizes": tuple(math.ceil(size * min(1.0, LARGEST / most)) for size in cell.sizes)}


def _between(per_class: int) -> int:
    """Fewer samples that keep their order: 100, 200 and 500 a class stay different."""
    return min(per_class, PER_CLASS + per_class // 100)
