"""Plan: from a figure to its cells, as the paper has them or small enough to try, and to groups that train together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from equisep.errors import InputError, did_you_mean
from equisep.figures.cell import Cell, Solve, Training, field_names
from equisep.figures.figure import Figure, Series

Runner = Literal["peeled", "encoders", "ensembles", "networks"]
FEED_FORWARD = ("fnn", "fnn-linear", "fnn-no-batchnorm")
SIDE_BY_SIDE = ("sgd", "momentum", "adam")  # the optimizers of ensembles
# what members of one ensemble may differ in
OWN = (
    "optimizer", "rate", "weight_decay", "momentum", "milestones", "factor", "class_weights", "loss", "seed", "data_seed",
    "label_noise", "second_noise",
)  # fmt: skip
SEEDS_TOGETHER = 5  # so that more seeds add groups and change none: who trains with whom decides the last digits
SCALES = ("paper", "smoke")
EPOCHS, PER_CLASS, TEST_PER_CLASS, LARGEST, WIDEST = 6, 12, 10, 24, 100
RATES, SEEDS = 2, 2
MOST_SEEDS = 10_000
NARROW = 1 / 16  # of a convolutional network's channels


@dataclass(frozen=True, slots=True)
class Planned:
    """One cell and the series it belongs to."""

    series: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a figure is to be run: its scale, seeds, stand-ins for data sets and networks, and changes to every cell.

    `data` maps the paper's data set to the one that stands in for it, `networks` its network. `substitute` names what
    stands in for a cell's data where they are not there (smoke scale only), or None where they are.
    """

    scale: str = "paper"
    seeds: int | None = None
    data: Mapping[str, str] | None = None
    changes: Mapping[str, Any] | None = None
    substitute: Callable[[Training], str | None] | None = None
    networks: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        check_scale(self.scale)

    def cell(self, cell: Cell, figure: Figure) -> Cell:
        """A cell of the figure as it will be run."""
        made = scaled(cell, figure, self.scale)
        made = made.with_(**{name: value for name, value in (self.changes or {}).items() if _concerns(name, made)})
        if not isinstance(made, Training):
            return made
        network = (self.networks or {}).get(made.network, made.network)
        if network != made.network:
            made = made.with_(network_for=made.network_for or made.network, network=network)
        other = (self.data or {}).get(made.data)
        if other is None and self.scale == "smoke":
            other = figure.smoke.get("data")
        if other is None and self.scale == "smoke" and self.substitute is not None:
            other = self.substitute(made)
        return made if other in (None, made.data) else made.with_(stands_for=made.data, data=other)


def _concerns(name: str, cell: Cell) -> bool:
    """Whether a field is one of the cell's kind, or of no kind, which the cell refuses."""
    return name in field_names(type(cell)) or name not in (*field_names(Training), *field_names(Solve))


def check_changes(figure: Figure, changes: Mapping[str, Any]) -> None:
    """Refuse to change a field that no cell of the figure has: nobody would notice that it changed nothing."""
    kinds = {type(figure.cell(series)) for series in figure.series}
    for name in changes:
        if kinds == {Solve} and name in field_names(Training) and name not in field_names(Solve):
            raise InputError(f"`{figure.id}` solves problems, which have no field `{name}`. Leave it out.")
        if kinds == {Training} and name in field_names(Solve) and name not in field_names(Training):
            raise InputError(f"`{figure.id}` trains networks, which have no field `{name}`. Leave it out.")


def planned_cells(
    figure: Figure, asked: RunOptions, *, rates: Callable[[Series], Sequence[float]] | None = None
) -> tuple[Planned, ...]:
    """Every cell of a figure: series × rates × seeds; where its first runs choose the rates, those at `rates` alone."""
    seeds = seeds_at(figure, asked.scale, asked.seeds)
    planned: list[Planned] = []
    for series in figure.series:
        tried = rates_at(figure, series, asked.scale) if rates is None else rates(series)
        own = figure.cells(series, seeds=seeds, rates=tried)
        planned.extend(Planned(series.name, asked.cell(cell, figure)) for cell in own)
    return tuple(planned)


def short_cells(figure: Figure, asked: RunOptions) -> tuple[Planned, ...]:
    """The short runs that choose a rate: every rate with one seed, for a share of the epochs."""
    planned: list[Planned] = []
    for series in figure.series:
        tried = figure.cells(series, seeds=(0,), rates=rates_at(figure, series, asked.scale))
        planned.extend(Planned(series.name, _short(asked.cell(cell, figure), figure)) for cell in tried)
    return tuple(planned)


def _short(cell: Cell, figure: Figure) -> Cell:
    assert isinstance(cell, Training)  # what is solved has no rate to choose
    return cell.with_(epochs=max(1, round(cell.epochs * figure.short)), read_epochs=(), test_sites=False)


def first_cells(figure: Figure, asked: RunOptions) -> tuple[Planned, ...]:
    """What is run first where runs choose the rates of the rest: the short ones, or every rate with the first seed; else none."""
    if figure.choose == "short runs":
        return short_cells(figure, asked)
    return planned_cells(figure, replace(asked, seeds=1)) if figure.choose == "best two" else ()


def cells_to_run(figure: Figure, asked: RunOptions) -> list[Planned]:
    """The cells that a run trains: where its first ones choose the rates, those and then the rest as of any rates."""
    first = first_cells(figure, asked)
    if not first:
        return list(planned_cells(figure, asked))
    rest = planned_cells(
        figure, asked, rates=lambda series: rates_at(figure, series, asked.scale)[: chosen_count(figure)]
    )
    return list(dict.fromkeys([*first, *rest]))  # of whole networks those that were run first are not run again


