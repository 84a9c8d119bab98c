"""Evidence: what was run of a figure, ordered by series, rate and seed, with the rate chosen by the figure's rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equisep.errors import MissingExtraError
from equisep.figures.cell import Cell, Solve, Training, trainings
from equisep.figures.figure import Figure, Series
from equisep.figures.outcome import Outcome
from equisep.figures.papers import is_part
from equisep.figures.quantities import quantity, standard_quantities, was_read

if TYPE_CHECKING:
    import pandas

PAPERS_R = "r@reading=drawn"
BY_FIT = "best fit"
BY_FIRST_RUNS = ("best two", "short runs")  # an older record of `best two` may hold short runs alone
Rank = Callable[["Sequence[Entry]"], tuple[float, ...]]


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

    best        the entries that the figure's rule would choose for each seed by itself: optimistic.
    planned     the cells that runs asked for, be they run or not.
    fit         the least training accuracy of a network that fits, as the figure declares it; None: all do.
    by_fit      whether the rate was chosen by fit, and not by r.
    """

    series: Series
    rate: float | None
    entries: tuple[Entry, ...] = ()
    chosen: Mapping[int, Entry] = field(default_factory=dict)
    best: Mapping[int, Entry] = field(default_factory=dict)
    planned: tuple[Cell, ...] = ()
    fit: float | None = None
    by_fit: bool = False

    @property
    def missing(self) -> tuple[Cell, ...]:
        """The cells that runs asked for and did not get to."""
        run = {entry.cell for entry in self.entries}
        return tuple(cell for cell in self.planned if cell not in run)

    def untried(self, figure: Figure) -> tuple[Training, ...]:
        """Whole trainings at the rates beside the chosen one that were not trained to the end, as planned or by an older plan."""
        if figure.choose not in BY_FIRST_RUNS or not self.chosen:
            return ()
        whole, tried = next(iter(self.chosen.values())).training, _by_rate(self.entries)
        return tuple(whole.with_(rate=rate) for rate in figure.rates_of(self.series) if rate not in tried)

    @property
    def on_other_data(self) -> tuple[Training, ...]:
        """Those chosen that train on another set than the paper's: on the whole of one that stands in for it, or on draws from
        one that is no part of it.
        """
        chosen = trainings(entry.cell for entry in self.chosen.values())
        stood = (cell for cell in chosen if cell.stands_for)
        return tuple(cell for cell in stood if cell.takes_all or not is_part(cell.data, cell.stands_for))

    @property
    def of_other_network(self) -> tuple[Training, ...]:
        """Those chosen of a network that stands in for the paper's, of which nothing is proved by it."""
        return tuple(cell for cell in trainings(entry.cell for entry in self.chosen.values()) if cell.network_for)

    def fits(self, seed: int) -> bool:
        """Whether the chosen network of a seed fits its training data."""
        return has_fit(self.chosen[seed], self.fit)

    def values(self, text: str) -> dict[int, float]:
        """A quantity by seed at the chosen rate; seeds for which it does not exist are left out."""
        return _values(self.chosen, text)

    def optimistic(self, text: str) -> dict[int, float]:
        """The same at the rate that is best for each seed."""
        return _values(self.best, text)

    def rate_in(self, reading: str) -> float | None:
        """The rate that r in one reading would choose among networks that fit; None where it was not read, or is not asked."""
        by_rate = _by_rate(self.entries)
        text = f"r@reading={reading}"
        every = [entry for own in by_rate.values() for entry in own.values()]
        if self.by_fit or not any(was_read(entry.outcome, text) for entry in every):
            return None
        return chosen_rate(by_rate, fit=self.fit, text=text)


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

    def to_frame(self, *quantities: str) -> pandas.DataFrame:
        """One row per cell that was run, one column per quantity (needs the extra `frame`).

        Quantities are written as claims write them, as `rho@reading=eval`; by default those that every series shows. Beside
        them stand series, rate and seed, whether the rate was chosen, and whether the network fits, where the figure asks.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError(needed_for="`Evidence.to_frame`", package="pandas", extra="frame") from error
        names = quantities or tuple(entry.name for entry in standard_quantities())
        rows = []
        for series, found in self.series.items():
            chosen = {id(entry) for entry in found.chosen.values()}
            for entry in found.entries:
                cell = entry.cell
                assert isinstance(cell, Training | Solve)
                own = {"rate": cell.rate, "epochs": cell.epochs} if isinstance(cell, Training) else {}
                fits = has_fit(entry, found.fit) if found.fit is not None else None
                head = {"series": series, "seed": cell.seed, **own, "chosen": id(entry) in chosen, "fits": fits}
                rows.append({**head, **{name: quantity(entry.outcome, name) for name in names}})
        return pandas.DataFrame(rows)

    @property
    def stand_ins(self) -> dict[str, tuple[str, ...]]:
        """The paper's data set or network → what stood in for it; several, where series differ in it."""
        cells = trainings(entry.cell for found in self.series.values() for entry in found.entries)
        pairs = [pair for cell in cells for pair in ((cell.stands_for, cell.data), (cell.network_for, cell.network))]
        stood: dict[str, dict[str, None]] = {}
        for paper, own in pairs:
            if paper:
                stood.setdefault(paper, {})[own] = None
        return {paper: tuple(own) for paper, own in stood.items()}


