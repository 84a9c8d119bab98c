"""From estimates with and without each fold to D of the population: a value with its interval, or a refusal with its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equisep.law.fit import fit_law
from equisep.law.intervals import law_intervals, standard_error
from equisep.law.quantiles import normal_quantile, student_quantile, two_sided
from equisep.results import Corrected, LawFit, Note

NEAR_CHANCE = 0.75  # share of the chance level from which on what D says is mostly noise
BY_CHANCE = 0.6  # … and which plain D may reach, by its error, where it says as well how large D may be
HALF_BELIEVED = 0.05  # standard error, on the scale of ln plain D, at which half of the folds' bias is taken off …
TOO_MUCH = 0.1  # … and the bias itself at which that is halved
FARTHEST = 1000  # times D: an upper end beyond is none
ROOM = 1.25  # samples are asked for until D is the chance level, and some more


def corrected(
    value: float | None,
    left_out: Sequence[float],
    *,
    plain: float | None,
    chance: float | None,
    counts: Sequence[int],
    excess: float = 0.0,
    chance_error: float = 0.0,
    least_error: float = 0.0,
    level: float = 0.95,
) -> Corrected:
    """D of the population behind the samples, from its estimate and those without each fold.

    Errors are nearly normal, and of one size, on the scale of what samples of this number would show as plain D,
    h = −ln(1/D + 1/chance): the closer to its chance level, the further up D may lie. The folds show a bias
    (m − 1)(mean h_f − h) of what the estimate leaves (Quenouille 1956); the share 1/(1 + (se/0.05)² + (bias/0.1)²) is taken off:
    all of it where the folds agree, little where they do not or where it is large, since then it grows faster than 1/n. The
    standard error is the jackknife's, less its `excess`. Near the chance level that scale has no upper end where D varies by
    its own part, and not by how near plain D is to chance: there it is that of ln D. Where plain D, as
    much larger as its error and that of random labels (`chance_error`) allow, is above 0.6 of its chance level, the upper end is
    at least what follows from that alone. The lower end is at most D less what the noise of the means may have added to it, 1.96
    times the `least_error`: samples whose noise makes D small are refused, so that those which are told have D too large. There
    is no value where plain D reaches 0.75 of its chance level, where an estimate is not positive, or where the interval has no
    upper end (docs/intervals.md).
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
    shown = -np.log(1 / np.asarray(left_out, dtype=np.float64) + 1 / chance)  # h of every fold
    m = len(shown)
    error = standard_error(shown, "jackknife") / math.sqrt(1 + excess)
    bias = (m - 1) * (float(shown.mean()) + math.log(1 / value + 1 / chance))
    center = -math.log(1 / value + 1 / chance) - bias / (1 + (error / HALF_BELIEVED) ** 2 + (bias / TOO_MUCH) ** 2)
    reach = student_quantile(two_sided(level), m - 1)
    low, found, high = (_behind(center + step * reach * error, chance) for step in (-1, 0, 1))
    logs = np.log(left_out) / math.sqrt(1 + excess)
    if not high <= FARTHEST * found:
        high = found * float(np.exp(reach * standard_error(logs, "jackknife")))
    largest = math.log(plain) + reach * max(error, chance_error)  # what plain D may be
    if largest > math.log(BY_CHANCE * chance):
        high = max(high, _behind(largest, chance))
    if not (math.isfinite(found) and high <= FARTHEST * found):
        needed = max(needed or 0, 2 * math.ceil(sum(present) / len(present)))
        return Corrected(chance=chance, needed_per_class=needed, reason="D has no upper limit by these samples")
    return Corrected(
        value=found,
        low=min(low, found * max(0.0, 1 - normal_quantile(two_sided(level)) * least_error)),
        high=high,
        level=level,
        chance=chance,
        folds=tuple(float(point) for point in found * np.exp(logs - logs.mean())),
    )


def _behind(shown: float, chance: float) -> float:
    """D of the population where samples show exp(shown) as plain D: infinite where that is the chance level or more."""
    try:
        rest = math.exp(-shown) - 1 / chance
    except OverflowError:
        return 0.0
    return 1 / rest if rest > 0 else math.inf


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
