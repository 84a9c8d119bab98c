"""Claims → verdicts, by rule and never by eye: what the paper says, what was found, over how many seeds, in which reading."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from equisep.figures.cell import Solve
from equisep.figures.claim_parts import Comparison, comparisons_of, in_reading
from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.figure import Claim, Figure, Printed
from equisep.figures.quantities import Query, span_of, was_read
from equisep.figures.rules import (
    ALIKE,
    EQUIVALENCE,
    EQUIVALENCE_LEVEL,
    FEW,
    LAWS,
    LEVEL,
    Side,
    margin,
    quantities_of,
    rule_words,
    series_of,
    side,
)
from equisep.law import seed_interval, seed_mean
from equisep.results import READINGS, Interval, law_verdict
from equisep.results.records import LEAST_SITES, NO_LAW_R

Word = Literal["held", "contradicted", "undecided", "supported", "against", "not testable", "not run"]
WORDS: tuple[Word, ...] = ("held", "contradicted", "undecided", "supported", "against", "not testable", "not run")
_WEAKEST_FIRST: tuple[Word, ...] = (
    "not run", "contradicted", "against", "not testable", "undecided", "supported", "held",
)  # fmt: skip
_WORD: Mapping[tuple[Side, bool], Word] = {  # by side of the rule, and whether seeds are few
    ("in", False): "held",
    ("in", True): "supported",
    ("out", False): "contradicted",
    ("out", True): "against",
    ("reaches", False): "undecided",
    ("reaches", True): "undecided",
}
OTHER_RATES = "whole trainings at the other rates"
# a rate that was not tried to the end may be the best one; but a law that is there at one rate is there
BY_OTHER_RATES: dict[Word, Word] = {"held": "supported", "contradicted": "against"}
SHOWN_AT_ONE_RATE = {("held", "law"), ("held", "fuzzy law")}
_LAW_NUMBERS = ("r", "rho", "half_life")


@dataclass(frozen=True, slots=True)
class Part:
    """One series, pair or group of a claim: its mean over seeds, and how this part alone fares.

    rate        the rate chosen, of a single series. `rates`: the one that each reading by itself would choose.
    found       for the rules of a law what this series follows: `law`, `between` or `no law`.
    beside      what stands beside a number of the law, as any monotone curve has a large |r|: `rho`, `max_residual`,
                `bend` (of two slopes, over its 5 % limit), `imbalance`, `r_eval` (read in eval reading) and `r_optimistic` (each
                seed at its own best rate); means over seeds.
    lost        seeds that were run but have no such number, and of these `diverged` whose training diverged.
    unfit       seeds left out because their network does not fit; `accuracy`: the mean training accuracy over all seeds.
    printed     the paper's number of this very series.
    lacks       what of the paper's own is wanting, in words, where its network or data are others.
    averaged    how the mean is made where that is not plain: `geometric`.
    """

    name: str
    mean: float | None
    n: int
    interval: Interval | None
    rate: float | None
    verdict: Word
    found: str = ""
    beside: Mapping[str, float | None] = field(default_factory=dict)
    lost: int = 0
    diverged: int = 0
    unfit: int = 0
    accuracy: float | None = None
    printed: float | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    lacks: str = ""
    averaged: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim and how it fared. `ours`, `n` and `interval` are those of the weakest part; `printed` is the paper's number.

    reading     in which its numbers were read; nothing where the claim is judged once.
    """

    claim: Claim
    verdict: Word
    ours: float | None
    printed: float | None
    n: int
    interval: Interval | None
    parts: tuple[Part, ...]
    reason: str
    reading: str = ""

    @property
    def held(self) -> bool | None:
        """True or False where the claim was decided; None otherwise."""
        return {"held": True, "contradicted": False}.get(self.verdict)


