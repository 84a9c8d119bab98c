"""How numbers and names are written for people: digits, percent, intervals, missing values, the words of a law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from equisep.results import Interval, LawFit, Profile, former_reading

TWO_SLOPES_GAIN = 6.0  # in BIC; strong evidence (Kass & Raftery 1995)
_KIND_WORDS = {
    "bootstrap": "bootstrap of {n} resamples",
    "jackknife": "jackknife over {n} folds",
    "seeds": "over {n} seeds",
    "combined": "joined from both, as of independent samples",
}


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters beyond ASCII that a report uses, so that one place can do without them."""

    rho: str
    squared: str
    missing: str
    minus: str
    dot: str
    ellipsis: str


UNICODE = Glyphs(rho="ρ", squared="²", missing="–", minus="−", dot="·", ellipsis="…")
ASCII = Glyphs(rho="rho", squared="2", missing="-", minus="-", dot="|", ellipsis="~")


def number(value: float | None, digits: int = 4, *, missing: str = UNICODE.missing) -> str:
    """A number to `digits` significant digits, without an exponent where it reads better without one."""
    if value is None:
        return missing
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if -4 <= size < max(digits, 6):
        return f"{value:.{max(0, digits - 1 - size)}f}"
    return f"{value:.{min(digits, 3) - 1}e}"


def correlation(value: float | None, *, missing: str = UNICODE.missing) -> str:
    """An r, to as many digits as it takes to see how far from ±1 it is."""
    if value is None:
        return missing
    gap = 1 - abs(value)
    return f"{value:.{6 if 0 < gap < 5e-5 else 4}f}"


def percent(share: float | None, *, missing: str = UNICODE.missing) -> str:
    """A share in percent with one digit, never rounded to 100 (or 0) when it is not."""
    if share is None:
        return missing
    held = share if share in (0.0, 1.0) else min(max(share, 0.0005), 0.9994)
    return f"{100 * held:.1f}"


def limits(interval: Interval | None, digits: int = 3) -> str:
    """` [low, high]`, or nothing."""
    return "" if interval is None else f" [{number(interval.low, digits)}, {number(interval.high, digits)}]"


def interval_words(interval: Interval) -> str:
    """How an interval was made: `95 %, bootstrap of 200 resamples`."""
    return f"{100 * interval.level:g} %, {_KIND_WORDS[interval.kind].format(n=interval.n)}"


def slopes_words(law: LawFit, rho: str = UNICODE.rho, *, first: int = 0) -> str:
    """Whether two slopes describe the curve better than one, with the BIC gain; `first` is the number of its first site."""
    found = law.two_slopes
    if found is None:
        return "not asked of fewer than 5 sites" if len(law.curve) < 5 else "not known"
    gain = f"BIC gain {number(found.gain, 2)}"
    if found.gain <= TWO_SLOPES_GAIN:
        return f"no ({gain}; yes above {TWO_SLOPES_GAIN:g})"
    return f"yes ({gain}): {rho} {number(found.rhos[0], 3)}, from site {first + found.at} on {number(found.rhos[1], 3)}"


def samples_words(counts: Sequence[int]) -> str:
    """`1000 samples, 100 per class`; the range where classes differ."""
    least, most = min(counts, default=0), max(counts, default=0)
    each = f"{least}" if least == most else f"{least} to {most}"
    return f"{sum(counts)} samples, {each} per class"


def data_words(profile: Profile) -> str:
    """What was measured: samples, classes, test samples."""
    words = f"{samples_words(profile.counts)}, {profile.classes} classes"
    return words if profile.counts_test is None else f"{words}; {sum(profile.counts_test)} test samples"


def reading_words(profile: Profile) -> str:
    """How it was read: reading, weighting, grain and reduction, which change every number; the papers' `flatten` goes unsaid."""
    settings = profile.settings
    words = f"reading `{one_line(reading_of(profile) or '?')}`"
    if "weighting" in settings:
        words += f", weighting `{one_line(str(settings['weighting']))}`"
    if settings.get("grain"):
        words += f", by `{one_line(str(settings['grain']))}`"
    if settings.get("reduction", "flatten") != "flatten":
        words += f", features as `{one_line(str(settings['reduction']))}`"
    return words


def reading_of(profile: Profile) -> str | None:
    """How BatchNorm and batches were used, by its name of today; a profile of an earlier version calls it its mode."""
    settings = profile.settings
    if "reading" in settings:
        return str(settings["reading"])
    return former_reading(str(settings["mode"])) if "mode" in settings else None


def class_labels(profile: Profile) -> list[str]:
    """What the classes are called: their names where they are known, else their numbers."""
    names = getattr(profile, "class_names", None) or map(str, range(profile.classes))
    return [one_line(name) for name in names]


def passed_words(profile: Profile) -> str:
    """What a network has gone through from site to site: layers, or blocks."""
    return "blocks" if profile.settings.get("grain") == "blocks" else "layers"


def one_line(text: str) -> str:
    """A name on one line, with what would move a cursor or color a terminal made visible."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def shortened_names(names: Sequence[str], width: int, mark: str = UNICODE.ellipsis) -> list[str]:
    """Names of at most `width` characters: too long ones lose the dotted parts that they share, in front then behind.

    >>> shortened_names(["input", "model.layers.0.mlp.relu", "model.layers.1.mlp.relu"], 10)
    ['input', '…0.mlp.re…', '…1.mlp.re…']
    """
    long = [name.split(".") for name in names if len(name) > width]
    head = _shared(long)
    tail = _shared([parts[head:][::-1] for parts in long])
    return [name if len(name) <= width else _cut(name.split("."), head, tail, width, mark) for name in names]


def _shared(lists: Sequence[Sequence[str]]) -> int:
    """How many entries all lists begin with alike; of a single list none is shared."""
    if len(lists) < 2:
        return 0
    return sum(1 for _ in takewhile(lambda entries: len(set(entries)) == 1, zip(*lists, strict=False)))


def _cut(parts: Sequence[str], head: int, tail: int, width: int, mark: str) -> str:
    """A name without its shared beginning, and without its end where what tells it apart lies before."""
    before = mark if head else ""
    whole = before + ".".join(parts[head:])
    apart = before + ".".join(parts[head : len(parts) - tail])
    if len(whole) <= width:
        return whole
    if tail and len(apart) < width:
        return whole[: width - 1] + mark
    return mark + whole[len(whole) - width + 1 :]
