"""What a claim is judged by: for each operand, pair or group one number per seed, of networks that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from equisep.figures.evidence import Entry, Evidence, SeriesEvidence, has_fit
from equisep.figures.figure import Claim, Printed
from equisep.figures.quantities import Query, depends_on_reading, quantity, quantity_words
from equisep.figures.rules import COMPARISONS, GROUPED, LEVEL, PAIRED_QUANTITIES, TRENDS, quantities_of
from equisep.law.seeds import Scale
from equisep.results import Interval

_Number = Callable[[Sequence[float], Sequence[float]], float | None]
RESAMPLES = 2000
_ATANH = ("r", "class_r")  # numbers that are correlations
_POSITIVE = ("rho", "half_life", "last", "cdnv", "cdnv_test", "fuzziness", "fuzziness_test", "ratio")


@dataclass(frozen=True, slots=True)
class Operand:
    """One series and one quantity of it, with its x in a sweep.

    asked       the quantity as the claim writes it; `quantity`: in the reading that is judged.
    fit         the least training accuracy of networks that count; None: all do. `best`: at the rate that is best for each
                seed, not at the chosen one.
    """

    name: str
    series: SeriesEvidence
    asked: str
    quantity: str
    x: float
    fit: float | None = None
    best: bool = False

    @property
    def entries(self) -> Mapping[int, Entry]:
        """By seed, those that count."""
        every = self.series.best if self.best else self.series.chosen
        return {seed: entry for seed, entry in every.items() if has_fit(entry, self.fit)}

    @property
    def unfit(self) -> frozenset[int]:
        """The seeds left out because their network does not fit."""
        return frozenset(self.series.best if self.best else self.series.chosen) - frozenset(self.entries)

    @property
    def values(self) -> dict[int, float]:
        """By seed, where the number exists."""
        known = {seed: quantity(entry.outcome, self.quantity) for seed, entry in self.entries.items()}
        return {seed: value for seed, value in known.items() if value is not None and np.isfinite(value)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One part of a claim: its name, what the number is called, one per seed, and the operands it comes from.

    scale       where means and intervals are made. `printed`: what a prediction is held against.
    n           seeds that have the number. `mean`, `interval`: where they are not made of the values.
    """

    name: str
    called: str
    values: tuple[float, ...]
    of: tuple[Operand, ...]
    scale: Scale = "plain"
    printed: Printed | None = None
    mean: float | None = None
    interval: Interval | None = None
    n: int = -1
    unfit: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", len(self.values) if self.n < 0 else self.n)
        object.__setattr__(self, "unfit", frozenset().union(*(operand.unfit for operand in self.of)))


def in_reading(text: str, reading: str) -> str:
    """The quantity in a reading, where it is one of features and names none."""
    return Query.of(text).renamed(Query.of(text).name, reading=reading) if depends_on_reading(text) else text


def comparisons_of(evidence: Evidence, claim: Claim, reading: str = "") -> Iterator[Comparison]:
    """The parts that the claim's rule looks at; only seeds that have every number are paired."""
    made = _Maker(evidence, claim, reading)
    if claim.rule in COMPARISONS:
        yield from made.compared()
    elif claim.rule in TRENDS or claim.rule in GROUPED:
        yield from made.of_groups()
    elif claim.rule == "best at zero":
        yield made.best_at_zero()
    elif claim.rule == "correlated":
        yield made.correlated()
    elif claim.rule == "as printed":
        yield from made.as_printed()
    elif claim.rule == "near":
        yield from made.near()
    else:
        for operand in made.operands(claim.of):
            yield _single(operand, claim)


def _single(operand: Operand, claim: Claim) -> Comparison:
    """One quantity by itself; against a value, D and others that are positive and skewed are compared by logarithms."""
    values = tuple(operand.values.values())
    skewed = claim.rule in ("at least", "at most") and Query.of(operand.asked).name in _POSITIVE
    logs = skewed and min(values, default=0.0) > 0
    return Comparison(operand.name, quantity_words(operand.asked), values, (operand,), "log" if logs else "plain")