def judge_claim(evidence: Evidence, claim: Claim, reading: str = "") -> Verdict:
    """How one claim fares on evidence, with its numbers of features in a reading where one is named.

    held, contradicted    3 seeds or more, and the whole interval over seeds lies within the rule's bounds, or beyond them.
    undecided             the interval reaches the bounds; of a law also: r lies between what the paper calls a law and none.
    supported, against    the same of a mean of fewer than 3 seeds; or where some seeds have no number, since those left are a
                          choice; or where networks train on all of a data set that stands in for the paper's, or
                          stand in for the paper's themselves, or where the figure says that a claim of the paper
                          lacks either (`lacks`).
    not testable          there is no number, or no network fits its training data where the figure asks for that.
    not run               cells are missing, or were not read so; at smoke scale everything.

    law · no law · fuzzy law      r over seeds: ≤ −0.996 · > −0.971, or mean ρ ≥ 1 · ≤ −0.95 and mean ρ < 1.
    below, above, differ          the paired 95 % interval (Student t) of the differences excludes zero; with fewer than 3 seeds
                                  `differ` is undecided, as any two numbers differ.
    alike, near                   two one-sided tests at 5 %: the 90 % interval of the mean log ratio within ± ln 1.25.
    no less                       the 95 % interval of the ratio to the first is 0.8 at least.
    rising, falling               … of the least-squares slopes over places excludes zero; where every glob of the claim
                                  names several series, each glob is a line of its own.
    less spread                   … of the mean range within the second half of the groups minus the first excludes zero.
    least rising                  … of the step of the place where the mean curve is least, seeds resampled, excludes zero.
    least near                    the value at that place over the least one, 90 % interval of its mean logarithm, below 1.25.
    correlated                    … of the rank correlation of two quantities over the series excludes zero.
    best at zero                  in every seed, where the first quantity is greatest, or beside, the second changes its sign.
    at least, at most             the 95 % interval of the number (of D, CDNV, ρ and half-life: of its logarithm) lies beyond the
                                  value.
    shown                         the same as `at least`, of a test over its limit: what is not above it is undecided.
    as printed                    the printed number, to its rounding, lies in the 95 % prediction interval of one more draw at
                                  its own best rate; where that reaches beyond a factor of 1.25 (of r: to where there is no
                                  law), it decides nothing.

    Every part has to meet the rule: the weakest part is the claim's verdict. Claims that are `exact` need no seeds.
    """
    comparisons = tuple(comparisons_of(evidence, claim, reading))
    parts = tuple(_part(evidence.figure, claim, comparison) for comparison in comparisons)
    why = _not_run(evidence, claim, reading)
    if why:
        parts = tuple(replace(part, verdict="not run") for part in parts)

    def weakness(index: int) -> tuple[int, bool, float]:
        part = parts[index]
        return _WEAKEST_FIRST.index(part.verdict), bool(why) and part.mean is None, _margin(claim, part)

    worst = min(range(len(parts)), key=weakness)
    part = parts[worst]
    printed = part.printed if part.printed is not None else claim.value if claim.rule == "near" else None
    reason = why or _reason(evidence.figure, claim, comparisons[worst].called, part, parts)
    return Verdict(claim, part.verdict, part.mean, printed, part.n, part.interval, parts, reason, reading)


def _printed_row(figure: Figure, comparison: Comparison) -> Printed | None:
    """What the paper prints of this very series and quantity."""
    if comparison.printed is not None or len(comparison.of) != 1:
        return comparison.printed
    wanted = (comparison.of[0].series.series.name, comparison.of[0].asked)
    return next((row for row in figure.printed if (row.series, row.quantity) == wanted), None)


def _not_run(evidence: Evidence, claim: Claim, reading: str) -> str:
    """Why nothing can be judged, in one sentence; or nothing."""
    run = f"`equisep figures run {evidence.figure.id}`"
    for name in series_of(evidence.figure, claim):
        found = evidence.series[name]
        outcomes = [entry.outcome for entry in found.chosen.values()]
        if not outcomes:
            return f"`{name}` has not been run; {run} does it."
        for text in quantities_of(claim):
            wanted = in_reading(text, reading) if reading else text
            lacking = sum(not was_read(outcome, wanted) and outcome.diverged is None for outcome in outcomes)
            if lacking:
                whole = "" if lacking == len(outcomes) else f" in {lacking} of {len(outcomes)} seeds at the chosen rate"
                return f"`{text}` was not read of `{name}`{f' in the reading `{reading}`' if wanted != text else ''}{whole}."
        if evidence.scale == "paper" and (missing := len(found.missing)):
            return f"{missing} {'cell' if missing == 1 else 'cells'} of `{name}` not run yet; {run} goes on."
    if evidence.scale != "paper":
        return f"At {evidence.scale} scale the numbers only show that everything runs: not for publication."
    return ""


