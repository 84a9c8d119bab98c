"""The rules that judge claims: which bounds each asks for, in numbers and in words, and which claims it can judge at all."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import Literal

from equisep.errors import InputError
from equisep.figures.figure import Claim, Figure
from equisep.figures.quantities import Query, known_quantities
from equisep.results.records import FUZZY_R, LAW_R, NO_LAW_R

_ROUNDING = 1e-12  # a mean of equal numbers differs from them by a rounding
ALIKE = 1.25  # "alike", "near" and "least near": within this factor, either way; ours, as bioequivalence has it
NO_LESS = 0.8  # "no less": at least this share
PLACES = 1.0  # "best at zero": so many places apart at most
FEW = 3  # with fewer seeds than this a claim is supported at best
LEVEL, EQUIVALENCE_LEVEL = 0.95, 0.9  # of intervals; two one-sided tests at 5 % are an interval at 90 %
LAWS = ("law", "fuzzy law", "no law")
COMPARISONS = ("below", "above", "differ", "alike", "no less")
TRENDS = ("rising", "falling")
GROUPED = ("less spread", "least rising", "least near")  # one glob a group
PAIRED_QUANTITIES = {"best at zero": 2, "correlated": 3}  # two quantities of so many series or more
EQUIVALENCE = ("alike", "near", "least near")
AGAINST_VALUE = ("at least", "at most", "shown", "near", "least near")
_CLOSED = (*AGAINST_VALUE, *LAWS, "alike", "no less", "best at zero")  # bounds that may be met; zero has to be excluded
_COUNTED = ("site", "from", "class", "split")
_EPOCH = re.compile(r"\d+(/[1-9]\d*)?")  # 100, or 100/600 of all
_TYPO = 0.75  # how alike two names are of which one is the other misspelled
_LEAST_GROUPS = {"less spread": 2, "least rising": 2}
Side = Literal["in", "out", "reaches"]


def series_of(figure: Figure, claim: Claim) -> tuple[str, ...]:
    """The series of a claim, each once, in the order of its globs."""
    return tuple(dict.fromkeys(series.name for pattern in claim.of for series in figure.named(pattern)))


def quantities_of(claim: Claim) -> tuple[str, ...]:
    """The quantities of a claim, written with `;` between them."""
    return tuple(claim.quantity.split(";"))


def check_claims(figure: Figure) -> None:
    """Refuse claims that their own rule cannot judge."""
    for claim in figure.claims:
        where = f"The claim “{claim.text}” of `{figure.id}`"
        if not claim.of:
            raise InputError(f"{where} names no series in `of`. Name one or more.")
        asked = [_checked(text, where) for text in quantities_of(claim)]
        if claim.rule in LAWS and any(each.name != "r" for each in asked):
            raise InputError(f"{where} has the rule `{claim.rule}` of `{claim.quantity}`. That rule is of `r` alone.")
        if claim.rule in AGAINST_VALUE and claim.value is None:
            raise InputError(f"{where} has the rule `{claim.rule}` and no `value`. Give the number it is held against.")
        if claim.rule == "near" and not claim.value:
            raise InputError(f"{where} is to be near 0, of which no number is a share. Use the rule `at most`.")
        if claim.rule == "as printed":
            _check_printed(figure, claim, where)
        _check_operands(claim, where, series=len(series_of(figure, claim)), asked=len(asked))


def _check_printed(figure: Figure, claim: Claim, where: str) -> None:
    """Refuse a claim on printed numbers that the figure does not have."""
    known = {(row.series, row.quantity) for row in figure.printed}
    for name in series_of(figure, claim):
        for text in quantities_of(claim):
            if (name, text) not in known:
                raise InputError(f"{where} is on `{text}` of `{name}` as printed. Add it to `printed`, with its place.")


def _check_operands(claim: Claim, where: str, *, series: int, asked: int) -> None:
    """Refuse a comparison of too few things, or a trend of several series in several quantities."""
    compares = claim.rule in (*COMPARISONS, *TRENDS)
    if claim.rule in PAIRED_QUANTITIES and asked != 2:
        raise InputError(f"{where} has the rule `{claim.rule}` of `{claim.quantity}`. Write two quantities, `A;B`.")
    if asked > 1 and series > 1 and claim.rule in (*GROUPED, *TRENDS):
        raise InputError(f"{where} compares several series in several quantities. Name one series, or one quantity.")
    operands = len(claim.of) if claim.rule in GROUPED else series * asked
    least = _LEAST_GROUPS.get(claim.rule, 2 if compares else 1)
    if operands < least or (claim.rule in PAIRED_QUANTITIES and series < PAIRED_QUANTITIES[claim.rule]):
        raise InputError(
            f"{where} has the rule `{claim.rule}`, which compares, and names too few things in `of`. Name "
            f"{PAIRED_QUANTITIES.get(claim.rule, 2)} or more."
        )


def _checked(text: str, where: str) -> Query:
    """The quantity, refused where its name is misspelled, or a place or an epoch in it is no number."""
    asked = Query.of(text)
    known = known_quantities()
    near = get_close_matches(asked.name, known, n=1, cutoff=_TYPO) if asked.name not in known else []
    if near:  # another name may be a number of the outcome, but one that is nearly a known one is a slip
        raise InputError(f"{where} asks for `{asked.name}`. Did you mean `{near[0]}`?")
    for key, value in asked.ways.items():
        if (key in _COUNTED and not re.fullmatch(r"-?\d+", value)) or (key == "epoch" and not _EPOCH.fullmatch(value)):
            raise InputError(f"{where} asks for `{text}`, where `{key}` should be a whole number; found `{value}`.")
    return asked


def bounds(claim: Claim) -> tuple[float, float]:
    """Between which numbers the rule wants its quantity, difference, ratio, slope or place."""
    value = claim.value or 0.0
    match claim.rule:
        case "alike" | "near":
            return 1 / ALIKE, ALIKE
        case "least near":
            return -math.inf, ALIKE
        case "no less":
            return NO_LESS, math.inf
        case "best at zero":
            return -math.inf, PLACES
        case "at least" | "shown":
            return value, math.inf
        case "at most":
            return -math.inf, value
        case "falling":
            return -math.inf, 0.0
        case "law":
            return -math.inf, LAW_R
        case "fuzzy law":
            return -math.inf, FUZZY_R
        case "no law":
            return NO_LAW_R, math.inf
        case _:
            return 0.0, math.inf


def side(claim: Claim, low: float, high: float) -> Side:
    """Whether an interval (or a number, as low = high) lies within the bounds of a rule, beyond them, or reaches them.

    The paper calls r = −0.996 a law and −0.971 none: what is between the two is neither, for `law` and for `no law` alike. A
    difference is never shown to be none, and a test that does not reject shows nothing.
    """
    floor, ceiling = bounds(claim)
    if claim.rule in _CLOSED:
        within = low >= floor - _ROUNDING * abs(floor) and high <= ceiling + _ROUNDING * abs(ceiling)
    else:
        within = low > floor and high < ceiling
    match claim.rule:
        case "differ":
            return "in" if low > 0 or high < 0 else "reaches"
        case "shown":
            return "in" if within else "reaches"
        case "law":
            beyond = low > NO_LAW_R
        case "no law":
            within, beyond = low > floor, high <= LAW_R
        case _:
            beyond = high < floor or low > ceiling
    return "in" if within else "out" if beyond else "reaches"


def margin(claim: Claim, mean: float) -> float:
    """How far a mean lies inside the bounds: the part with the least is the weakest."""
    floor, ceiling = bounds(claim)
    return abs(mean) if claim.rule == "differ" else min(mean - floor, ceiling - mean)


def rule_words(claim: Claim) -> str:
    """What the rule asks for."""
    low, high = bounds(claim)
    match claim.rule:
        case "law":
            return f"a law has r ≤ {high:g} and ρ < 1, none r > {NO_LAW_R:g}"
        case "fuzzy law":
            return f"the rule asks for r ≤ {high:g} and ρ < 1"
        case "no law":
            return f"the rule asks for r > {low:g} or ρ ≥ 1, and r ≤ {LAW_R:g} is a law"
        case "alike" | "near":
            return f"the rule asks for {low:.4g} to {high:.4g}"
        case "as printed":
            return (
                f"the rule asks that one more training at its best rate may give the printed number{_too_wide(claim)}"
            )
        case "shown":
            return f"the rule asks for at least {low:.4g}, and less shows nothing"
        case "at least" | "no less":
            return f"the rule asks for at least {low:.4g}"
        case "at most" | "least near":
            return f"the rule asks for at most {high:.4g}"
        case "best at zero":
            return f"the rule asks for at most {high:.4g} in every seed"
        case "falling":
            return "the rule asks for less than 0"
        case "differ":
            return f"the rule asks for a difference from 0 over {FEW} seeds or more"
        case _:
            return "the rule asks for more than 0"


def _too_wide(claim: Claim) -> str:
    """Of what a prediction must not reach, or it decides nothing."""
    correlations = [Query.of(text).name == "r" for text in quantities_of(claim)]
    limits = (
        *((f"r above {NO_LAW_R:g}",) if any(correlations) else ()),
        *((f"a number beyond a factor of {ALIKE:g} of the mean",) if not all(correlations) else ()),
    )
    return f", and decides nothing where it may as well give {' or '.join(limits)}"
