"""The record of one answer in words: a sentence, the numbers behind it, how sure it is, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from equisep.display import brief

Confidence = Literal["sure", "likely", "cannot be said"]


@brief
@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about a profile (or a history).

    code        what it says, stable: `too-deep`, `memorizing`, …
    text        the sentence, with its numbers
    confidence  `sure`: measured, and beyond the noise of these samples; `likely`: measured, and within reach of that noise, or
                read by a rule of thumb; `cannot be said`: these data do not tell, and `next` says what would
    rule        the file of `equisep.findings` that holds the rule, with its limits and the experiment that tested it
    weight      what it changes: the sentence of the greatest weight stands first
    numbers     the numbers in the sentence, unrounded, by name
    next        what to do about it, as a command or call; None where nothing is to be done, or the rule was not supported
    site        the layer that it is about, by name
    classes     the classes that it is about
    """

    code: str
    text: str
    confidence: Confidence
    rule: str
    weight: int
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    next: str | None = None
    site: str | None = None
    classes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.text
