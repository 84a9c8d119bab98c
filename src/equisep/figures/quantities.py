"""Quantities: single numbers of one outcome, by name, as claims and panels ask for them.

r                             of the law of D at the last epoch, read the first way
r@epoch=100,mode=eval         … at another epoch, or read another way (`epoch`, `mode`, `grain`, `reduction`)
ncc@site=4                    a metric of one site (counted from 0, the input; -1 is the last)
ncc_test@epoch=0,site=-1
r@from=10                     the law of the sites from 10 on
minority_cosine               a number of the outcome by its own name
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from equisep.errors import InputError, did_you_mean
from equisep.figures.outcome import Curve, Curves, Outcome
from equisep.law import fit_law
from equisep.results import LawFit

METRICS = ("fuzziness", "cdnv", "ncc", "fuzziness_test", "cdnv_test", "ncc_test")
WHOLE = ("loss", "accuracy", "accuracy_test")
WAYS = ("epoch", "mode", "grain", "reduction", "site", "from", "of", "class")
FITTED = 0.99  # Galanti & Galanti 2022 take an accuracy above 99 % for perfect


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity's name and the way it is read."""

    name: str
    ways: Mapping[str, str]

    @staticmethod
    def of(text: str) -> Quantity:
        """From `NAME@key=value,…`."""
        name, _, rest = text.partition("@")
        ways: dict[str, str] = {}
        for part in rest.split(",") if rest else ():
            key, equals, value = part.partition("=")
            if not equals or key not in WAYS:
                raise InputError(
                    f"The quantity `{text}` has `{part}`.{did_you_mean(key, WAYS)} Write NAME@key=value,…, with the keys "
                    f"{', '.join(WAYS)}."
                )
            ways[key] = value
        return Quantity(name, ways)


def quantity(outcome: Outcome, text: str) -> float | None:
    """The number that `text` names; None where it does not exist, as after a divergence."""
    asked = Quantity.of(text)
    if asked.name in outcome.numbers:
        return outcome.numbers[asked.name]
    reading = _reading(outcome, asked)
    if reading is None:
        return None
    if asked.name in WHOLE:
        value = getattr(reading, asked.name)
        return None if value is None else float(value)
    if asked.name in METRICS:
        return _site(_curve(reading, asked.name, asked), int(asked.ways.get("site", "-1")))
    if asked.name in OF_CURVE:
        return OF_CURVE[asked.name](_curve(reading, asked.ways.get("of", "fuzziness"), asked))
    return OF_READING[asked.name](reading) if asked.name in OF_READING else None


def curve(outcome: Outcome, text: str) -> Curve:
    """A metric over sites, as `fuzziness`, `ncc@mode=eval`, `class_fuzziness@class=3`; empty where it was not read."""
    asked = Quantity.of(text)
    reading = _reading(outcome, asked)
    return () if reading is None else _curve(reading, asked.name, asked)


def _reading(outcome: Outcome, asked: Quantity) -> Curves | None:
    ways = asked.ways
    return outcome.reading(
        epoch=int(ways["epoch"]) if "epoch" in ways else None,
        mode=ways.get("mode"),
        grain=ways.get("grain"),
        reduction=ways.get("reduction"),
    )


def _curve(reading: Curves, name: str, asked: Quantity) -> Curve:
    if "class" in asked.ways:
        label = int(asked.ways["class"])
        found = reading.class_fuzziness[label] if label < len(reading.class_fuzziness) else ()
    elif name in METRICS:
        found = getattr(reading, name)
    else:
        raise InputError(f"No curve `{name}`.{did_you_mean(name, METRICS)} Known: {', '.join(METRICS)}.")
    return found[int(asked.ways.get("from", "0")) :]


def _site(values: Curve, site: int) -> float | None:
    return values[site] if -len(values) <= site < len(values) else None


@lru_cache(maxsize=65536)
def law_of(values: Curve) -> LawFit | None:
    """The law of a curve; None where one of its numbers does not exist."""
    plain = [value for value in values if value is not None and math.isfinite(value)]
    return fit_law(plain) if plain and len(plain) == len(values) else None


def _of_law(name: str) -> Callable[[Curve], float | None]:
    def find(values: Curve) -> float | None:
        law = law_of(values)
        return None if law is None else getattr(law, name)

    return find


def _bend(values: Curve) -> float | None:
    """How much a broken line lowers the BIC: above 6 the curve has two slopes."""
    law = law_of(values)
    return None if law is None or law.two_slopes is None else law.two_slopes.bic_one - law.two_slopes.bic_two


def _log_last(values: Curve) -> float | None:
    return math.log(values[-1]) if values and values[-1] is not None and values[-1] > 0 else None


def _ratio(values: Curve) -> float | None:
    """R = D_{L−1}/D_0 (He & Su 2023, Proposition 1)."""
    return values[-1] / values[0] if values and values[-1] is not None and values[0] else None


def _effective_depth(reading: Curves) -> float | None:
    """The least site from 1 on whose training samples are separated by nearest class centers (> 99 %)."""
    for site, share in enumerate(reading.ncc):
        if site and share is not None and share > FITTED:
            return float(site)
    return None


def _load_gap(reading: Curves) -> float | None:
    """Mean load of the upper half of the layers minus that of the lower half, over the mean load."""
    law = law_of(reading.fuzziness)
    if law is None or len(law.loads) < 2:
        return None
    half = len(law.loads) // 2
    low, high = sum(law.loads[:half]) / half, sum(law.loads[-half:]) / half
    mean = sum(law.loads) / len(law.loads)
    return (high - low) / mean if mean else None


OF_CURVE: Mapping[str, Callable[[Curve], float | None]] = {
    "r": _of_law("r"),
    "rho": _of_law("rho"),
    "half_life": _of_law("half_life"),
    "imbalance": _of_law("imbalance"),
    "max_residual": _of_law("max_residual"),
    "bend": _bend,
    "last": lambda values: _site(values, -1),
    "log_last": _log_last,
    "first": lambda values: _site(values, 0),
    "ratio": _ratio,
}
OF_READING: Mapping[str, Callable[[Curves], float | None]] = {
    "effective_depth": _effective_depth,
    "load_gap": _load_gap,
}
