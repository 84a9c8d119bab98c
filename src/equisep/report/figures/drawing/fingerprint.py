"""Fingerprint: what a drawing shows in a few letters, so that a stored picture can be told from one that is out of date."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from equisep.figures.evidence import Evidence
from equisep.figures.judge import Verdict
from equisep.report.figures.drawing.blocks import blocks_of
from equisep.report.figures.drawing.labels import footer_lines, verdict_words

_DIGITS = 4  # that a drawing shows at most; the last bits of a mean differ from machine to machine


def fingerprint(evidence: Evidence, verdicts: Sequence[Verdict]) -> str:
    """The same for the same panels, lines, samples and words, whichever code draws them."""
    blocks, left_out = blocks_of(evidence, max(1, evidence.figure.columns))
    shown = {
        "title": evidence.figure.title,
        "below": [evidence.figure.source, verdict_words(verdicts), evidence.figure.fit],
        "footer": footer_lines(evidence, signs="", left_out=left_out),
        "blocks": blocks,
    }
    return hashlib.sha256(json.dumps(_plain(shown), sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """JSON types, with numbers as a drawing shows them."""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}" if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value
