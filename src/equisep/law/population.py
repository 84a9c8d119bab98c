"""From estimates with and without each fold to D of the population: a value with its interval, or a refusal with its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equisep.law.fit import fit_law
from equisep.law.intervals import law_intervals, standard_error
from equisep.law.quantiles import student_quantile, two_sided
from equisep.results import Corrected, LawFit, Note

NEAR_CHANCE = 0.7  # share of the chance level from which on what D says is mostly noise
WIDEST = 0.55  # standard error of ln D, and bias of ln D by the folds, beyond which no value is given
HALF_BELIEVED = 0.3  # standard error of ln D at which half of that bias is taken off
ROOM = 1.25  # samples are asked for until D is the chance level, and some more


def corrected(
    value: float | None,
    left_out: Sequence[float],
    *,
    plain: float | None,
    chance: float | None,
    counts: Sequence[int],
    second_order: float = 0.0,
    level: float = 0.95,
) -> Corrected:
    """D of the population behind the samples, on the scale of ln D, from its estimate and those without each fold.

    The folds show a bias (m − 1)(mean ln D_f − ln D) of what the estimate leaves (Quenouille 1956); the share
    1/(1 + (se/0.3)²) of it is taken off: all of it where the folds agree, little where they do not. The standard error is the
    jackknife's, less what it counts twice (`second_order`). There is no value where plain D reaches 0.7 of its chance
    level, where an estimate is not positive, or where error or bias exceed 0.55 (docs/intervals.md has the simulations).
    """
    present = [count for count in counts if count]
    needed = _needed(plain, chance, present)
    if min(present, default=0) < 2:
        return Corrected(chance=chance, reason="a class has fewer than 2 samples", needed_per_class=2)
    if plain is None:
        return Corrected(chance=chance, reason="D does not exist: the class means coincide")
    if chance is None:
        return Corrected(reason="the chance level is not known")
    if value is None:
        return Corrected(chance=chance, reason="class means are dependent, or classes have no spread")
    if plain > NEAR_CHANCE * chance:
        share = f"plain D stands at {100 * plain / chance:.0f} % of its chance level"
        return Corrected(chance=chance, needed_per_class=needed, reason=share)
    if value <= 0 or min(left_out) <= 0:
        return Corrected(
            chance=chance, needed_per_class=needed, reason="noise of the class means is all that is left of D"
        )
    logs = np.log(np.asarray(left_out, dtype=np.float64))
    m = len(logs)
    error = standard_error(logs, "jackknife") / math.sqrt(1 + second_order)
    bias = (m - 1) * (float(logs.mean()) - math.log(value))
    if error > WIDEST or abs(bias) > WIDEST:
        needed = max(needed or 0, 2 * math.ceil(sum(present) / len(present)))
        return Corrected(
            chance=chance, needed_per_class=needed, reason="D differs too much between parts of the samples"
        )
    center = math.log(value) - bias / (1 + (error / HALF_BELIEVED) ** 2)
    reach = student_quantile(two_sided(level), m - 1) * error
    return Corrected(
        value=math.exp(center),
        low=math.exp(center - reach),
        high=math.exp(center + reach),
        level=level,
        chance=chance,
        folds=tuple(np.exp(center + (logs - logs.mean()) / math.sqrt(1 + second_order)).tolist()),
    )


def _needed(plain: float | None, chance: float | None, present: Sequence[int]) -> int | None:
    """Samples per class at which D would be no larger than its chance level, which grows with their number.

    D itself is taken from 1/D = 1/plain − 1/chance, crude but never negative below the chance level.
    """
    if plain is None or chance is None or not present:
        return None
    each = sum(present) / len(present)
    share = min(plain / chance, 0.95)
    return _two_digits(max(2.0 * (plain > NEAR_CHANCE * chance), ROOM * share / (1 - share)) * each)


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
