"""How numbers and names are written for people: digits, percent, intervals, missing values, the words of a law."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from equisep.results import ClassifierReading, Interval, LawFit, Profile
from equisep.results.records import BREAK_LEVEL, LAW_R, LEAST_SITES, NO_LAW_R
from equisep.results.wording import MISSING, class_labels, correlation, number, one_line, passed_words, percent

__all__ = [
    "ASCII",
    "UNICODE",
    "Glyphs",
    "ascii_signs",
    "ascii_text",
    "class_labels",
    "classifier_rows",
    "correlation",
    "data_words",
    "depth_words",
    "duration",
    "interval_words",
    "kink_words",
    "law_sentence",
    "limits",
    "minus_signs",
    "number",
    "one_line",
    "passed_words",
    "percent",
    "reading_words",
    "samples_words",
    "shortened",
    "shortened_names",
    "size",
    "verdict_words",
]

_LEAST_P = 0.001
_KIND_WORDS = {
    "bootstrap": "bootstrap of {n} resamples",
    "jackknife": "jackknife over {n} folds",
    "seeds": "over {n} seeds",
    "combined": "treating the two samples as independent",
    "paired": "paired, the same {n} folds of samples left out of both",
    "crossed": "over {n} seeds and the test samples",
    "prediction": "of one more seed, predicted from {n}",
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


UNICODE = Glyphs(rho="ρ", squared="²", missing=MISSING, minus="−", dot="·", ellipsis="…")
ASCII = Glyphs(rho="rho", squared="2", missing="-", minus="-", dot="|", ellipsis="~")

_SIGN = re.compile(r"(?<![\w*`.)+-])-(?=\d)")  # before a number, and not within a name: `adam-20` keeps its own

# what a terminal that has ASCII alone shows for the signs that words use
_SPELLED = {
    "ρ": "rho", "≤": "<=", "≥": ">=", "≠": "!=", "±": "+/-", "−": "-", "–": "-", "×": "x", "·": "|", "…": "...",
    "ε": "epsilon", "“": '"', "”": '"', "’": "'", "⁺": "+", "²": "2", "→": "->",
}  # fmt: skip


def minus_signs(text: str) -> str:
    """Text with the signs of its numbers as print has them.

    >>> minus_signs("adam-20: r = -0.9952 [-0.9967, -0.9937]")
    'adam-20: r = −0.9952 [−0.9967, −0.9937]'
    """
    return _SIGN.sub(UNICODE.minus, text)


def ascii_text(text: str, glyphs: Glyphs = ASCII) -> str:
    """Text with the signs that these glyphs lack spelled out; to be done before lines are broken, so that none is lost."""
    return "".join(_SPELLED.get(char, char) for char in text) if glyphs is ASCII else text


def ascii_signs(text: str) -> str:
    """Text that is laid out already in ASCII, character for character; what no sign stands for is a question mark."""
    signs = {char: sign for char, sign in _SPELLED.items() if len(sign) == 1} | {UNICODE.ellipsis: ASCII.ellipsis}
    return "".join(signs.get(char, char) for char in text).encode("ascii", "replace").decode()


def duration(seconds: float) -> str:
    """`0.4 s`, `12 min`, `3.5 h`, `2.1 days`, `3.4 years`."""
    for unit, name in ((365.25 * 86400, "years"), (86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.2g} s"


def size(count: int) -> str:
    """Bytes in the largest unit that leaves one or more: `3.4 GiB`."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"


def limits(interval: Interval | None, digits: int = 3) -> str:
    """` [low, high]`, or nothing."""
    return "" if interval is None else f" [{number(interval.low, digits)}, {number(interval.high, digits)}]"


def interval_words(interval: Interval) -> str:
    """How an interval was made: `95 %, bootstrap of 200 resamples`."""
    return f"{100 * interval.level:g} %, {_KIND_WORDS[interval.kind].format(n=interval.n)}"