def gather(figure: Figure, entries: Iterable[Entry], *, scale: str, plan: Iterable[tuple[str, Cell]] = ()) -> Evidence:
    """Entries in any order as evidence; entries of series that the figure does not have are left out.

    `plan` is what runs asked for, as (series, cell); what was run was asked for, whether it stands there or not.
    """
    held, asked = list(entries), list(plan)
    series_found = {}
    for series in figure.series:
        own = [entry for entry in held if entry.series == series.name]
        planned = [cell for name, cell in asked if name == series.name]
        cells = (*planned, *(entry.cell for entry in own))
        made = series_evidence(figure, series, own, planned or ([figure.cell(series)] if scale == "paper" else []))
        series_found[series.name] = replace(
            made, planned=tuple(dict.fromkeys(cells)), fit=figure.fit, by_fit=figure.choose == BY_FIT
        )
    return Evidence(figure, scale, series_found)


def series_evidence(figure: Figure, series: Series, entries: list[Entry], planned: Sequence[Cell]) -> SeriesEvidence:
    """One series: the rate is chosen once, by the mean r over seeds, among the rates that most seeds were run at.

    Runs that were shortened to choose the rate (`short runs`) are entries too, but never chosen; what was `planned` tells them.
    """
    if not entries:
        return SeriesEvidence(series, None)
    if isinstance(solved := entries[-1].cell, Solve):
        return SeriesEvidence(series, None, tuple(entries), {solved.seed: entries[-1]}, {solved.seed: entries[-1]})
    by_rate = _by_rate(entries)
    if len(by_rate) > 1 and figure.choose in BY_FIRST_RUNS and _short_alone(entries, planned):
        return SeriesEvidence(series, None, tuple(entries))
    rank: Rank
    if figure.choose == BY_FIT:
        rank = partial(_rank_by_fit, fit=figure.fit, own=_rate_of(figure.cell(series)))
    else:
        rank = partial(_rank, fit=figure.fit, text=_ranked_by(entries))
    rate = _chosen_rate(by_rate, rank)
    best: dict[int, Entry] = {}
    for own in by_rate.values():
        for seed, entry in own.items():
            if seed not in best or rank([entry]) < rank([best[seed]]):
                best[seed] = entry
    return SeriesEvidence(series, rate, tuple(entries), by_rate[rate], best)


def _short_alone(entries: Sequence[Entry], planned: Sequence[Cell]) -> bool:
    """Whether trainings of one length, below that of the longest planned, are all there is."""
    lengths = {entry.training.epochs for entry in entries}
    return len(lengths) == 1 and max(lengths) < max((cell.epochs for cell in trainings(planned)), default=0)


