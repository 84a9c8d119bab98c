"""Claims → verdicts, by rule and never by eye: what the paper says, what was found, over how many seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from equisep.figures.claim_parts import Comparison, comparisons_of
from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.figure import Claim, Figure
from equisep.figures.quantities import Query, span_of, was_read
from equisep.figures.rules import LAWS, check_claims, claimed_law, margin, meets, quantities_of, rule_words, series_of
from equisep.law import seed_interval
from equisep.results import Interval

Word = Literal["held", "not held", "indicated", "not run"]
WORDS: tuple[Word, ...] = ("held", "not held", "indicated", "not run")
LEVEL = 0.95
FEW = 3  # with fewer seeds than this a claim is indicated at best
_LAW_NUMBERS = ("r", "rho", "half_life")


@dataclass(frozen=True, slots=True)
class Part:
    """One series, pair or group of a claim: its mean over seeds, and whether this part alone meets the rule.

    rate        the rate chosen, of a single series. `found`: for the rules of a law what this series follows.
    beside      what stands beside a number of the law, as any monotone curve has a large |r|: `rho`, `max_residual`,
                `bend` (of two slopes, over its 5 % limit), `imbalance`, `r_eval` (read in eval reading) and `r_optimistic` (each
                seed at its own best rate); means over seeds.
    lost        seeds that were run but have no such number, and of these `diverged` whose training diverged.
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim and how it fared. `ours`, `n` and `interval` are those of the weakest part; `printed` is the paper's number."""

    claim: Claim
    verdict: Word
    ours: float | None
    printed: float | None
    n: int
    interval: Interval | None
    parts: tuple[Part, ...]
    reason: str

    @property
    def held(self) -> bool | None:
        """True or False where the claim was judged; None where it is only indicated or was not run."""
        return {"held": True, "not held": False}.get(self.verdict)


def judge(evidence: Evidence) -> tuple[Verdict, ...]:
    """One verdict for each claim of the figure, in their order.

    law · fuzzy law · no law      mean r over seeds ≤ −0.99 · ≤ −0.95 · otherwise, or mean ρ ≥ 1.
    below, above, differ          the paired 95 % interval over seeds (Student t) of the differences excludes zero.
    alike, no less                … of the ratio to the first lies within 0.8 and 1.2, or is 0.8 at least.
    rising, falling               … of the least-squares slopes over places excludes zero; where every glob of the claim
                                  names several series, each glob is a line of its own.
    less spread                   … of the mean range within the second half of the groups minus the first excludes zero.
    least rising, least near      … of the x of the least value: of its differences, group to group, excludes zero; lies
                                  within ±20 % of the value.
    same best                     in every seed, where the first quantity is greatest, or beside, the second is least.
    at least, at most, near       … of the number lies beyond the value; within ±20 % of it.

    Every part has to meet the rule. With fewer than 3 seeds the mean takes the interval's place, and the claim is
    indicated at best, unless it is `exact`. A number that does not exist though it was asked of a finished run, as
    after a divergence, holds no claim: where some seeds have none, there is no law, and any other claim is indicated at
    best, since those that are left are a choice. At smoke scale, and where cells are missing, nothing is judged.
    """
    check_claims(evidence.figure)
    return tuple(_verdict(evidence, claim) for claim in evidence.figure.claims)


def _verdict(evidence: Evidence, claim: Claim) -> Verdict:
    comparisons = tuple(comparisons_of(evidence, claim))
    parts = tuple(_part(claim, comparison) for comparison in comparisons)
    why = _not_run(evidence, claim)
    if why:
        parts = tuple(replace(part, verdict="not run") for part in parts)

    def weakness(index: int) -> tuple[bool, bool, float]:
        part = parts[index]
        return part.verdict != "not held", bool(why) and part.mean is None, _margin(claim, part)

    worst = min(range(len(parts)), key=weakness)
    part = parts[worst]
    printed = _printed(evidence.figure, claim, comparisons[worst])
    reason = why or _reason(claim, comparisons[worst].called, part, parts)
    return Verdict(claim, part.verdict, part.mean, printed, part.n, part.interval, parts, reason)


def _printed(figure: Figure, claim: Claim, comparison: Comparison) -> float | None:
    """What the paper prints of this very series and quantity, or what the claim is to be near; a bound is no such number."""
    if len(comparison.of) == 1:
        wanted = (comparison.of[0].series.series.name, comparison.of[0].quantity)
        for row in figure.printed:
            if (row.series, row.quantity) == wanted:
                return row.value
    return claim.value if claim.rule in ("near", "least near") else None


def _not_run(evidence: Evidence, claim: Claim) -> str:
    """Why nothing can be judged, in one sentence; or nothing."""
    run = f"`equisep figures run {evidence.figure.id}`"
    for name in series_of(evidence.figure, claim):
        found = evidence.series[name]
        outcomes = [entry.outcome for entry in found.chosen.values()]
        if not outcomes:
            return f"`{name}` has not been run; {run} does it."
        for text in quantities_of(claim):
            if not any(was_read(outcome, text) or outcome.diverged is not None for outcome in outcomes):
                return f"`{text}` was not read of `{name}`."
        if evidence.scale == "paper" and (missing := len(found.missing)):
            return f"{missing} {'cell' if missing == 1 else 'cells'} of `{name}` not run yet; {run} goes on."
    if evidence.scale != "paper":
        return f"At {evidence.scale} scale the numbers only show that everything runs: nothing to quote."
    return ""


