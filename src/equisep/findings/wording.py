"""Findings as text: D explained where it first appears, sentences numbered and wrapped, what to do next below each."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from equisep.results.finding import Finding

# what D is, and of which samples; profiles of earlier versions do not say of which
MEANINGS = {
    whole: f" (D: spread within classes over the distance between them{of_which}.)"
    for whole, of_which in (
        (True, "; exact for the samples read"),
        (False, "; of the samples read, a sample of more: corrected D estimates that of all"),
        (None, ""),
    )
}
WIDTH, LEAST_WIDTH = 80, 30
MOST_DIGITS = 6
NEXT = "→"
_JOINED = "\N{NO-BREAK SPACE}"  # no place to break a line
_CONFIDENCE = {"sure": "", "likely": " [likely]", "cannot be said": " [cannot be said]"}


def spelled(findings: Iterable[Finding], *, whole: bool | None = None) -> tuple[Finding, ...]:
    """The findings, D explained behind the first sentence that has it: that of all samples there are (`whole`), or of some."""
    done = list(findings)
    first = next((rank for rank, finding in enumerate(done) if re.search(r"\bD\b", finding.text)), None)
    if first is not None:
        done[first] = replace(done[first], text=done[first].text + MEANINGS[whole])
    return tuple(done)


def without_meaning(text: str) -> str:
    """A sentence without the explanation of D behind it."""
    for meaning in MEANINGS.values():
        text = text.removesuffix(meaning)
    return text


def whole_percent(share: float) -> str:
    """A share in whole percent, with more digits where these would make it none or all.

    >>> [whole_percent(share) for share in (0.404, 0.9985, 0.0009, 1.0)]
    ['40', '99.85', '0.09', '100']
    """
    points = 100 * share
    off = min((points, points - 100), key=abs)
    if not 0 < abs(off) <= 0.5:
        return f"{points:.0f}"
    digits = min(1 - math.floor(math.log10(abs(off))), MOST_DIGITS)  # two that count
    return f"{points:.{digits}f}".rstrip("0").rstrip(".")


def percent_span(low: float, high: float) -> str:
    """`2 to 5 %`, or `about 2 %` where both ends read alike."""
    ends = whole_percent(low), whole_percent(high)
    return f"about {ends[0]} %" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} %"


def explained(findings: Sequence[Finding], *, width: int = WIDTH) -> str:
    """One numbered paragraph per finding, what to do next in a line (or more) of its own below it."""
    blocks = []
    for count, finding in enumerate(findings, start=1):
        mark = f"{count}. "
        blocks.append(wrapped(finding.text + _CONFIDENCE[finding.confidence], width=width, mark=mark))
        if finding.next is not None:
            blocks.append(wrapped(finding.next, width=width, mark=f"{' ' * len(mark)}{NEXT} "))
    return "\n".join(blocks)


def wrapped(text: str, *, width: int, mark: str = "") -> str:
    """A paragraph behind its mark, broken between words, never between a number and its percent sign.

    >>> wrapped("nearest class means get 79.3 % of them", width=31, mark="1. ")
    '1. nearest class means get\\n   79.3 % of them'
    """
    return textwrap.fill(
        text.replace(" %", f"{_JOINED}%"),
        width=max(width, LEAST_WIDTH),
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_JOINED, " ")