def verdict_words(law: LawFit) -> tuple[str, str]:
    """The word for a law as it is read aloud, and why it is this one: `law`, `r -0.9981, at most -0.996`."""
    if law.verdict == "undetermined":
        few = len(law.curve) < LEAST_SITES
        why = (
            f"{len(law.curve)} of at least {LEAST_SITES} layers: two points always lie on a line"
            if few
            else "r is not known"
        )
        return "undetermined", why
    r = f"r {correlation(law.r)}"
    if law.verdict == "no law":
        falls = law.rho is not None and law.rho < 1
        return "no law", f"{r}, above {NO_LAW_R}" if falls else "D does not fall from layer to layer"
    if law.verdict == "law":
        return "law", f"{r}, at most {LAW_R}"
    return "between law and none", f"{r}, between {LAW_R} and {NO_LAW_R}"


_SENTENCES = {
    "law": "The law of equi-separation holds",
    "between": "Between a law of equi-separation and none",
    "no law": "No law of equi-separation",
    "undetermined": "Law of equi-separation: cannot be judged",
}


def law_sentence(law: LawFit) -> str:
    """What the verdict says of the law, without the numbers: `The law of equi-separation holds`."""
    return "Law of equi-separation: not fitted" if law.rho is None else _SENTENCES[law.verdict]


def kink_words(law: LawFit, *, first: int = 0, each: str = "layer") -> str:
    """Whether two slopes describe the curve better than one; `first` is the number of its first site, a layer or a block."""
    kink = law.two_slopes
    if kink is not None and kink.p is None:  # a profile of an earlier version; numpy is for these alone
        from equisep.law import break_of

        kink = break_of(law)
    if kink is None or kink.p is None:
        return f"not asked of fewer than 5 {each}s" if len(law.curve) < 5 else "not known"
    chance = f"p < {_LEAST_P:g}" if kink.p < _LEAST_P else f"p = {number(kink.p, 2)}"
    if not kink.clear:
        return f"none that can be told ({chance}; called at {BREAK_LEVEL:g})"
    before, after = (number(rho, 3) for rho in kink.rhos)
    words = f"at {each} {first + kink.at}: D ×{before} per {each} before it, ×{after} after ({chance})"
    return f"{words}; one line still fits" if law.verdict == "law" else words


def samples_words(counts: Sequence[int]) -> str:
    """`1000 samples, 100 per class`; the range where classes differ."""
    least, most = min(counts, default=0), max(counts, default=0)
    each = f"{least}" if least == most else f"{least} to {most}"
    return f"{sum(counts)} samples, {each} per class"


# D of these samples, or of the population; profiles of earlier versions do not say
_QUESTIONS = {True: " (all there are: D is exact)", False: " (a sample of more: see corrected D)", None: ""}


def data_words(profile: Profile) -> str:
    """What was measured: samples, whether they are all there are, classes, test samples."""
    words = f"{samples_words(profile.counts)}{_QUESTIONS[profile.whole]}, {profile.classes} classes"
    return words if profile.counts_test is None else f"{words}; {sum(profile.counts_test)} test samples"


def reading_words(profile: Profile) -> str:
    """How it was read: reading, weighting, grain and reduction, which change every number; the papers' `flatten` goes unsaid."""
    settings = profile.settings
    words = f"reading `{one_line(profile.reading or '?')}`"
    if "weighting" in settings:
        words += f", weighting `{one_line(str(settings['weighting']))}`"
    if settings.get("grain"):
        words += f", by `{one_line(str(settings['grain']))}`"
    if settings.get("reduction", "flatten") != "flatten":
        words += f", reduction `{one_line(str(settings['reduction']))}`"
    return words


def accuracy_words(profile: Profile) -> list[str]:
    """`99.1 % train`, `97.4 % test`: of the network itself, where it was measured."""
    shares = {"train": profile.accuracy_train, "test": profile.accuracy_test}
    return [f"{percent(share)} % {name}" for name, share in shares.items() if share is not None]