def _part(claim: Claim, comparison: Comparison) -> Part:
    single = comparison.of[0] if len(comparison.of) == 1 else None
    series = [operand.series for operand in comparison.of]
    run = set.intersection(*(set(found.chosen) for found in series))
    diverged = [seed for seed in run if any(found.chosen[seed].outcome.diverged is not None for found in series)]
    n, lost = len(comparison.values), len(run) - len(comparison.values)
    within = span_of(single.quantity) if single else (-math.inf, math.inf)
    part = Part(
        name=comparison.name,
        mean=float(np.mean(comparison.values)) if n else None,
        n=n,
        interval=seed_interval(comparison.values, LEVEL, within=within) if n > 1 else None,
        rate=single.series.rate if single else None,
        verdict="not held",
        beside=_beside(single.series, single.quantity) if single else {},
        lost=lost,
        diverged=min(lost, len(diverged)),
    )
    if claim.rule in LAWS:
        rho = part.beside["rho"]
        part = replace(part, found=claimed_law(part.mean, rho))
        if (
            part.mean is None and lost > part.diverged
        ):  # D is constant, or not finite: either way no line goes through it
            part = replace(part, found="no law")
            part = replace(part, n=lost - part.diverged, lost=part.diverged)
    return replace(part, verdict=_word(claim, part, comparison.values))


def _beside(found: SeriesEvidence, text: str) -> dict[str, float | None]:
    asked = Query.of(text)
    if asked.name not in _LAW_NUMBERS:
        return {}
    own = {name: found.values(asked.renamed(name)) for name in ("rho", "max_residual", "bend", "imbalance")}
    own["r_eval"] = found.values(asked.renamed("r", reading="eval"))
    own["r_optimistic"] = found.optimistic(asked.renamed("r"))
    return {name: float(np.mean(list(values.values()))) if values else None for name, values in own.items()}


def _word(claim: Claim, part: Part, values: Sequence[float]) -> Word:
    few = part.n < FEW
    if claim.rule in LAWS:  # a law that some seeds do not have is none; that there is no law, divergence does not show
        met = part.found == claim.rule and (claim.rule == "no law" or not part.lost)
    elif part.mean is None:
        met = False
    elif claim.rule == "same best":
        met = meets(claim, min(values), max(values))
    elif few or part.interval is None:
        met = meets(claim, part.mean, part.mean)
    else:
        met = meets(claim, part.interval.low, part.interval.high)
    if not met:
        return "not held"
    chosen = part.lost > 0 and claim.rule not in LAWS
    return "indicated" if chosen or (few and not claim.exact) else "held"


def _margin(claim: Claim, part: Part) -> float:
    """How far inside the rule's bounds a part is; where ρ ≥ 1 there is no law, however r is."""
    if part.mean is None or (claim.rule == "no law" and (part.beside["rho"] or 0.0) >= 1):
        return math.inf if part.found == claim.rule else -math.inf
    return margin(claim, part.mean)


def _reason(claim: Claim, called: str, worst: Part, parts: Sequence[Part]) -> str:
    """One sentence: what was found, with numbers, against what the rule asks."""
    wanting = f"{FEW} seeds or more" if worst.n < FEW else "a number in every seed"
    few = f", and {wanting} to hold" if worst.verdict == "indicated" else ""
    failed = sum(part.verdict == "not held" for part in parts)
    others = f"{failed} of {len(parts)} fail it" if failed else f"all {len(parts)} meet it, this one the least"
    found = _found_words(claim, called, worst)
    return f"{found}; {rule_words(claim)}{few}{f'; {others}' if len(parts) > 1 else ''}."


def _found_words(claim: Claim, called: str, part: Part) -> str:
    rho = part.beside.get("rho") if claim.rule in LAWS else None
    beside = "" if rho is None else f", mean ρ {rho:.4g}"
    diverged = f", {part.diverged} of which diverged" if part.diverged else ""
    head = f"{part.name}: " if part.name != called else ""
    if part.mean is None:
        run = part.n + part.lost
        return f"{head}{called} does not exist in {'the one seed' if run == 1 else f'any of {run} seeds'}{diverged}{beside}"
    lost = f" ({part.lost} more without it{diverged})" if part.lost else ""
    digits = f"{part.mean:.4f}" if claim.rule in LAWS else f"{part.mean:.4g}"
    over = f" {part.interval}" if part.interval is not None else ""
    found = f", which is {'a ' if part.found != 'no law' else ''}{part.found}" if part.found else ""
    seeds = "1 seed" if part.n == 1 else f"{part.n} seeds"
    if claim.exact and part.n == 1:  # solved, and no seed in it
        return f"{head}{called} {digits}{lost}{beside}{found}"
    return f"{head}mean {called} {digits}{over} over {seeds}{lost}{beside}{found}"