@dataclass(frozen=True, slots=True)
class _Maker:
    """The comparisons of one claim in one reading."""

    evidence: Evidence
    claim: Claim
    reading: str

    def operands(self, patterns: Sequence[str], *, best: bool = False) -> tuple[Operand, ...]:
        """Series × quantities; the x of a series is its own where all have one, else its place.

        Trends are judged over places, so that one far x (R = 500, or infinite) does not decide alone.
        """
        figure, asked = self.evidence.figure, quantities_of(self.claim)
        names = [name for pattern in patterns for name in (series.name for series in figure.named(pattern))]
        each = [self.evidence.series[name] for name in dict.fromkeys(names)]
        own = all(one.series.x is not None for one in each) and len(asked) == 1 and self.claim.rule not in TRENDS
        made = [(one, text) for one in each for text in asked]
        return tuple(
            Operand(
                _name(one, text, each, asked),
                one,
                text,
                in_reading(text, self.reading) if self.reading else text,
                float(one.series.x or 0.0) if own else float(index),
                figure.fit_of(self.claim),
                best,
            )
            for index, (one, text) in enumerate(made)
        )

    def compared(self) -> Iterator[Comparison]:
        """Pairs: of series, or of the quantities of each series."""
        operands = self.operands(self.claim.of)
        asked = len(quantities_of(self.claim))
        rows = [operands] if asked == 1 else [operands[at : at + asked] for at in range(0, len(operands), asked)]
        to_first = self.claim.rule in ("alike", "no less")
        for row in rows:
            pairs = [(row[0], other) for other in row[1:]] if to_first else list(pairwise(row))
            for first, second in pairs:
                yield self._pair(first, second)

    def _pair(self, first: Operand, second: Operand) -> Comparison:
        one, two = first.values, second.values
        both = [(one[seed], two[seed]) for seed in one if seed in two]
        a, b, of = first.name, second.name, (first, second)
        called = quantity_words(first.asked) if first.asked == second.asked else ""
        if self.claim.rule == "alike":
            ratios = tuple(y / x for x, y in both if x and y / x > 0)
            return Comparison(f"{b} / {a}", f"ratio of {called}".removesuffix(" of "), ratios, of, "log")
        if self.claim.rule == "no less":
            ratios = tuple(y / x for x, y in both if x)
            return Comparison(f"{b} / {a}", f"ratio of {called}".removesuffix(" of "), ratios, of)
        called = f"difference in {called}".removesuffix(" in ")
        if self.claim.rule == "above":
            return Comparison(f"{a} − {b}", called, tuple(x - y for x, y in both), of)
        return Comparison(f"{b} − {a}", called, tuple(y - x for x, y in both), of)

    def of_groups(self) -> Iterator[Comparison]:
        """Rules that look at a glob as a whole: slopes, places of the least value, ranges."""
        rule, patterns = self.claim.rule, self.claim.of
        groups = [self.operands((pattern,)) for pattern in patterns]
        called = quantity_words(self.claim.quantity)
        if rule == "less spread":
            yield self._spread(groups)
        elif rule == "least rising":
            for (first, low), (second, high) in pairwise(zip(patterns, groups, strict=True)):
                yield _step(f"{second} − {first}", f"step in the place of the least mean {called}", low, high)
        elif rule == "least near":
            at = float(self.claim.value or 0.0)
            for pattern, group in zip(patterns, groups, strict=True):
                words = f"{called} at {at:g} over the least"
                yield Comparison(pattern, words, _over(group, lambda x, y: _over_least(x, y, at)), group, "log")
        elif len(groups) > 1 and all(len(group) > 1 for group in groups):
            for pattern, group in zip(patterns, groups, strict=True):
                yield Comparison(pattern, f"slope of {called}", _over(group, _slope), group)
        else:
            every = self.operands(patterns)
            yield Comparison(", ".join(patterns), f"slope of {called}", _over(every, _slope), every)

    def _spread(self, groups: Sequence[tuple[Operand, ...]]) -> Comparison:
        """By seed: the mean range within the groups of the second half minus that within those of the first."""
        ranges = [_by_seed(group, lambda _, y: max(y) - min(y)) for group in groups]
        half, patterns = len(groups) // 2, self.claim.of
        shared = [seed for seed in ranges[0] if all(seed in other for other in ranges)]
        values = tuple(
            float(np.mean([own[seed] for own in ranges[half:]]) - np.mean([own[seed] for own in ranges[:half]]))
            for seed in shared
        )
        name = f"within {', '.join(patterns[half:])} − within {', '.join(patterns[:half])}"
        of = tuple(each for group in groups for each in group)
        return Comparison(name, f"range of {quantity_words(self.claim.quantity)}", values, of)

    def best_at_zero(self) -> Comparison:
        """By seed: places between where the first quantity is greatest and the nearest change of sign of the second.

        A seed in which the second keeps its sign has no such number.
        """
        asked = quantities_of(self.claim)
        every = self.operands(self.claim.of)
        rows = [tuple(each for each in every if each.asked == text) for text in asked]
        greatest = _by_seed(rows[0], lambda _, y: float(np.argmax(y)))
        changes = {seed: _changes(y) for seed, y in _rows_by_seed(rows[1]).items()}
        values = tuple(
            min(abs(greatest[seed] - change) for change in changes[seed]) for seed in greatest if changes.get(seed)
        )
        first, second = map(quantity_words, asked)
        called = f"number of steps between the greatest {first} and where {second} changes its sign"
        return Comparison(", ".join(self.claim.of), called, values, (*rows[0], *rows[1]))

    def correlated(self) -> Comparison:
        """By seed: the rank correlation of two quantities over those series that have both, at least three."""
        asked = quantities_of(self.claim)
        every = self.operands(self.claim.of)
        first, second = ([each for each in every if each.asked == text] for text in asked)
        both = [(one.values, two.values) for one, two in zip(first, second, strict=True)]
        seeds = dict.fromkeys(seed for one, _ in both for seed in one)
        pairs = {seed: [(one[seed], two[seed]) for one, two in both if seed in one and seed in two] for seed in seeds}
        ranks = (_rank_correlation(own) for own in pairs.values() if len(own) >= PAIRED_QUANTITIES["correlated"])
        values = tuple(value for value in ranks if value is not None)
        called = f"rank correlation of {' and '.join(map(quantity_words, asked))}"
        return Comparison(", ".join(self.claim.of), called, values, every)

    def as_printed(self) -> Iterator[Comparison]:
        """Each printed number beside those of all draws, each at its own best rate, as the paper's one training was."""
        printed = {(row.series, row.quantity): row for row in self.evidence.figure.printed}
        for operand in self.operands(self.claim.of, best=True):
            row = printed[operand.series.series.name, operand.asked]
            values, name = operand.values, Query.of(operand.asked).name
            scale: Scale = "atanh" if name in _ATANH else "log" if name in _POSITIVE else "plain"
            called = f"{quantity_words(operand.asked)} at the best rate of each draw"
            usable = tuple(value for value in values.values() if scale != "log" or value > 0)
            yield Comparison(operand.name, called, usable, (operand,), scale, row)

    def near(self) -> Iterator[Comparison]:
        """Each operand over the value."""
        value = self.claim.value or 1.0
        for operand in self.operands(self.claim.of):
            ratios = tuple(own / value for own in operand.values.values() if own / value > 0)
            called = f"{quantity_words(operand.asked)} over {value:g}"
            yield Comparison(operand.name, called, ratios, (operand,), "log")


