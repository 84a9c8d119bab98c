"""From estimates with and without each fold to D of the population: a value with its interval, or a refusal with its reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from equisep.law.fit import fit_law
from equisep.law.intervals import law_intervals, standard_error
from equisep.law.quantiles import normal_quantile, student_quantile, two_sided
from equisep.results import Corrected, LawFit, Note, PopulationEstimate

NEAR_CHANCE = 0.75  # share of the chance level from which on what plain D says is mostly noise …
BARE_SIGNAL = 0.45  # … unless class means have that share of the noise in length, which is then known by itself
BY_CHANCE = 0.6  # … and which plain D may reach, by its error, where it says as well how large D may be
HALF_BELIEVED = 0.05  # standard error, on the scale of ln plain D, at which half of the folds' bias is taken off …
TOO_MUCH = 0.1  # … and the bias itself at which that is halved
STANDS_OUT = 2.2  # deviations that noise alone would have, by which class means must exceed it
MEDIAN = 0.15  # standard errors that the median of a sum of squares lacks to its mean, where that is one error or less
LEAST = 1 / 3  # … and the least that is told of a D that is not negative
LABELINGS_ADD = 1.31  # variance of one labeling with that of the median of five
FARTHEST = 1000  # times D: an upper end beyond is none
ROOM = 1.25  # samples are asked for until D is the chance level, and some more
BISECTIONS = 32  # ends to 2e-9 of themselves
ELONGATED = 100.0  # class means a decade longer along some directions than along others, which then are hardly seen …
NOT_WIDE = 1.75  # … and the upper end over the value up to which D is known all the same, …
MOST_HAVE = 3  # … if most classes have so many samples: of two a fold leaves one, and the width is not known
SHORTEST = (
    "class means seem to differ along some directions less than a tenth as much as along others, too little to tell D"
)
UNLIKE = 8.0  # times as much spread of the classes along one direction of their means as along another is too much, …
CLEAR = 4.0  # … unless class means are so long, over their noise
WIDEST = "some classes spread so much more than others that their means are lost in noise, too much to tell D"
NO_LIMIT = "D has no upper limit by these samples"


def corrected(
    estimate: PopulationEstimate,
    *,
    plain: float | None,
    chance: float | None,
    counts: Sequence[int],
    level: float = 0.95,
) -> Corrected:
    """D of the population behind the samples, from its estimate and those without each fold.

    D = N/G: N is the spread along the class means, G their squared length, both over what noise adds, each with its error by a
    jackknife over the folds, less its `excess`. Upwards D reaches to where ln(1 + G) − ln(1 + N/D) is as large as its error
    allows: on that scale, of what samples of this number show, errors are of one size, and the less class means stand out of
    noise the further up D may lie. Downwards N − D G says so (Fieller 1954), to 0 where noise may be all of the spread.

    Where all estimates are positive, the folds' bias is taken off on the scale of what samples would show as plain D,
    h = −ln(1/D + 1/chance): (m − 1)(mean h_f − h) (Quenouille 1956) by the share 1/(1 + (se/0.05)² + (bias/0.1)²), all where
    folds agree, little where they do not or where it is large, since then it grows faster than 1/n. The interval is no
    narrower than by the error of h, where plain D is far from chance, and its lower end at most D less 1.96 times the
    `least_error`. N is a sum of squares, whose median lies below its mean: 0.15 se²/(D + se) is added.

    Near the chance level samples whose noise makes D small are told and others refused, so that upper ends must be careful:
    where plain D, as much larger as its error and that of random labels allow, is above 0.6 of its chance level, the upper
    end is at least what follows from that alone; where that has no end, what follows from G less 2.2 of the deviations
    that noise alone has, and N larger by 2.2 of its errors. There is no value where plain D is above 0.75 of its chance level and
    G below 0.45, where the interval has no upper end, where class means are a decade longer along some directions than along
    others and the upper end is above 1.75 times D, or half of the classes have two samples, or where classes spread eight times
    as much along one direction of the means as along another, and G is below 4 (docs/intervals.md).
    """
    present = [count for count in counts if count]
    if min(present, default=0) < 2:
        return Corrected(chance=chance, reason="a class has fewer than 2 samples", needed_per_class=2)
    if plain is None:
        return Corrected(chance=chance, reason="D does not exist: the class means coincide")
    if not chance:  # 0 is that of samples that all are their class's mean
        return Corrected(chance=chance, reason="the chance level is not known")
    needed = _needed(plain, chance, present)
    if estimate.value is None:
        return Corrected(chance=chance, reason="class means are dependent, or classes have no spread")
    if estimate.unlike > UNLIKE and estimate.signal < CLEAR:
        return Corrected(chance=chance, needed_per_class=_clear(estimate.signal, needed, present), reason=WIDEST)
    if plain > NEAR_CHANCE * chance and estimate.signal < BARE_SIGNAL:
        share = f"plain D stands at {100 * plain / chance:.0f} % of its chance level"
        return Corrected(chance=chance, needed_per_class=needed, reason=share)
    known = _Known.of(estimate, plain=plain, chance=chance, present=present, level=level)
    high = known.upper() if known else math.inf
    reason = known.hidden(high) if known else NO_LIMIT
    if known is None or reason is not None:
        return Corrected(chance=chance, needed_per_class=_more(needed, present), reason=reason)
    folds = _folds(known.value, estimate)
    return Corrected(known.value, low=known.lower(), high=high, level=level, chance=chance, folds=folds)


@dataclass(frozen=True, slots=True)
class _Known:
    """All that the two ends follow from: `value` is D as it is told, `spread_error` the standard error of N as one of D."""

    estimate: PopulationEstimate
    plain: float
    chance: float
    present: Sequence[int]
    level: float
    ratio: _Ratio
    shown: _Shown | None
    value: float
    spread_error: float

    @classmethod
    def of(
        cls, estimate: PopulationEstimate, *, plain: float, chance: float, present: Sequence[int], level: float
    ) -> _Known | None:
        """None where D less its bias has no limit."""
        assert estimate.value is not None
        shown = _shown(estimate, chance)
        unbiased = estimate.value if shown is None else _behind(shown.center, chance)
        if not math.isfinite(unbiased):
            return None
        ratio = _Ratio.of(estimate, unbiased / estimate.value)
        error = math.sqrt(ratio.spread_variance) / ratio.signal
        value = ratio.value
        if error:
            value = max(value + MEDIAN * error * error / (abs(value) + error), LEAST * error)
        return cls(estimate, plain, chance, present, level, ratio, shown, value, error)

    @property
    def reach(self) -> float:
        """Standard errors to either end."""
        return student_quantile(two_sided(self.level), len(self.estimate.left_out) - 1)

    @property
    def farthest(self) -> float:
        """An upper end beyond is none."""
        return FARTHEST * self.value

    def upper(self) -> float:
        """The upper end, which may lie beyond the farthest: by N and G, and no less than by what plain D says."""
        high = self.ratio.upper(self.value, self.reach)
        if high > self.farthest and self.shown is not None:  # G may be nothing, and all folds agree on D nevertheless
            steady = standard_error(np.log(self.estimate.left_out), "jackknife") / math.sqrt(1 + self.estimate.excess)
            high = self.value * math.exp(self.reach * steady)
        return max(high, self._upper_by_plain())

    def _upper_by_plain(self) -> float:
        """What follows from plain D alone, and from G alone where that has no end: near chance, samples told show less."""
        error = math.inf if self.shown is None else self.shown.error
        labels = 2 / (sum(self.present) * max(1, len(self.present) - 1))
        noise = math.sqrt(LABELINGS_ADD * (self.estimate.null_error**2 + labels))
        largest = math.log(self.plain) + self.reach * max(error, noise)  # what plain D may be
        if largest <= math.log(BY_CHANCE * self.chance):
            return 0.0 if self.shown is None else _behind(self.shown.center + self.reach * error, self.chance)
        least = _behind(largest, self.chance)
        if least <= self.farthest:
            return least
        left = _standing_out(self.ratio.signal, self.estimate.null_error)
        spread = self.value + STANDS_OUT * self.spread_error
        return spread * self.ratio.signal / left if left > 0 else math.inf

    def lower(self) -> float:
        """The lower end: by N and G, by the least error, and by what samples show."""
        least = self.ratio.value * (1 - normal_quantile(two_sided(self.level)) * self.estimate.least_error)
        low = min(self.ratio.lower(self.reach), least)
        if self.shown is not None:
            low = min(low, _behind(self.shown.center - self.reach * self.shown.error, self.chance))
        return max(0.0, low)

    def hidden(self, high: float) -> str | None:
        """Why D cannot be told with this upper end, if it cannot."""
        if high > self.farthest:
            return NO_LIMIT
        wide = high > NOT_WIDE * self.value or median(self.present) < MOST_HAVE
        return SHORTEST if self.estimate.elongation > ELONGATED and wide else None


@dataclass(frozen=True, slots=True)
class _Shown:
    """What samples of this number would show as plain D, h = −ln(1/D + 1/chance), less its bias, and its standard error."""

    center: float
    error: float


def _shown(estimate: PopulationEstimate, chance: float) -> _Shown | None:
    """None where an estimate is not positive."""
    assert estimate.value is not None
    if min(estimate.value, *estimate.left_out) <= 0:
        return None
    left_out = -np.log(1 / np.asarray(estimate.left_out, dtype=np.float64) + 1 / chance)
    error = standard_error(left_out, "jackknife") / math.sqrt(1 + estimate.excess)
    whole = -math.log(1 / estimate.value + 1 / chance)
    bias = (len(left_out) - 1) * (float(left_out.mean()) - whole)
    return _Shown(whole - bias / (1 + (error / HALF_BELIEVED) ** 2 + (bias / TOO_MUCH) ** 2), error)


@dataclass(frozen=True, slots=True)
class _Ratio:
    """D = N/G with the jackknife's variances of both and their covariance."""

    spread: float
    signal: float
    spread_variance: float
    signal_variance: float
    covariance: float

    @classmethod
    def of(cls, estimate: PopulationEstimate, factor: float) -> _Ratio:
        """`factor` takes a bias off every D."""
        assert estimate.value is not None
        signals = np.asarray(estimate.signals_left_out, dtype=np.float64)
        spreads = factor * np.asarray(estimate.left_out, dtype=np.float64) * signals
        m = len(signals)
        signals, spreads = signals - signals.mean(), spreads - spreads.mean()
        share = (m - 1) / m / (1 + estimate.excess)
        products = (float(each) * share for each in (spreads @ spreads, signals @ signals, spreads @ signals))
        return cls(factor * estimate.value * estimate.signal, estimate.signal, *products)

    @property
    def value(self) -> float:
        return self.spread / self.signal

    def upper(self, start: float, reach: float) -> float:
        """The least D above `start` that ln(1 + G) − ln(1 + N/D) excludes; infinite beyond FARTHEST times that."""

        def excluded(d: float) -> bool:
            if d + self.spread <= 0:
                return False
            by_signal, by_spread = 1 / (1 + self.signal), 1 / (d + self.spread)
            variance = (
                by_signal**2 * self.signal_variance
                - 2 * by_signal * by_spread * self.covariance
                + by_spread**2 * self.spread_variance
            )
            apart = math.log1p(self.signal) - math.log1p(self.spread / d)
            return apart > reach * math.sqrt(max(variance, 0.0))

        if not excluded(FARTHEST * start):
            return math.inf
        return math.exp(_turn(lambda t: excluded(math.exp(t)), math.log(start), math.log(FARTHEST * start)))

    def lower(self, reach: float) -> float:
        """The largest D below N/G that N − D G excludes; 0 where there is none."""

        def excluded(d: float) -> bool:
            variance = self.spread_variance - 2 * d * self.covariance + d * d * self.signal_variance
            return self.spread - d * self.signal > reach * math.sqrt(max(variance, 0.0))

        return -_turn(lambda d: excluded(-d), -self.value, 0.0) if self.value > 0 and excluded(0.0) else 0.0


