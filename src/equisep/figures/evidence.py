"""Evidence: what was run of a figure, ordered by series, rate and seed, with the rate chosen by the figure's rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equisep.figures.cell import Cell, Solve, Training, trainings
from equisep.figures.figure import Figure, Series
from equisep.figures.outcome import Outcome
from equisep.figures.quantities import quantity


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell that was run for a series, what it gave, and what made it."""

    series: str
    cell: Cell
    outcome: Outcome
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def training(self) -> Training:
        """The cell of an entry that was trained, as all are that have a rate or a law."""
        assert isinstance(self.cell, Training)
        return self.cell


@dataclass(frozen=True, slots=True)
class SeriesEvidence:
    """The entries of one series: all that were tried, and by seed those at the chosen rate.

    best        the entries whose own r is most negative, seed by seed: optimistic, since each seed chooses for itself.
    planned     the cells that runs asked for, be they run or not.
    """

    series: Series
    rate: float | None
    entries: tuple[Entry, ...] = ()
    chosen: Mapping[int, Entry] = field(default_factory=dict)
    best: Mapping[int, Entry] = field(default_factory=dict)
    planned: tuple[Cell, ...] = ()

    @property
    def missing(self) -> tuple[Cell, ...]:
        """The cells that runs asked for and did not get to."""
        run = {entry.cell for entry in self.entries}
        return tuple(cell for cell in self.planned if cell not in run)

    def values(self, text: str) -> dict[int, float]:
        """A quantity by seed at the chosen rate; seeds for which it does not exist are left out."""
        found = {seed: quantity(entry.outcome, text) for seed, entry in self.chosen.items()}
        return {seed: value for seed, value in found.items() if value is not None and np.isfinite(value)}

    def optimistic(self, text: str) -> dict[int, float]:
        """The same at the rate that is best for each seed."""
        found = {seed: quantity(entry.outcome, text) for seed, entry in self.best.items()}
        return {seed: value for seed, value in found.items() if value is not None and np.isfinite(value)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was run of one figure at one scale (`paper` or `smoke`).

    At `smoke` scale, and where `substitute` images stand in, claims are not run.
    """

    figure: Figure
    scale: str
    series: Mapping[str, SeriesEvidence]

    @property
    def done(self) -> int:
        """How many cells were run."""
        return sum(len(found.entries) for found in self.series.values())

    @property
    def planned(self) -> int:
        """How many cells runs asked for."""
        return sum(len(found.planned) for found in self.series.values())

    @property
    def stand_ins(self) -> dict[str, str]:
        """The paper's data set → what stood in for it."""
        cells = trainings(entry.cell for found in self.series.values() for entry in found.entries)
        return {cell.stands_for: cell.data for cell in cells if cell.stands_for}


def gather(figure: Figure, entries: Iterable[Entry], *, scale: str, plan: Iterable[tuple[str, Cell]] = ()) -> Evidence:
    """Entries in any order as evidence; entries of series that the figure does not have are left out.

    `plan` is what runs asked for, as (series, cell); what was run was asked for, whether it stands there or not.
    """
    held, asked = list(entries), list(plan)
    series_found = {}
    for series in figure.series:
        own = [entry for entry in held if entry.series == series.name]
        cells = (*(cell for name, cell in asked if name == series.name), *(entry.cell for entry in own))
        series_found[series.name] = replace(series_evidence(figure, series, own), planned=tuple(dict.fromkeys(cells)))
    return Evidence(figure, scale, series_found)


def series_evidence(figure: Figure, series: Series, entries: list[Entry]) -> SeriesEvidence:
    """One series: the rate is chosen once, by the mean r over seeds, among the rates that most seeds were run at.

    Runs that were shortened to choose the rate (`short runs`) are entries too, but never chosen.
    """
    if not entries:
        return SeriesEvidence(series, None)
    if isinstance(solved := entries[-1].cell, Solve):
        return SeriesEvidence(series, None, tuple(entries), {solved.seed: entries[-1]}, {solved.seed: entries[-1]})
    longest = max(entry.training.epochs for entry in entries)
    whole = [entry for entry in entries if entry.training.epochs == longest]
    if figure.choose == "short runs" and len({entry.training.rate for entry in whole}) > 1:
        return SeriesEvidence(series, None, tuple(entries))  # the short runs alone: the whole training is one rate's
    by_rate: dict[float, dict[int, Entry]] = {}
    for entry in sorted(whole, key=lambda entry: (entry.training.rate, entry.training.seed)):
        by_rate.setdefault(entry.training.rate, {})[entry.training.seed] = entry
    rate = chosen_rate(by_rate)
    best: dict[int, Entry] = {}
    for own in by_rate.values():
        for seed, entry in own.items():
            if seed not in best or _rank(entry) < _rank(best[seed]):
                best[seed] = entry
    return SeriesEvidence(series, rate, tuple(entries), by_rate[rate], best)


def chosen_rate(by_rate: Mapping[float, Mapping[int, Entry]]) -> float:
    """He & Su's rule over seeds: the rate of the most negative mean r; a seed without an r counts as r = 1, the worst."""
    full = max(len(own) for own in by_rate.values())
    tried = {rate: own for rate, own in by_rate.items() if len(own) == full}
    return min(tried, key=lambda rate: (float(np.mean([_rank(entry) for entry in tried[rate].values()])), rate))


def _rank(entry: Entry) -> float:
    r = quantity(entry.outcome, "r")
    return 1.0 if r is None else r
