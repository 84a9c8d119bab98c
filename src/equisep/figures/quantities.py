"""Quantities: single numbers of one outcome, by name, as claims and panels ask for them.

r                             of the law of D at the last epoch, read the first way
r@epoch=100,mode=eval         … at another epoch, or read another way (`epoch`, `mode`, `grain`, `reduction`, `weighting`)
accuracy_test                 of the whole network, as `accuracy` and `loss`: in eval mode where it was read, unless it says
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
WAYS = ("epoch", "mode", "grain", "reduction", "weighting", "site", "from", "of", "class", "split")
HALF = 0.5 + 1e-9  # of an epoch, to which shares of a shortened training are rounded
SETTLED = 0.1
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

    def renamed(self, name: str, **ways: str) -> str:
        """Another quantity read the same way, but for the ways given, as text."""
        wanted = {**self.ways, **ways}
        return f"{name}@{','.join(f'{key}={value}' for key, value in wanted.items())}" if wanted else name


def quantity(outcome: Outcome, text: str) -> float | None:
    """The number that `text` names; None where it does not exist, as after a divergence."""
    asked = Quantity.of(text)
    if asked.name in outcome.numbers:
        return outcome.numbers[asked.name]
    if asked.name == "settled":
        return _settled(outcome, asked)
    reading = _reading(outcome, asked)
    if reading is None:
        return None
    if asked.name in WHOLE:
        found = [getattr(each, asked.name) for each in (_in_use(outcome, asked), reading) if each is not None]
        return next((float(value) for value in found if value is not None), None)
    if asked.name in METRICS:
        return _site(_curve(reading, asked.name, asked), int(asked.ways.get("site", "-1")))
    if asked.name in OF_CURVE:
        return OF_CURVE[asked.name](_curve(reading, asked.ways.get("of", "fuzziness"), asked))
    if asked.name in OF_SITE:
        return OF_SITE[asked.name](reading, int(asked.ways.get("site", "-1")))
    return _of_reading(reading, asked)


def _of_reading(reading: Curves, asked: Quantity) -> float | None:
    """Numbers that take more than one curve of a reading."""
    if asked.name in ("load_gap", "load_difference"):
        gap = _load_gap(reading, int(asked.ways.get("split", "0")))
        return gap if gap is None or asked.name == "load_gap" else abs(gap)
    if asked.name == "class_r":
        found = [_of_law("r")(own) for own in reading.class_fuzziness]
        known = [r for r in found if r is not None]
        return sum(known) / len(known) if known else None
    return _effective_depth(reading) if asked.name == "effective_depth" else None


def curve(outcome: Outcome, text: str) -> Curve:
    """A metric over sites, as `fuzziness`, `ncc@mode=eval`, `class_fuzziness@class=3`; empty where it was not read."""
    asked = Quantity.of(text)
    reading = _reading(outcome, asked)
    return () if reading is None else _curve(reading, asked.name, asked)


def _reading(outcome: Outcome, asked: Quantity) -> Curves | None:
    ways = asked.ways
    epoch = _epoch(outcome, ways["epoch"]) if "epoch" in ways else None
    if "epoch" in ways and epoch is None:
        return None
    return outcome.reading(
        epoch=epoch,
        mode=ways.get("mode"),
        grain=ways.get("grain"),
        reduction=ways.get("reduction"),
        weighting=ways.get("weighting"),
    )


def _in_use(outcome: Outcome, asked: Quantity) -> Curves | None:
    """The reading in eval mode, unless another is asked for.

    Answers of a network in batch mode depend on the company of a sample, so that test accuracy does on the shares of classes.
    """
    return None if "mode" in asked.ways else _reading(outcome, Quantity(asked.name, {**asked.ways, "mode": "eval"}))


def _epoch(outcome: Outcome, text: str) -> int | None:
    """An epoch by number, or as a share `a/b` of all: the one read within half an epoch of it."""
    part, slash, whole = text.partition("/")
    if not slash:
        return int(part)
    last = outcome.last_epoch
    if last is None:
        return None
    wanted = int(part) / int(whole) * last
    known = sorted({reading.epoch for reading in outcome.readings})
    return next((epoch for epoch in known if abs(epoch - wanted) <= HALF), None)


def _settled(outcome: Outcome, asked: Quantity) -> float | None:
    """The first epoch from which a site's D over that of the site before stays within 10 % of its last value."""
    site, first = int(asked.ways.get("site", "1")), outcome.reading()
    if first is None:
        return None
    along = [
        (reading.epoch, after / before)
        for reading in sorted(outcome.readings, key=lambda each: each.epoch)
        if reading == outcome.reading(epoch=reading.epoch)
        and (after := _site(reading.fuzziness, site)) is not None
        and (before := _site(reading.fuzziness, site - 1))
    ]
    settled = None
    for epoch, ratio in reversed(along):
        if abs(ratio / along[-1][1] - 1) > SETTLED:
            break
        settled = float(epoch)
    return settled


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
        if site and share is not None and round(share, 6) > FITTED:  # 0.99 in float32 is above 0.99
            return float(site)
    return None


def _load_gap(reading: Curves, split: int) -> float | None:
    """Mean load of the layers above `split` (0: above the middle) minus that of the others, over the mean load."""
    law = law_of(reading.fuzziness)
    if law is None or len(law.loads) < 2:
        return None
    cut = split or len(law.loads) // 2
    low, high = law.loads[:cut], law.loads[cut:]
    mean = sum(law.loads) / len(law.loads)
    return (sum(high) / len(high) - sum(low) / len(low)) / mean if mean and low and high else None


def _center_gap(reading: Curves, site: int) -> float | None:
    """How far test accuracy by nearest class centers at a site is from that of the whole network."""
    share, whole = _site(reading.ncc_test, site), reading.accuracy_test
    return None if share is None or whole is None else abs(share - whole)


def _prediction_gain(reading: Curves, site: int) -> float | None:
    """By how much nearer to test accuracy the training samples' nearest-center accuracy at a site is than train accuracy."""
    share, fit, whole = _site(reading.ncc, site), reading.accuracy, reading.accuracy_test
    return None if share is None or fit is None or whole is None else abs(fit - whole) - abs(share - whole)


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
OF_SITE: Mapping[str, Callable[[Curves, int], float | None]] = {
    "center_gap": _center_gap,
    "prediction_gain": _prediction_gain,
}

# numbers of outcomes under their own names: of any training; of noisy weights; of a classifier; of solved problems
NUMBERS = (
    "final_loss", "balance", "change", "change_matched", "minority_cosine", "majority_cosine", "minority_mean_cosine",
    "minority_accuracy_test", "majority_accuracy_test", "value", "gap", "relative_gap", "stationarity", "value_error",
    "cosine_error", "duality_error", "proven", "etf_value", "etf_advantage", "least_cosine", "largest_cosine",
    "cosine_spread", "duality", "norm_error", "collapse_distance", "collapsed", "threshold", "vanishing", "first_cosine",
    "first_cosine_error", "least_rise", "open_gap", "collapsed_error", "collapsed_distance", "limit_distance", "mean_gap",
)  # fmt: skip
KNOWN: tuple[str, ...] = (
    *OF_CURVE, *OF_SITE, *METRICS, *WHOLE, *NUMBERS,
    "class_fuzziness", "class_r", "effective_depth", "load_difference", "load_gap", "ratios", "settled",
)  # fmt: skip