def depth_words(profile: Profile) -> Iterator[tuple[str, str]]:
    """From which layer on nearest class means tell the training samples apart, and do as well as the network itself."""
    if all(site.ncc_train is None for site in profile.sites):
        return
    epsilon, last = float(profile.settings.get("epsilon", 0.0)), profile.sites[-1].index
    each = passed_words(profile).removesuffix("s")
    share = "all training samples" if epsilon == 0 else f"{100 * (1 - epsilon):g} % or more of the training samples"
    if profile.effective_depth is None:
        fewer = "not all" if epsilon == 0 else f"fewer than {100 * (1 - epsilon):g} %"
        yield (
            "Effective depth",
            f"none (at the last {each} {fewer} of the training samples are nearest to their class mean)",
        )
    else:
        balanced = profile.effective_depth_balanced
        other = (
            "" if balanced in (None, profile.effective_depth) else f"; {balanced} with every class weighing the same"
        )
        yield (
            "Effective depth",
            f"{each} {profile.effective_depth} of {last} ({share} nearest to their class mean){other}",
        )
    if profile.network_depth is not None:
        near = "" if epsilon == 0 else f" to {100 * epsilon:g} %"
        yield (
            "As good as the network",
            f"{each} {profile.network_depth} of {last} (nearest class means reach its accuracy{near})",
        )


def classifier_rows(reading: ClassifierReading, *, missing: str = UNICODE.missing) -> list[tuple[str, str]]:
    """Neural collapse of the last linear layer, number by number."""
    nc2 = (reading.norm_spread, reading.angle_spread, reading.etf_distance)
    words = ("spread of norms", "of angles", "distance from a simplex")
    test = "" if reading.nc4_test is None else f", on test data {number(reading.nc4_test, 2)}"
    return [
        ("NC2", ", ".join(f"{word} {number(value, 2)}" for word, value in zip(words, nc2, strict=True))),
        ("NC3", f"{number(reading.nc3, 2, missing=missing)}: classifier against class means"),
        ("NC4", f"{number(reading.nc4, 2, missing=missing)}{test}: share that nearest class means decide otherwise"),
    ]


def shortened_names(names: Sequence[str], width: int, mark: str = UNICODE.ellipsis) -> list[str]:
    """Names of at most `width` characters: too long ones lose the dotted parts that they share, in front then behind.

    >>> shortened_names(["input", "model.layers.0.mlp.relu", "model.layers.1.mlp.relu"], 10)
    ['input', '…0.mlp…', '…1.mlp…']
    >>> shortened_names(["model.layers.0.feed_forward", "model.layers.1.feed_forward"], 12)
    ['…0.fe…orward', '…1.fe…orward']
    """
    long = [name.split(".") for name in names if len(name) > width]
    head = _shared(long)
    tail = _shared([parts[head:][::-1] for parts in long])
    return [name if len(name) <= width else _cut(name.split("."), head, tail, width, mark) for name in names]


def shortened(text: str, width: int, mark: str = UNICODE.ellipsis, *, front: int = 0) -> str:
    """A text of at most `width` characters, cut in its middle where it is longer, behind at least `front` characters."""
    if len(text) <= width:
        return text
    behind = max(0, min(width // 2, width - front - len(mark)))
    return text[: width - behind - len(mark)] + mark + text[len(text) - behind :]


def _shared(lists: Sequence[Sequence[str]]) -> int:
    """How many entries all lists begin with alike; of a single list none is shared."""
    if len(lists) < 2:
        return 0
    return sum(1 for _ in takewhile(lambda entries: len(set(entries)) == 1, zip(*lists, strict=False)))


def _cut(parts: Sequence[str], head: int, tail: int, width: int, mark: str) -> str:
    """A name without its shared beginning, and without shared parts at its end, or cut behind what tells it apart."""
    before = mark if head else ""
    whole = before + ".".join(parts[head:])
    apart = before + ".".join(parts[head : len(parts) - tail])
    for dropped in range(tail + 1):
        kept = before + ".".join(parts[head : len(parts) - dropped])
        text = kept + (mark if dropped else "")
        if width // 2 < len(text) <= width:
            return text
    if len(apart) + 2 < width:
        return shortened(whole, width, mark, front=len(apart) + 1)
    return shortened(".".join(parts[head : len(parts) - tail]) or ".".join(parts), width, mark)
