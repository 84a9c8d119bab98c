"""How numbers and names are written in words, wherever a sentence or a table needs them: digits, percent, class names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from equisep.results.profile import Profile
    from equisep.results.records import Interval, LawFit

MISSING = "–"
# all that folds and resamples tell: of few samples D is too small in every one of them
OTHER_SAMPLES = "in other samples of this size"
AXES = {  # metrics of a layer as the label of an axis, in every drawing
    "fuzziness": "separation fuzziness D",
    "fuzziness_test": "separation fuzziness D on test data",
    "chance": "chance level of D",
    "class_fuzziness": "class fuzziness $D_k$",
    "cdnv": "CDNV",
    "cdnv_test": "CDNV on test data",
    "cdnv_directional": "CDNV along the lines between class means",
    "nc1": "NC1",
    "ncc": "nearest class-center accuracy",
    "ncc_test": "nearest class-center accuracy on test data",
    "load": "share of the work",
}


def number(value: float | None, digits: int = 4, *, missing: str = MISSING) -> str:
    """A number to `digits` significant digits, without an exponent where it reads better without one."""
    if value is None:
        return missing
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if -4 <= size < max(digits, 6):
        return f"{value:.{max(0, digits - 1 - size)}f}"
    return f"{value:.{min(digits, 3) - 1}e}"


def correlation(value: float | None, *, missing: str = MISSING) -> str:
    """An r, to as many digits as it takes to see how far from ±1 it is."""
    if value is None:
        return missing
    gap = 1 - abs(value)
    return f"{value:.{6 if 0 < gap < 5e-5 else 4}f}"


def percent(share: float | None, *, missing: str = MISSING) -> str:
    """A share in percent with one digit, never rounded to 100 (or 0) when it is not."""
    if share is None:
        return missing
    held = share if share in (0.0, 1.0) else min(max(share, 0.0005), 0.9994)
    return f"{100 * held:.1f}"


def plural(count: int, word: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _three(value: float) -> str:
    return number(value, 3)


def span_words(span: Interval | None, written: Callable[[float], str] = _three) -> str:
    """An interval by folds or resamples, and what it is of: ` [0.461, 0.513] in other samples of this size`, or nothing."""
    if span is None:
        return ""
    low, high = written(span.low), written(span.high)
    return f" {'about the same' if low == high else f'[{low}, {high}]'} {OTHER_SAMPLES}"


def law_span_words(
    profile: Profile, name: Literal["rho", "half_life"], written: Callable[[float], str] = _three
) -> str:
    """The interval of a number of the law, and the number of the population with its own where these are samples of one."""
    parts = [span_words(profile.law.intervals.get(name), written).strip()]
    law = population_law(profile)
    value = None if law is None else getattr(law, name)
    if law is not None and value is not None:
        span = law.intervals.get(name)
        limits = "" if span is None else f" [{written(span.low)}, {written(span.high)}]"
        begin = begin_words(profile, law)
        parts.append(f"{written(value)}{limits} in the population{', ' if begin else ''}{begin}")
    return "; ".join(filter(None, parts))


def population_law(profile: Profile, name: str = "corrected") -> LawFit | None:
    """The law of D of the population, if it can be told: behind training data that are some of more, or behind test data."""
    law = profile.laws.get(name) if profile.whole is False or name == "corrected test" else None
    return None if law is None or law.rho is None else law


def begin_words(profile: Profile, law: LawFit) -> str:
    """`from layer 2 on` of a law that begins later than that of the samples, since D of the population is told later."""
    if len(law.curve) >= len(profile.law.curve):
        return ""
    return f"from {passed_words(profile).removesuffix('s')} {profile.sites[-len(law.curve)].index} on"


def class_labels(profile: Profile) -> list[str]:
    """What the classes are called: their names where they are known, else their numbers."""
    names = profile.class_names or map(str, range(profile.classes))
    return [one_line(name) for name in names]


def passed_words(profile: Profile) -> str:
    """What a network has gone through from site to site: layers, or blocks."""
    return "blocks" if profile.settings.get("grain") == "blocks" else "layers"


def one_line(text: str) -> str:
    """A name on one line, with what would move a cursor or color a terminal made visible."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def sentence(text: str) -> str:
    """Words with a capital letter at their beginning, the others as they are."""
    return text[:1].upper() + text[1:]