def chosen_rate(by_rate: Mapping[float, Mapping[int, Entry]], *, fit: float | None = None, text: str = "r") -> float:
    """He & Su's rule over seeds: the rate of the most negative mean r; a seed without an r counts as r = 1, the worst.

    The paper speaks of networks that fit: rates at which more of the seeds fit come first.
    """
    return _chosen_rate(by_rate, partial(_rank, fit=fit, text=text))


def ranked_rates(entries: Sequence[Entry], *, fit: float | None = None) -> tuple[float, ...]:
    """All rates by the same rule, the best first, of runs of equal length and as many seeds at each."""
    by_rate = _by_rate(entries)
    return _in_order(by_rate, partial(_rank, fit=fit, text=_ranked_by(entries)))


def _chosen_rate(by_rate: Mapping[float, Mapping[int, Entry]], rank: Rank) -> float:
    full = max(len(own) for own in by_rate.values())
    return _in_order({rate: own for rate, own in by_rate.items() if len(own) == full}, rank)[0]


def _in_order(by_rate: Mapping[float, Mapping[int, Entry]], rank: Rank) -> tuple[float, ...]:
    return tuple(sorted(by_rate, key=lambda rate: (rank(list(by_rate[rate].values())), rate)))


def has_fit(entry: Entry, least: float | None) -> bool:
    """Whether a network names as many of its training samples rightly, in `eval` where that was read, as is asked for."""
    if least is None:
        return True
    accuracy = quantity(entry.outcome, "accuracy")
    return accuracy is not None and round(accuracy, 6) >= least  # 0.999 in float32 is below 0.999


def _by_rate(entries: Iterable[Entry]) -> dict[float, dict[int, Entry]]:
    """Trainings of the whole length, by rate and seed."""
    trained = [entry for entry in entries if isinstance(entry.cell, Training)]
    longest = max((entry.training.epochs for entry in trained), default=0)
    by_rate: dict[float, dict[int, Entry]] = {}
    for entry in sorted(trained, key=lambda entry: (entry.training.rate, entry.training.seed)):
        if entry.training.epochs == longest:
            by_rate.setdefault(entry.training.rate, {})[entry.training.seed] = entry
    return by_rate


def _ranked_by(entries: Iterable[Entry]) -> str:
    """The r that rates are chosen by: as the paper reads it, in `drawn`, where all entries have that, else the first one."""
    ended = [entry.outcome for entry in entries if entry.outcome.diverged is None]
    return PAPERS_R if ended and all(was_read(outcome, PAPERS_R) for outcome in ended) else "r"


def _rank(entries: Sequence[Entry], *, fit: float | None, text: str) -> tuple[float, ...]:
    """Fewest networks that do not fit, then the most negative mean r."""
    return _unfit(entries, fit), float(np.mean([_r(entry, text) for entry in entries]))


def _rank_by_fit(entries: Sequence[Entry], *, fit: float | None, own: float) -> tuple[float, ...]:
    """Fewest networks that do not fit; then the cell's own rate if they all do, else the highest mean training accuracy."""
    unfit = _unfit(entries, fit)
    known = [quantity(entry.outcome, "accuracy") for entry in entries]
    accuracy = float(np.mean([0.0 if value is None else value for value in known]))
    return unfit, float(entries[0].training.rate != own) if not unfit else -accuracy


def _unfit(entries: Sequence[Entry], fit: float | None) -> int:
    return sum(not has_fit(entry, fit) for entry in entries)


def _rate_of(cell: Cell) -> float:
    return cell.rate if isinstance(cell, Training) else 0.0


def _r(entry: Entry, text: str) -> float:
    r = quantity(entry.outcome, text)
    return 1.0 if r is None else r


def _values(entries: Mapping[int, Entry], text: str) -> dict[int, float]:
    known = {seed: quantity(entry.outcome, text) for seed, entry in entries.items()}
    return {seed: value for seed, value in known.items() if value is not None and np.isfinite(value)}