def _turn(true: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at the upper end of a range begins to."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if true(middle) else (middle, high)
    return high


def _standing_out(signal: float, null_error: float) -> float:
    """G less 2.2 of the deviations that ln(1 + G) would have by noise alone, and not less than 0."""

    def near(rest: float) -> bool:
        return math.log((1 + signal) / (1 + rest)) <= STANDS_OUT * null_error / (1 + rest)

    return 0.0 if near(0.0) else _turn(near, 0.0, signal)


def _folds(value: float, estimate: PopulationEstimate) -> tuple[float, ...]:
    """The value without each fold, about itself; of estimates that are not positive in first order."""
    left_out = np.asarray(estimate.left_out, dtype=np.float64)
    logs = np.log(left_out) if left_out.min() > 0 else left_out / value
    logs = (logs - logs.mean()) / math.sqrt(1 + estimate.excess)
    return tuple(float(point) for point in value * np.exp(logs))


def _behind(shown: float, chance: float) -> float:
    """D of the population where samples show exp(shown) as plain D: infinite where that is the chance level or more."""
    try:
        rest = math.exp(-shown) - 1 / chance
    except OverflowError:
        return 0.0
    return 1 / rest if rest > 0 else math.inf


def _needed(plain: float, chance: float, present: Sequence[int]) -> int:
    """Samples per class at which D would be no larger than its chance level, which grows with their number.

    D itself is taken from 1/D = 1/plain − 1/chance, crude but never negative below the chance level.
    """
    each = sum(present) / len(present)
    share = min(plain / chance, 0.95)
    return _two_digits(max(2.0 * (plain > NEAR_CHANCE * chance), ROOM * share / (1 - share)) * each)


def _more(needed: int, present: Sequence[int]) -> int:
    """What is needed, and twice as many samples as there are at least."""
    return max(needed, 2 * math.ceil(sum(present) / len(present)))


def _clear(signal: float, needed: int, present: Sequence[int]) -> int:
    """The same, and as many as make G, which grows with their number, large enough."""
    more = _more(needed, present)
    return max(more, _two_digits(CLEAR / signal * sum(present) / len(present))) if signal > 0 else more


def _two_digits(number: float) -> int:
    """Rounded up to two digits: "about"."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(number, 1))) - 1)
    return math.ceil(number / unit) * unit


def corrected_law(records: Sequence[Corrected | None], *, level: float = 0.95) -> LawFit | None:
    """The law of D of the population, with its intervals, from the first site that has a value to the last.

    None where nothing was asked; without a curve where fewer than two sites have a value, or one between others has none.
    """
    if not any(record is not None for record in records):
        return None
    known = [record is not None and record.value is not None for record in records]
    begin = known.index(True) if any(known) else len(known)
    tail = [record for record in records[begin:] if record is not None and record.value is not None]
    if len(tail) < 2 or not all(known[begin:]):
        text = f"No law: D of the population can be told at {sum(known)} of {len(known)} sites."
        return LawFit(curve=(), notes=(Note("no-curve", text),))
    law = fit_law([record.value for record in tail if record.value is not None])
    law = law_intervals(np.array([record.folds for record in tail]).T, law, kind="jackknife", level=level)
    if begin:
        text = f"D of the population cannot be told at the first {begin} of {len(known)} sites: the law is of those after them."
        law = replace(law, notes=(*law.notes, Note("late-curve", text)))
    return law