def _name(each: SeriesEvidence, text: str, found: Sequence[SeriesEvidence], asked: Sequence[str]) -> str:
    if len(asked) == 1:
        return each.series.name
    return quantity_words(text) if len(found) == 1 else f"{each.series.name} {quantity_words(text)}"


def _step(name: str, called: str, low: tuple[Operand, ...], high: tuple[Operand, ...]) -> Comparison:
    """By how much the place of the least value of the mean curve moves; seeds are resampled in each group by itself.

    Means are of logarithms where all values are positive, as of D.
    """
    tables = [_table(group) for group in (low, high)]
    if any(not len(table) for table in tables):
        return Comparison(name, called, (), (*low, *high))
    places = [np.array([operand.x for operand in group]) for group in (low, high)]

    draws = np.random.default_rng(0)
    drawn = [[draws.integers(len(table), size=len(table)) for table in tables] for _ in range(RESAMPLES)]
    whole, *steps = _steps(tables, places, [[np.arange(len(table)) for table in tables], *drawn])
    n = min(len(table) for table in tables)
    ends = np.quantile(steps, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    interval = Interval(low=float(ends[0]), high=float(ends[1]), level=LEVEL, kind="bootstrap", n=n)
    own = interval if n > 1 else None
    return Comparison(name, called, (), (*low, *high), mean=float(whole), interval=own, n=n)


def _steps(
    tables: Sequence[np.ndarray], places: Sequence[np.ndarray], draws: Sequence[Sequence[np.ndarray]]
) -> np.ndarray:
    """From the first table to the second, for every draw of their rows: the place of the least mean."""
    rows = (np.array([own[at] for own in draws]) for at in range(2))
    before, after = (
        x[table[drawn].mean(axis=1).argmin(axis=1)] for x, table, drawn in zip(places, tables, rows, strict=True)
    )
    return np.asarray(after - before, dtype=float)


def _table(group: Sequence[Operand]) -> np.ndarray:
    """A row per seed, of the values over the group; logarithms where all are positive."""
    rows = np.array(list(_rows_by_seed(group).values()))
    return np.log(rows) if rows.size and rows.min() > 0 else rows


def _over(group: Sequence[Operand], number: _Number) -> tuple[float, ...]:
    return tuple(_by_seed(group, number).values())


def _by_seed(group: Sequence[Operand], number: _Number) -> Mapping[int, float]:
    """A number of the values over x, for each seed that has all of them."""
    x = tuple(operand.x for operand in group)
    made = {seed: number(x, y) for seed, y in _rows_by_seed(group).items()}
    return {seed: value for seed, value in made.items() if value is not None}


def _rows_by_seed(group: Sequence[Operand]) -> Mapping[int, tuple[float, ...]]:
    values = [operand.values for operand in group]
    shared = [seed for seed in values[0] if all(seed in other for other in values)]
    return {seed: tuple(other[seed] for other in values) for seed in shared}


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Least squares; exactly 0 where all x, or all y, are one, and no rounding that would look like a trend."""
    if min(x) == max(x) or min(y) == max(y):
        return 0.0
    away = np.asarray(x) - np.mean(x)
    return float(away @ np.asarray(y) / (away @ away))


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's: Pearson's of the ranks, equal numbers sharing theirs; None where all numbers of a side are one."""
    sides = np.array(pairs).T
    ranks = [np.array([np.mean(np.flatnonzero(np.sort(side) == value)) for value in side]) for side in sides]
    if any(np.ptp(own) == 0 for own in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _over_least(x: Sequence[float], y: Sequence[float], at: float) -> float | None:
    """The value at a place over the least one; None where there is no such place, or the least is not positive."""
    return y[list(x).index(at)] / min(y) if at in x and min(y) > 0 else None


def _changes(y: Sequence[float]) -> tuple[float, ...]:
    """The places at which a row changes its sign: of the two beside, the one nearer to zero."""
    return tuple(
        float(index if abs(a) <= abs(b) else index + 1)
        for index, (a, b) in enumerate(pairwise(y))
        if a == 0 or b == 0 or (a > 0) != (b > 0)
    )
