"""Does it matter with whom a cell trains? The same cells alone, in ensembles and on a Ray cluster.

The 8-layer Adam networks of He & Su's Fig. 1 on the embedded images, five seeds, 60 epochs in float32: r and ρ of each seed
alone, among its five seeds (`ensemble`), among all of Adam's rates too (`company`), and as the group of five on a Ray cluster
of this machine (`ray`, where Ray is installed). Beside the differences stand their two measures: the deviation and range
over seeds, and what the same cell alone differs by from weights that are one rounding off (`one_rounding_off`): rounding
grows while a network trains, whoever is with it. In float64, after one epoch, the greatest relative difference of any number
that is kept, the loss of an epoch aside, which is kept in float32.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from statistics import mean, stdev
from typing import Any

import torch

from _record import finish
from equisep.errors import MissingExtraError
from equisep.figures.cell import Training, trainings
from equisep.figures.figure import Figure
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.papers.he2023 import FIG1
from equisep.figures.quantities import quantity
from equisep.runs.cell_data import cell_data_of
from equisep.runs.run import run_figure, run_group
from equisep.runs.runners.cells import dtype_of, recipe_of, shape_of
from equisep.training import Member, train_ensemble

SEEDS, EPOCHS, RATE = 5, 60, 3e-3
DATA = "embedded-10x10"
QUANTITIES = ("r", "rho")
LOSS = ".numbers.final_loss"
Outcomes = dict[Training, Outcome]


def figure(**changes: Any) -> Figure:
    """Fig. 1 with its 8-layer Adam networks alone, at one rate, on the embedded images."""
    (adam,) = FIG1.named("adam-8")
    base = FIG1.base.with_(data=DATA, test_per_class=50, **changes)
    return replace(
        FIG1, series=(replace(adam, rates=(RATE,), panel=""),), base=base, panels=(), claims=(), printed=(), seeds=SEEDS
    )


def cells_of(made: Figure, *, rates: Sequence[float] = (RATE,)) -> list[Training]:
    """All seeds at the rates."""
    return trainings(made.cells(made.series[0], seeds=range(SEEDS), rates=rates))


def _run(cells: Sequence[Training]) -> list[tuple[Training, Outcome]]:
    return [(cell, outcome) for cell, (_, outcome, _) in zip(cells, run_group(cells), strict=True)]


def alone(made: Figure) -> Outcomes:
    """One cell a group."""
    return {cell: outcome for cell in cells_of(made) for cell, outcome in _run([cell])}


def ensemble(made: Figure) -> Outcomes:
    """The seeds together."""
    return dict(_run(cells_of(made)))


def company(made: Figure) -> Outcomes:
    """The seeds together with those of every other rate."""
    return {
        cell: outcome
        for cell, outcome in _run(cells_of(made, rates=FIG1.rates["adam"]))
        if cell.rate == RATE
    }  # fmt: skip


def on_ray(made: Figure) -> Outcomes:
    """The group of seeds on a cluster of this machine, into a store and out of it."""
    with tempfile.TemporaryDirectory() as folder:
        evidence = run_figure(made, store=folder, on="ray")
    return {entry.training: entry.outcome for own in evidence.series.values() for entry in own.entries}


def one_rounding_off(made: Figure) -> Outcomes:
    """Alone, from the weights of the seed moved up to the next float."""
    outcomes = {}
    for cell in cells_of(made):
        cell_data = cell_data_of([cell])
        shape = shape_of(cell, inputs=cell_data.pool[0].numel(), classes=cell_data.classes)
        start = {
            name: torch.nextafter(value, torch.full_like(value, torch.inf))
            if name.endswith(("weight", "bias"))
            else value
            for name, value in shape.build(cell.seed).state_dict().items()
        }
        trained = train_ensemble(
            [Member(recipe_of(cell), shape, cell.data_seed)], cell_data.pool, cell_data.pool_labels,
            samples=[(cell_data.rows[0], cell_data.labels[0])], starts=[start], dtype=dtype_of(cell),
        )  # fmt: skip
        curves = Curves(epoch=cell.epochs, reading=cell.readings[0], fuzziness=tuple(trained.curve(0)))
        outcomes[cell] = Outcome(readings=(curves,))
    return outcomes


WAYS: Mapping[str, Callable[[Figure], Outcomes]] = {"ensemble": ensemble, "company": company, "ray": on_ray}


def ran(made: Figure) -> dict[str, Outcomes]:
    """Every way that can be had here."""
    outcomes = {"alone": alone(made)}
    for name, way in WAYS.items():
        try:
            outcomes[name] = way(made)
        except MissingExtraError as error:
            print(f"not run: {error}")
    return outcomes


def float32_table(found: Mapping[str, Outcomes]) -> dict[str, Any]:
    """Quantities by seed and way, the greatest and the mean difference from alone, and the deviation over seeds."""
    table: dict[str, Any] = {}
    for name in QUANTITIES:
        by_way = {
            way: [
                float(quantity(outcome, name) or "nan") for _, outcome in sorted(own.items(), key=lambda at: at[0].seed)
            ]
            for way, own in found.items()
        }
        gaps = {
            way: [value - single for value, single in zip(values, by_way["alone"], strict=True)]
            for way, values in by_way.items()
            if way != "alone"
        }
        spread = stdev(by_way["alone"])
        table[name] = {
            "by_seed": by_way,
            "mean": {way: mean(values) for way, values in by_way.items()},
            "seed_deviation": spread,
            "seed_range": max(by_way["alone"]) - min(by_way["alone"]),
            "rms_difference": {way: sqrt(mean(gap * gap for gap in own)) for way, own in gaps.items()},
            "greatest_difference": {way: max(map(abs, own)) for way, own in gaps.items()},
        }
    return table


def numbers_of(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of an outcome under its path."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            yield from numbers_of(entry, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from numbers_of(entry, f"{path}.{index}")
    elif isinstance(value, int | float):
        yield path, float(value)


def greatest_gap(one: Outcome, two: Outcome) -> float:
    """The greatest relative difference of two outcomes, the loss of an epoch aside."""
    a, b = (dict(numbers_of(outcome.to_dict())) for outcome in (one, two))
    if a.keys() != b.keys():
        return float("inf")
    return max(
        (abs(a[path] - b[path]) / abs(a[path]) for path in a if a[path] != b[path] and path != LOSS), default=0.0
    )


def main() -> None:
    """Both tables."""
    double = ran(figure(epochs=1, dtype="float64"))
    exact = {
        way: max(greatest_gap(outcome, own[cell]) for cell, outcome in double["alone"].items())
        for way, own in double.items()
        if way != "alone"
    }
    single = figure(epochs=EPOCHS)
    result = {
        "data": DATA,
        "network": "FNN of 8 layers, Adam",
        "rate": RATE,
        "seeds": SEEDS,
        "members": {"alone": 1, "ensemble": SEEDS, "company": SEEDS * len(FIG1.rates["adam"]), "ray": SEEDS},
        "float64_after_one_epoch_greatest_relative_difference": exact,
        "float32_epochs": EPOCHS,
        "float32": float32_table({**ran(single), "one_rounding_off": one_rounding_off(single)}),
    }
    finish("company", result)


if __name__ == "__main__":
    main()
