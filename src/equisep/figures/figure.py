"""Figure, Series, Panel, Claim, Printed: a paper's figure as data; no figure knows about ensembles or machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from equisep.errors import InputError, did_you_mean
from equisep.figures.cell import Cell, Training

# A claim compares operands: its series, or, of one series, the quantities between `;`.
Rule = Literal[
    "law", "fuzzy law", "no law",  # r of every operand: at most −0.996; at most −0.95; above −0.971
    "below", "above",  # each operand less (greater) than the next, paired over seeds
    "differ",  # each operand from the next, paired over three seeds or more, either way
    "alike",  # each operand within a factor of 1.25 of the first, paired over seeds, by two one-sided tests
    "no less",  # each operand at least 80 % of the first, paired over seeds
    "rising", "falling",  # the slope over the places of the operands, by seed
    "less spread",  # one glob a group: mean range less in the first half of the groups than in the second
    "least rising",  # one glob a group: the x of the least value of the mean curve rises from group to group
    "least near",  # the value at x = `value` is within a factor of 1.25 of the least one
    "best at zero",  # of series: the first quantity is greatest where the second changes its sign (±1 place)
    "correlated",  # of series: two quantities rise together, by their rank correlation over the series, seed by seed
    "at least", "at most",  # against `value`
    "shown",  # at least `value`, of a test over its limit: a test that does not reject shows nothing
    "near",  # within a factor of 1.25 of `value`, by two one-sided tests
    "as printed",  # what the figure prints of the series is what one more training at its best rate may give
]  # fmt: skip
Choice = Literal["best r", "best fit", "given", "best two", "short runs"]
PanelKind = Literal["sites", "epochs", "sweep", "points", "scatter", "array", "categories"]
IN_OUR_WORDS = "in our words, after"  # where no sentence or number of the paper's is at hand to be quoted


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a figure: changes to the base cell, where it is drawn, and its place `x` in a sweep.

    `rates` and `lacks` replace the figure's; `seeds` is the most seeds it needs.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    panel: str = ""
    label: str = ""
    x: float | None = None
    rates: tuple[float, ...] | None = None
    seeds: int | None = None
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. Quantities are written `NAME` or `NAME@key=value,…`: see `equisep.figures.query`.

    kind        `sites`: `y` is a curve (`fuzziness`, `ncc@reading=eval`, …) over sites, a line per series, the law's line for D.
                `epochs`: the quantity `y` over the epochs read, one line per series. `sweep`: `y` over the `x` of the series,
                one line for each `group` (the part of a series' name before the last `-`; without one, all together). `points`:
                samples in principal components, one pair of axes per site. `scatter`: quantity `y` against quantity `x`, one
                point per cell; where series of several groups have the same `x`, the color tells that and the marker the group.
                `array`: the array `y` against the array `x` of each cell. `categories`: quantity `y` of each series beside
                the next, one point per cell and a bar at their mean.
    series      globs of the series drawn; by default those that name this panel.
    cut         of `sites`: a vertical line at this site, and a law for the sites up to it and one for those from it on.
    behind      of `sites`: a curve drawn in pale gray behind the others, for comparison.
    levels      horizontal lines, as (height, words). `upright`: vertical ones, as (a number of the cell, words).
    start       of `epochs`: the first epoch drawn.
    ordered     what the lines are in the order of, as `layer`: their color goes by it, and a bar says which is which.
    joined      whether points of a line are joined; not where nothing lies between them.
    heading     what stands above the rows of all panels with this heading. `absent`: what an empty panel says.
    """

    name: str
    title: str = ""
    kind: PanelKind = "sites"
    y: str = "fuzziness"
    x: str = ""
    y_label: str = ""
    x_label: str = ""
    log_x: bool = False
    log_y: bool = True
    series: tuple[str, ...] = ()
    cut: int | None = None
    behind: str = ""
    levels: tuple[tuple[float, str], ...] = ()
    upright: tuple[tuple[str, str], ...] = ()
    start: float | None = None
    ordered: str = ""
    joined: bool = True
    heading: str = ""
    absent: str = "no values"

    def __post_init__(self) -> None:
        _refuse_unknown("kind of panel", self.kind, get_args(PanelKind))


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says the figure shows, and the rule that judges it.

    of          series by name or glob, in the order of the comparison. `quantity`: see `equisep.figures.query`.
    exact       proven by a certificate or by arithmetic, so that seeds do not matter (solved problems).
    quote       the paper's own sentence or number. `source`: where it stands there; `ours …` where the paper says no such
                thing; `in our words, after …` where no sentence of it is at hand: such claims do not count as the paper's.
    fit         whether it is about networks that fit their training data, as far as the figure asks for that; or the least
                training accuracy that it asks for itself.
    lacks       what it lacks to be decided, in words, where its networks are not trained as those it speaks of.
    """

    text: str
    rule: Rule
    of: tuple[str, ...]
    quantity: str = "r"
    value: float | None = None
    exact: bool = False
    quote: str = ""
    source: str = ""
    fit: bool | float = True
    lacks: str = ""

    def __post_init__(self) -> None:
        _refuse_unknown("rule", self.rule, get_args(Rule))
        of: object = self.of
        if isinstance(of, str):
            raise InputError(f"The claim “{self.text}” is of {of!r}. Write its series in a tuple: ({of!r},).")

    @property
    def ours(self) -> bool:
        """Whether it says itself that no paper makes it."""
        return self.source.startswith("ours")

    @property
    def in_our_words(self) -> bool:
        """Whether no sentence or number of the paper's is at hand that says it."""
        return self.source.startswith(IN_OUR_WORDS)


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as the paper prints it, and where; `rounding`: how far the number itself may be from what is printed."""

    series: str
    quantity: str
    value: float
    place: str
    rounding: float = 0.0


@dataclass(frozen=True, slots=True)
class ComparativeBound:
    """The series that a comparative bound is estimated from: see `equisep.figures.papers.galanti2022_bound`.

    first       by depth, those trained on the first sample alone. `joined`: for each share p of changed labels, by depth,
                those trained on both samples. `epsilon`: how far from equal the class shares of balanced answers may be.
    """

    first: Mapping[int, str]
    joined: Mapping[float, Mapping[int, str]]
    epsilon: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One experiment of a paper: base cell × series × rates × seeds, how the rate is chosen, what is drawn and claimed.

    rates       by optimizer; those that are tried. `choose`: `best r` (the most negative mean r over seeds, once per series,
                among rates at which networks fit), `best fit` (the cell's own rate where all networks fit at it, else that
                at which most of them fit, or come nearest), `given` (the cell's own rate), `best two` (every rate with the
                first seed, then the best two of these with all seeds, of which the best r is taken), `short runs` (best r of
                runs of `short` times the epochs with one seed).
    fit         the least training accuracy, in `eval`, of a network that a claim may rest on; None where the paper does not
                speak of networks that fit.
    readings    in which claims are judged, the paper's own first; none: once, in the way that their quantity says.
    smoke       changes at smoke scale, beside the general ones; `seeds`: how many then.
    columns     panels in a row, as the paper arranges them. `same_heights`: whether panels of one quantity and data set have one
                y axis in all rows, where rows are compared; else those of a row have.
    code_rates  the rates that the authors' public code names, by series. `bound`: what a comparative bound is estimated from.
    lacks       where its networks or data are not the paper's, by design: what a claim of the paper lacks to be decided, in
                words. Claims of ours (`Claim.ours`) lack nothing by it.
    """

    id: str
    title: str
    source: str
    cite: str
    base: Cell
    series: tuple[Series, ...]
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...] = ()
    printed: tuple[Printed, ...] = ()
    rates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    choose: Choice = "given"
    short: float = 0.1
    seeds: int = 5
    columns: int = 3
    same_heights: bool = False
    smoke: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    code_rates: Mapping[str, float] = field(default_factory=dict)
    bound: ComparativeBound | None = None
    fit: float | None = None
    readings: tuple[str, ...] = ()
    lacks: str = ""

    def __post_init__(self) -> None:
        _refuse_unknown("way to choose the rate", self.choose, get_args(Choice))
        if type(self.seeds) is not int or self.seeds < 1:
            raise InputError(f"Figure `{self.id}` has seeds={self.seeds!r}; a whole number from 1 on is needed.")
        names = [series.name for series in self.series]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InputError(f"Figure `{self.id}` names the series `{min(twice)}` twice. Give each a name of its own.")
        self._check_series()
        for claim in self.claims:
            for pattern in claim.of:
                self.named(pattern)
        for printed in self.printed:
            self.named(printed.series)

    def _check_series(self) -> None:
        """Refuse series with fields that cells do not have, panels that are not there, or nothing to try."""
        panels = [panel.name for panel in self.panels]
        for series in self.series:
            self.base.with_(**series.changes)
            if series.panel and series.panel not in panels:
                raise InputError(
                    f"Series `{series.name}` of `{self.id}` is drawn in the panel `{series.panel}`, which does not exist."
                    f"{did_you_mean(series.panel, panels)} There are {', '.join(panels)}."
                )
            if isinstance(self.cell(series), Training) and not self.rates_of(series):
                raise InputError(f"Series `{series.name}` of `{self.id}` has no rate to try. Give `rates` one or more.")

    def named(self, pattern: str) -> tuple[Series, ...]:
        """The series of that name, or whose name the glob fits, in their order."""
        found = tuple(series for series in self.series if fnmatchcase(series.name, pattern))
        if not found:
            names = [series.name for series in self.series]
            raise InputError(f"Figure `{self.id}` has no series `{pattern}`.{did_you_mean(pattern, names)}")
        return found

    def drawn_in(self, panel: Panel) -> tuple[Series, ...]:
        """The series of one panel."""
        if panel.series:
            chosen = {series.name for pattern in panel.series for series in self.named(pattern)}
            return tuple(series for series in self.series if series.name in chosen)
        return tuple(series for series in self.series if series.panel == panel.name)

    def cell(self, series: Series) -> Cell:
        """The cell of a series before rates and seeds."""
        return self.base.with_(**series.changes)

    def rates_of(self, series: Series) -> tuple[float, ...]:
        """The rates tried for a series; none for what is solved."""
        cell = self.cell(series)
        if not isinstance(cell, Training):
            return ()
        if series.rates is not None:
            return series.rates
        return (cell.rate,) if self.choose == "given" else self.rates.get(cell.optimizer, (cell.rate,))

    def fit_of(self, claim: Claim) -> float | None:
        """The least training accuracy of networks that a claim may rest on; None where it asks for none."""
        if isinstance(claim.fit, bool):
            return self.fit if claim.fit else None
        return claim.fit

    def cells(self, series: Series, *, seeds: Sequence[int], rates: Sequence[float] | None = None) -> tuple[Cell, ...]:
        """All cells of a series: every rate with every seed; `seed` also draws the data."""
        tried = self.rates_of(series) if rates is None else tuple(rates)
        wanted = list(seeds)[: series.seeds]
        base = self.cell(series)
        if not isinstance(base, Training):
            return (base,)
        return tuple(replace(base, rate=rate, seed=seed, data_seed=seed) for rate in tried for seed in wanted)


def _refuse_unknown(what: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(f"No {what} `{value}`.{did_you_mean(str(value), known)} Known: {', '.join(known)}.")