def _part(figure: Figure, claim: Claim, comparison: Comparison) -> Part:
    single = comparison.of[0] if len(comparison.of) == 1 else None
    series = [operand.series for operand in comparison.of]
    run = set.intersection(*(set(found.chosen) for found in series))
    able = run - comparison.unfit
    diverged = [seed for seed in able if any(found.chosen[seed].outcome.diverged is not None for found in series)]
    lost = max(0, len(able) - comparison.n)
    printed = _printed_row(figure, comparison)
    mean = comparison.mean
    if mean is None and comparison.values:
        mean = seed_mean(comparison.values, comparison.scale)
    part = Part(
        lacks=next((words for found in series if (words := _lacks(figure, claim, found))), ""),
        name=comparison.name,
        mean=mean,
        n=comparison.n,
        interval=_interval(claim, comparison),
        rate=single.series.rate if single and not single.best else None,
        verdict="not testable",
        beside=_beside(single.series, single.quantity) if single else {},
        lost=lost,
        diverged=min(lost, len(diverged)),
        unfit=len(run & comparison.unfit),
        accuracy=_accuracy(series) if figure.fit_of(claim) is not None else None,
        printed=None if printed is None else printed.value,
        rates=_rates(single.series) if single else {},
        averaged="geometric" if comparison.scale == "log" and comparison.n > 1 else "",
    )
    if claim.rule in LAWS and part.mean is not None:
        part = replace(part, found=law_verdict(part.mean, part.beside["rho"], sites=LEAST_SITES))
    word = _word(claim, part, comparison)
    untried = any(found.untried(figure) for found in series)
    if untried and word in BY_OTHER_RATES and (word, claim.rule) not in SHOWN_AT_ONE_RATE:
        return replace(part, verdict=BY_OTHER_RATES[word], lacks=OTHER_RATES)
    return replace(part, verdict=word)


def _interval(claim: Claim, comparison: Comparison) -> Interval | None:
    if comparison.interval is not None or len(comparison.values) < 2:
        return comparison.interval
    level = EQUIVALENCE_LEVEL if claim.rule in EQUIVALENCE else LEVEL
    within = (-1.0, 1.0) if claim.rule == "correlated" else (-math.inf, math.inf)
    if len(comparison.of) == 1 and claim.rule != "near":
        within = span_of(comparison.of[0].asked)
    more = claim.rule == "as printed"
    return seed_interval(comparison.values, level, within=within, scale=comparison.scale, one_more=more)


def _accuracy(series: Sequence[SeriesEvidence]) -> float | None:
    """The mean training accuracy of the networks of a part, of the series in which it is least."""
    means = [float(np.mean(list(own.values()))) for found in series if (own := found.values("accuracy"))]
    return min(means, default=None)


def _rates(found: SeriesEvidence) -> dict[str, float]:
    """The rate that each reading by itself would choose, where several were tried."""
    if len({entry.cell.rate for entry in found.entries if hasattr(entry.cell, "rate")}) < 2:
        return {}
    own = {reading: found.rate_in(reading) for reading in READINGS}
    return {reading: rate for reading, rate in own.items() if rate is not None}


def _beside(found: SeriesEvidence, text: str) -> dict[str, float | None]:
    asked = Query.of(text)
    if asked.name not in _LAW_NUMBERS:
        return {}
    own = {name: found.values(asked.renamed(name)) for name in ("rho", "max_residual", "bend", "imbalance")}
    own["r_eval"] = found.values(asked.renamed("r", reading="eval"))
    own["r_optimistic"] = found.optimistic(asked.renamed("r"))
    return {name: float(np.mean(list(values.values()))) if values else None for name, values in own.items()}


def _word(claim: Claim, part: Part, comparison: Comparison) -> Word:
    if part.mean is None:
        return "not testable"
    few = part.n < FEW and not claim.exact
    low, high = part.mean, part.mean
    if claim.rule == "best at zero":
        low, high = min(comparison.values), max(comparison.values)
    elif part.interval is not None and not few:
        low, high = part.interval.low, part.interval.high
    where = _side(claim, part, comparison.printed, low, high)
    if claim.exact and where == "reaches":
        where = "out"
    if few and claim.rule == "differ":
        where = "reaches"
    return _WORD[where, few or part.lost > 0 or bool(part.lacks)]


def _lacks(figure: Figure, claim: Claim, found: SeriesEvidence) -> str:
    """What of the paper's own a series lacks to decide its claims; claims of ours are of this very network and data."""
    if found.of_other_network:
        return "the paper's network"
    if found.on_other_data:
        return "the paper's data"
    return "" if claim.ours else claim.lacks or found.series.lacks or figure.lacks