def chosen_count(figure: Figure) -> int:
    """How many rates of each series the first runs choose."""
    return 2 if figure.choose == "best two" else 1


def declared(figure: Figure, asked: RunOptions) -> Callable[[str, Cell], bool]:
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
            not isinstance(cell, Training)
            or cell.rate in rates[series]  # one that is no longer tried must not be chosen
        )
    )


def _bare(cell: Cell) -> str:
    """The key without rate, seeds and stand-in."""
    if not isinstance(cell, Training):
        return cell.key
    return cell.of_paper.with_(rate=0.0, seed=0, data_seed=0).key


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


def runner_of(cell: Cell) -> Runner:
    """The file of `runs/runners` that runs a cell.

    Feed-forward networks on images as they are, with ReLU or without and one of the papers' optimizers, share ensembles.
    """
    if not isinstance(cell, Training):
        return "peeled"
    if cell.network == "bert" or cell.network.startswith("hf:"):
        return "encoders"
    usual = isinstance(cell.activation, bool) and cell.optimizer in SIDE_BY_SIDE
    return "ensembles" if cell.network in FEED_FORWARD and usual and not cell.augment else "networks"


def _together(cell: Cell) -> Any:
    if not isinstance(cell, Training) or runner_of(cell) != "ensembles":
        return cell.key
    rest = tuple(getattr(cell, name) for name in field_names(Training) if name not in OWN)
    # the loss of a rule is a weighted mean, which all members of an ensemble share
    return (*rest, cell.seed // SEEDS_TOGETHER, *(("by rule",) if cell.loss else ()))


def parse_stand_ins(texts: Sequence[str]) -> dict[str, str]:
    """`NAME=OTHER` for each data set or network that another stands in for."""
    stand_ins = {}
    for text in texts:
        name, equals, other = text.partition("=")
        if not equals or not name or not other:
            raise InputError(f"A stand-in is written NAME=OTHER, such as cifar10=cifar10_7k; found `{text}`.")
        stand_ins[name] = other
    return stand_ins


def check_scale(scale: str) -> str:
    """The scale, refused where there is none of that name."""
    if scale not in SCALES:
        raise InputError(f"No scale `{scale}`.{did_you_mean(scale, SCALES)} Known: {', '.join(SCALES)}.")
    return scale


def seeds_at(figure: Figure, scale: str, seeds: int | None) -> tuple[int, ...]:
    """The seeds that are run: those asked for, else the figure's own number, or two at smoke scale unless it says."""
    small = min(int(figure.smoke.get("seeds", SEEDS)), figure.seeds)
    count = seeds if seeds is not None else figure.seeds if scale == "paper" else small
    if not 1 <= count <= MOST_SEEDS:
        raise InputError(f"`seeds` was {count}; a number from 1 to {MOST_SEEDS:,} is needed.")
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
    changes = _trained_small(cell, most) if isinstance(cell, Training) else _solved_small(cell)
    own = {name: value for name, value in figure.smoke.items() if name not in ("data", "epochs", "seeds")}
    return cell.with_(**{**changes, **own})


def _solved_small(cell: Cell) -> dict[str, Any]:
    assert isinstance(cell, Solve)
    return {"ratios": cell.ratios[:: max(1, len(cell.ratios) // 5)], "starts": min(cell.starts, 2)}


def _trained_small(cell: Training, most: int) -> dict[str, Any]:
    epochs = min(cell.epochs, most)
    shorter = epochs / cell.epochs if cell.epochs else 1.0
    changes: dict[str, Any] = {
        "epochs": epochs,
        "test_per_class": TEST_PER_CLASS,
        "read_epochs": tuple(sorted({round(epoch * shorter) for epoch in cell.read_epochs})),
        "coordinates": min(cell.coordinates, 60),
        "noise_draws": min(cell.noise_draws, 2),
        "second": min(cell.second, PER_CLASS),
        "validation": min(cell.validation, PER_CLASS),
        "reductions": tuple("pca=10" if name.startswith("pca=") else name for name in cell.reductions),
        "width_multiplier": _narrow(cell),
    }
    changes |= {name: _fewer(getattr(cell, name), shorter) for name in ("first_epochs", "last_epochs")}
    changes["first_schedule"] = _fewer(cell.first_schedule, shorter)
    changes |= _few_samples(cell)
    if cell.copies is not None:
        changes["copies"] = tuple(min(times, LARGEST) for times in cell.copies)
    return changes


def _fewer(epochs: int, shorter: float) -> int:
    return max(1, round(epochs * shorter)) if epochs else 0


def _narrow(cell: Training) -> float:
    if cell.network.startswith("fnn"):
        widest = max(cell.widths or (cell.width or WIDEST,))
        return min(1.0, WIDEST / widest)
    foreign = ":" in cell.network and runner_of(cell) == "networks"  # code that is not ours knows no such option
    return cell.width_multiplier if foreign else NARROW


def _few_samples(cell: Training) -> Mapping[str, Any]:
    if cell.sizes is None:
        return {"per_class": PER_CLASS if cell.per_class is None else _between(cell.per_class)}
    most = max(cell.sizes)
    return {"sizes": tuple(math.ceil(size * min(1.0, LARGEST / most)) for size in cell.sizes)}


def _between(per_class: int) -> int:
    """Fewer samples that keep their order: 100, 200 and 500 a class stay different."""
    return min(per_class, PER_CLASS + per_class // 100)
