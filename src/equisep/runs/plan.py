"""Plan: from a figure to its cells, and from cells to groups that train together; what they will cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from equisep.errors import InputError
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure, Series
from equisep.runs.scale import check_scale, rates_at, scaled, seeds_at

FEED_FORWARD = ("fnn", "fnn-linear", "fnn-no-batchnorm")
TEXT = ("bert", "hf:")
# what members of one ensemble may differ in
OWN = (
    "optimizer", "rate", "weight_decay", "momentum", "milestones", "factor", "class_weights", "seed", "data_seed",
    "label_noise", "second_noise",
)  # fmt: skip
SEEDS_TOGETHER = 5  # so that more seeds add groups and change none: who trains with whom decides the last digits


@dataclass(frozen=True, slots=True)
class Planned:
    """One cell and the series it belongs to."""

    series: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class Asked:
    """How a figure is to be run: its scale, seeds, stand-ins for data sets, and changes to every cell.

    `data` maps the paper's data set to the one that stands in for it. `substitute` names what stands in for a cell's data
    where they are not there (smoke scale only), or None where they are.
    """

    scale: str = "paper"
    seeds: int | None = None
    data: Mapping[str, str] | None = None
    changes: Mapping[str, Any] | None = None
    substitute: Callable[[Cell], str | None] | None = None

    def __post_init__(self) -> None:
        check_scale(self.scale)

    def cell(self, cell: Cell, figure: Figure) -> Cell:
        """A cell of the figure as it will be run."""
        made = scaled(cell, figure, self.scale).with_(**(self.changes or {}))
        other = (self.data or {}).get(made.data)
        if other is None and self.scale == "smoke":
            other = figure.smoke.get("data")
        if other is None and self.scale == "smoke" and self.substitute is not None and made.kind != "solve":
            other = self.substitute(made)
        return made if other in (None, made.data) else made.with_(stands_for=made.data, data=other)


def planned_cells(
    figure: Figure, asked: Asked, *, rates: Callable[[Series], Sequence[float]] | None = None
) -> tuple[Planned, ...]:
    """Every cell of a figure: series × rates × seeds; of a figure that chooses by short runs, those at `rates` alone."""
    seeds = seeds_at(figure, asked.scale, asked.seeds)
    found: list[Planned] = []
    for series in figure.series:
        tried = rates_at(figure, series, asked.scale) if rates is None else rates(series)
        own = figure.cells(series, seeds=seeds, rates=tried)
        found.extend(Planned(series.name, asked.cell(cell, figure)) for cell in own)
    return tuple(found)


def short_cells(figure: Figure, asked: Asked) -> tuple[Planned, ...]:
    """The short runs that choose a rate: every rate with one seed, for a share of the epochs."""
    found: list[Planned] = []
    for series in figure.series:
        tried = figure.cells(series, seeds=(0,), rates=rates_at(figure, series, asked.scale))
        found.extend(Planned(series.name, _short(asked.cell(cell, figure), figure)) for cell in tried)
    return tuple(found)


def _short(cell: Cell, figure: Figure) -> Cell:
    return cell.with_(epochs=max(1, round(cell.epochs * figure.short)), read_epochs=(), test_sites=False)


def asked_cells(figure: Figure, asked: Asked) -> list[Planned]:
    """The cells that a run trains: where short runs choose the rate, those and then one rate a series."""
    if figure.choose != "short runs":
        return list(planned_cells(figure, asked))
    chosen = planned_cells(figure, asked, rates=lambda series: figure.rates_of(series)[:1])
    return [*short_cells(figure, asked), *chosen]


def declared(figure: Figure, asked: Asked) -> Callable[[str, Cell], bool]:
    """Whether a cell is of a series as the figure is declared now, at whatever of its rates and seed, on whatever stands in.

    A store keeps what it was ever asked for; a figure that was changed since must not be shown with its older cells.
    """
    known: dict[str, set[str]] = {}
    own = (asked.changes or {}).get("rate")
    rates = {each.name: rates_at(figure, each, asked.scale) if own is None else (own,) for each in figure.series}
    for series in figure.series:
        cell = asked.cell(figure.cell(series), figure)
        both = (cell, _short(cell, figure)) if figure.choose == "short runs" else (cell,)
        known[series.name] = {_bare(each) for each in both}
    return lambda series, cell: (
        _bare(cell) in known.get(series, ())
        and (
            cell.kind == "solve" or cell.rate in rates[series]  # one that is no longer tried must not be chosen
        )
    )


def _bare(cell: Cell) -> str:
    """The key without rate, seeds and stand-in."""
    return cell.with_(rate=0.0, seed=0, data_seed=0, data=cell.stands_for or cell.data, stands_for="").key


def groups_of(cells: Sequence[Cell]) -> tuple[tuple[Cell, ...], ...]:
    """Cells that train together: feed-forward ones that share all but `OWN`, five seeds at a time; others alone.

    A group depends on the figure and on nothing that was run before, so that a run that was stopped and started again
    trains the same networks in the same company.
    """
    unique = list(dict.fromkeys(cells))
    groups: dict[Any, list[Cell]] = {}
    for cell in unique:
        groups.setdefault(_together(cell), []).append(cell)
    return tuple(tuple(group) for group in groups.values())


def trains_in_ensembles(cell: Cell) -> bool:
    """Whether a cell's network can share an ensemble: feed-forward, and its images not augmented on the way."""
    return cell.kind != "solve" and cell.network in FEED_FORWARD and not cell.augment


def _together(cell: Cell) -> Any:
    if not trains_in_ensembles(cell):
        return cell.key
    rest = tuple(getattr(cell, entry.name) for entry in fields(Cell) if entry.name not in OWN)
    return (*rest, cell.seed // SEEDS_TOGETHER)


def parse_stand_ins(texts: Sequence[str]) -> dict[str, str]:
    """`NAME=OTHER` for each data set that another stands in for."""
    found = {}
    for text in texts:
        name, equals, other = text.partition("=")
        if not equals or not name or not other:
            raise InputError(f"A stand-in is written NAME=OTHER, such as cifar10=cifar10_7k; found `{text}`.")
        found[name] = other
    return found
