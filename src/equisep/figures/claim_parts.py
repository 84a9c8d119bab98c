"""What a claim is judged by: for each operand, pair or group one number per seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.figure import Claim
from equisep.figures.quantities import quantity_words
from equisep.figures.rules import COMPARISONS, GROUPED, TRENDS, quantities_of, series_of

_Number = Callable[[Sequence[float], Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class Operand:
    """One series and one quantity of it, with its x in a sweep."""

    name: str
    series: SeriesEvidence
    quantity: str
    x: float

    @property
    def values(self) -> dict[int, float]:
        """By seed, at the chosen rate."""
        return self.series.values(self.quantity)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One part of a claim: its name, what the number is called, one per seed, and the operands it comes from."""

    name: str
    called: str
    values: tuple[float, ...]
    of: tuple[Operand, ...]


def comparisons_of(evidence: Evidence, claim: Claim) -> Iterator[Comparison]:
    """The parts that the claim's rule looks at; only seeds that have every number are paired."""
    operands = _operands(evidence, claim, claim.of)
    if claim.rule in COMPARISONS:
        yield from _compared(claim, operands)
    elif claim.rule in TRENDS or claim.rule in GROUPED:
        yield from _of_groups(evidence, claim, operands)
    elif claim.rule == "same best":
        yield _best(evidence, claim)
    else:
        for operand in operands:
            values = tuple(operand.values.values())
            yield Comparison(operand.name, quantity_words(operand.quantity), values, (operand,))


def _of_groups(evidence: Evidence, claim: Claim, operands: tuple[Operand, ...]) -> Iterator[Comparison]:
    """Rules that look at a glob as a whole: slopes, places of the least value, ranges."""
    groups = [_operands(evidence, claim, (pattern,)) for pattern in claim.of]
    called = quantity_words(claim.quantity)
    if claim.rule == "less spread":
        yield _spread(claim, groups)
    elif claim.rule == "least rising":
        for (first, low), (second, high) in pairwise(zip(claim.of, groups, strict=True)):
            before, after = (_by_seed(group, _place_of_least) for group in (low, high))
            steps = tuple(after[seed] - before[seed] for seed in after if seed in before)
            yield Comparison(f"{second} − {first}", f"step in the place of the least {called}", steps, (*low, *high))
    elif claim.rule == "least near" or (len(groups) > 1 and all(len(group) > 1 for group in groups)):
        words, number = ("place of the least", _place_of_least) if claim.rule == "least near" else ("slope of", _slope)
        for pattern, group in zip(claim.of, groups, strict=True):
            yield Comparison(pattern, f"{words} {called}", _over(group, number), group)
    else:
        yield Comparison(", ".join(claim.of), f"slope of {called}", _over(operands, _slope), operands)


def _operands(evidence: Evidence, claim: Claim, patterns: Sequence[str]) -> tuple[Operand, ...]:
    """Series × quantities; the x of a series is its own where all have one, else its place.

    Trends are judged over places, so that one far x (R = 500, or infinite) does not decide alone.
    """
    names = [name for pattern in patterns for name in (series.name for series in evidence.figure.named(pattern))]
    found = [evidence.series[name] for name in dict.fromkeys(names)]
    asked = quantities_of(claim)
    own = all(each.series.x is not None for each in found) and len(asked) == 1 and claim.rule not in TRENDS
    made = [(each, text) for each in found for text in asked]
    return tuple(
        Operand(_name(each, text, found, asked), each, text, float(each.series.x or 0.0) if own else float(index))
        for index, (each, text) in enumerate(made)
    )


def _name(each: SeriesEvidence, text: str, found: Sequence[SeriesEvidence], asked: Sequence[str]) -> str:
    if len(asked) == 1:
        return each.series.name
    return quantity_words(text) if len(found) == 1 else f"{each.series.name} {quantity_words(text)}"


def _compared(claim: Claim, operands: Sequence[Operand]) -> Iterator[Comparison]:
    to_first = claim.rule in ("alike", "no less")
    pairs = [(operands[0], other) for other in operands[1:]] if to_first else list(pairwise(operands))
    for first, second in pairs:
        one, two = first.values, second.values
        both = [(one[seed], two[seed]) for seed in one if seed in two]
        a, b, of = first.name, second.name, (first, second)
        called = quantity_words(first.quantity) if first.quantity == second.quantity else ""
        if to_first:
            yield Comparison(
                f"{b} / {a}", f"ratio of {called}".removesuffix(" of "), tuple(y / x for x, y in both if x != 0), of
            )
        elif claim.rule == "above":
            yield Comparison(
                f"{a} − {b}", f"difference in {called}".removesuffix(" in "), tuple(x - y for x, y in both), of
            )
        else:
            yield Comparison(
                f"{b} − {a}", f"difference in {called}".removesuffix(" in "), tuple(y - x for x, y in both), of
            )


def _spread(claim: Claim, groups: Sequence[tuple[Operand, ...]]) -> Comparison:
    """By seed: the mean range within the groups of the second half minus that within those of the first."""
    ranges = [_by_seed(group, lambda _, y: max(y) - min(y)) for group in groups]
    half = len(groups) // 2
    shared = [seed for seed in ranges[0] if all(seed in other for other in ranges)]
    values = tuple(
        float(np.mean([own[seed] for own in ranges[half:]]) - np.mean([own[seed] for own in ranges[:half]]))
        for seed in shared
    )
    name = f"within {', '.join(claim.of[half:])} − within {', '.join(claim.of[:half])}"
    return Comparison(
        name, f"range of {quantity_words(claim.quantity)}", values, tuple(each for group in groups for each in group)
    )


def _best(evidence: Evidence, claim: Claim) -> Comparison:
    """By seed: how many places lie between the series where the first quantity is greatest and where the second is least."""
    found = [evidence.series[name] for name in series_of(evidence.figure, claim)]
    rows = [
        tuple(Operand(each.series.name, each, text, float(index)) for index, each in enumerate(found))
        for text in quantities_of(claim)
    ]
    greatest, smallest = _by_seed(rows[0], _place_of_greatest), _by_seed(rows[1], _place_of_least)
    values = tuple(abs(greatest[seed] - smallest[seed]) for seed in greatest if seed in smallest)
    first, second = map(quantity_words, quantities_of(claim))
    called = f"places between the greatest {first} and the least {second}"
    return Comparison(", ".join(claim.of), called, values, (*rows[0], *rows[1]))


def _over(group: Sequence[Operand], number: _Number) -> tuple[float, ...]:
    return tuple(_by_seed(group, number).values())


def _by_seed(group: Sequence[Operand], number: _Number) -> Mapping[int, float]:
    """A number of the values over x, for each seed that has all of them."""
    values = [operand.values for operand in group]
    shared = [seed for seed in values[0] if all(seed in other for other in values)]
    return {seed: number([operand.x for operand in group], [other[seed] for other in values]) for seed in shared}


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Least squares; exactly 0 where all x, or all y, are one, and no rounding that would look like a trend."""
    if min(x) == max(x) or min(y) == max(y):
        return 0.0
    away = np.asarray(x) - np.mean(x)
    return float(away @ np.asarray(y) / (away @ away))


def _place_of_least(x: Sequence[float], y: Sequence[float]) -> float:
    return float(x[int(np.argmin(y))])


def _place_of_greatest(x: Sequence[float], y: Sequence[float]) -> float:
    return float(x[int(np.argmax(y))])
