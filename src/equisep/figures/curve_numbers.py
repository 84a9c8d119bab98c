"""Single numbers of the curves of one reading: of the law, of the loads, of nearest class centers."""

from __future__ import annotations

import math
from functools import lru_cache

from equisep.figures.outcome import Curve, Curves, Outcome
from equisep.law import fit_law
from equisep.law.effective_depth import PERFECT, least_separable
from equisep.law.emergence import emerged, law_standing
from equisep.results import LawFit

SETTLED = 0.1
FITTED = 1 - PERFECT


@lru_cache(maxsize=65536)
def law_of(values: Curve) -> LawFit | None:
    """The law of a curve; None where one of its numbers does not exist."""
    plain = [value for value in values if value is not None and math.isfinite(value)]
    return fit_law(plain) if plain and len(plain) == len(values) else None


def at_site(values: Curve, site: int) -> float | None:
    """The value at a site (-1 is the last); None where there is no such site."""
    return values[site] if -len(values) <= site < len(values) else None


def bend(values: Curve) -> float | None:
    """How far two slopes fit better than one, over what 5 % of curves of one slope exceed: above 1 the curve has two slopes."""
    law = law_of(values)
    return None if law is None or law.two_slopes is None else law.two_slopes.strength


def log_last(values: Curve) -> float | None:
    """Ln D at the last site."""
    return math.log(values[-1]) if values and values[-1] is not None and values[-1] > 0 else None


def whole_ratio(values: Curve) -> float | None:
    """R = D_{L−1}/D_0 (He & Su 2023, Proposition 1)."""
    return values[-1] / values[0] if values and values[-1] is not None and values[0] else None


def of_chance(reading: Curves, site: int) -> float | None:
    """D at a site over D under random labels there: near 1 nothing is told apart."""
    level, value = at_site(reading.chance, site), at_site(reading.fuzziness, site)
    return value / level if level and value is not None else None


def class_r(reading: Curves) -> float | None:
    """The mean r of the laws of the single classes."""
    laws = [law_of(own) for own in reading.class_fuzziness]
    known = [law.r for law in laws if law is not None and law.r is not None]
    return sum(known) / len(known) if known else None


def least_depth(reading: Curves) -> float | None:
    """Galanti's effective depth: the least site from 1 on whose training samples nearest centers separate (> 99 %)."""
    depth = least_separable(reading.ncc, epsilon=PERFECT, above=True)
    return None if depth is None else float(depth)


def load_gap(reading: Curves, split: int) -> float | None:
    """Mean load of the layers above `split` (0: above the middle) minus that of the others, over the mean load."""
    law = law_of(reading.fuzziness)
    if law is None or len(law.loads) < 2:
        return None
    cut = split or len(law.loads) // 2
    low, high = law.loads[:cut], law.loads[cut:]
    mean = sum(law.loads) / len(law.loads)
    return (sum(high) / len(high) - sum(low) / len(low)) / mean if mean and low and high else None


def center_gap(reading: Curves, site: int) -> float | None:
    """How far test accuracy by nearest class centers at a site is from that of the whole network."""
    share, whole = at_site(reading.ncc_test, site), reading.accuracy_test
    return None if share is None or whole is None else abs(share - whole)


def prediction_gain(reading: Curves, site: int) -> float | None:
    """By how much nearer to test accuracy the training samples' nearest-center accuracy at a site is than train accuracy."""
    share, fit, whole = at_site(reading.ncc, site), reading.accuracy, reading.accuracy_test
    return None if share is None or fit is None or whole is None else abs(fit - whole) - abs(share - whole)


def _epoch_by_epoch(outcome: Outcome, reading: str | None) -> list[Curves]:
    """What was read one way, in the order of epochs."""
    if outcome.reading(reading=reading) is None:
        return []
    every = sorted(outcome.readings, key=lambda each: each.epoch)
    return [curves for curves in every if curves == outcome.reading(epoch=curves.epoch, reading=reading)]


def law_epoch(outcome: Outcome, reading: str | None = None) -> float | None:
    """The epoch, of those read, at which the law emerged by `equisep.law.emergence`; where it did not, the last one.

    It emerges then at the earliest: a training without the law must not be left out of a mean over those that have it.
    """
    along = _epoch_by_epoch(outcome, reading)
    if not along:
        return None
    standings = [law_standing(law_of(curves.fuzziness)) for curves in along]
    first = emerged([curves.epoch for curves in along], standings, what="law").first
    return float(along[-1].epoch if first is None else first)


def settled(outcome: Outcome, site: int, reading: str | None = None) -> float | None:
    """The first epoch from which a site's D over that of the site before stays within 10 % of its last value."""
    along = [
        (curves.epoch, after / before)
        for curves in _epoch_by_epoch(outcome, reading)
        if (after := at_site(curves.fuzziness, site)) is not None and (before := at_site(curves.fuzziness, site - 1))
    ]
    first = None
    for epoch, ratio in reversed(along):
        if abs(ratio / along[-1][1] - 1) > SETTLED:
            break
        first = float(epoch)
    return first