def _side(claim: Claim, part: Part, printed: Printed | None, low: float, high: float) -> Side:
    if claim.rule == "as printed":
        assert printed is not None
        return _predicted(printed, part)
    if claim.rule in LAWS and (part.beside["rho"] or 0.0) >= 1:  # D does not fall: no law, however straight its line
        return "in" if claim.rule == "no law" else "out"
    return side(claim, low, high)


def _predicted(printed: Printed, part: Part) -> Side:
    """Whether one more draw may give the printed number; a prediction that excludes little decides nothing."""
    assert part.mean is not None
    if part.interval is None:
        return "reaches"
    low, high = part.interval.low, part.interval.high
    if printed.value + printed.rounding < low or printed.value - printed.rounding > high:
        return "out"
    if Query.of(printed.quantity).name == "r":
        return "reaches" if high > NO_LAW_R else "in"
    return "reaches" if part.mean <= 0 or high > ALIKE * part.mean or low < part.mean / ALIKE else "in"


def _margin(claim: Claim, part: Part) -> float:
    """How far inside the rule's bounds a part is; where ρ ≥ 1 there is no law, however r is."""
    if part.mean is None or (claim.rule == "no law" and (part.beside["rho"] or 0.0) >= 1):
        return math.inf if part.found == claim.rule else -math.inf
    if claim.rule == "as printed":
        assert part.printed is not None
        return -abs(part.mean - part.printed)
    return margin(claim, part.mean)


def _reason(figure: Figure, claim: Claim, called: str, worst: Part, parts: Sequence[Part]) -> str:
    """One sentence: what was found, with numbers, against what the rule asks."""
    found = _found_words(claim, called, worst)
    if worst.mean is None and worst.unfit:
        fit, least = (f"{100 * (share or 0.0):.4g} %" for share in (worst.accuracy, figure.fit_of(claim)))
        found = f"{worst.name}: no network fits its training data (accuracy {fit}, of at least {least})"
        return f"{found}{_others(worst, parts)}."
    few = f", and {_wanting(figure, worst)} to decide" if worst.verdict in ("supported", "against") else ""
    return f"{found}; {rule_words(claim)}{few}{_others(worst, parts)}."


def _wanting(figure: Figure, part: Part) -> str:
    """What a claim that is supported, or against, lacks."""
    if isinstance(figure.base, Solve):
        return "a proof"
    if part.n < FEW:
        return f"{FEW} seeds or more"
    return part.lacks or "a number in every seed"


def _others(worst: Part, parts: Sequence[Part]) -> str:
    """How the other parts fare."""
    if len(parts) == 1:
        return ""
    alike = sum(part.verdict == worst.verdict for part in parts)
    if alike == len(parts):
        least = ", this one the least clearly" if worst.verdict in ("held", "supported") else ""
        return f"; {'both' if alike == 2 else f'all {alike}'} parts are {worst.verdict}{least}"
    return f"; {alike} of {len(parts)} parts {'is' if alike == 1 else 'are'} {worst.verdict}"


def _found_words(claim: Claim, called: str, part: Part) -> str:
    rho = part.beside.get("rho") if claim.rule in LAWS else None
    beside = "" if rho is None else f", mean ρ {rho:.4g}"
    diverged = f", {part.diverged} of which diverged" if part.diverged else ""
    head = f"{part.name}: " if part.name != called else ""
    if part.mean is None:
        run = part.n + part.lost
        return f"{head}{called} does not exist in {'the one seed' if run == 1 else f'any of {run} seeds'}{diverged}{beside}"
    lost = f" ({part.lost} more without it{diverged})" if part.lost else ""
    lost += f" (and {part.unfit} that did not fit the training data)" if part.unfit else ""
    digits = f"{part.mean:.4f}" if claim.rule in LAWS else f"{part.mean:.4g}"
    over = f" {part.interval}" if part.interval is not None else ""
    found = {"law": ", which is a law", "no law": ", which is no law", "between": ", between a law and none"}
    found = {} if claim.rule == "fuzzy law" else found
    seeds = "1 seed" if part.n == 1 else f"{part.n} seeds"
    against = f", printed {part.printed:g}" if claim.rule == "as printed" and part.printed is not None else ""
    if claim.exact and part.n == 1:  # solved, and no seed in it
        return f"{head}{called} = {digits}{lost}{beside}{found.get(part.found, '')}"
    mean = f"{part.averaged} mean".strip()
    return f"{head}{mean} {called} = {digits}{over} over {seeds}{lost}{beside}{against}{found.get(part.found, '')}"
