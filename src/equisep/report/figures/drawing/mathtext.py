"""Declared words as matplotlib should set them: formulas where they are formulas, everything else as it stands."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache

from matplotlib.mathtext import MathTextParser

from equisep.report.formatting import one_line

# `E_W`, `n_A`, `R_ε` and `R*`: one letter with an index or a star
_INDEXED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-zλ])_([A-Za-z0-9ε]+)(?![A-Za-z0-9_])")
_STARRED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z])\*(?=[\s:,.;)]|$)")
_FORMULA = re.compile(r"\$[^$]*\$")
_SHORTEST = 10  # letters of a row


def typeset(text: str) -> str:
    """Words for matplotlib: what stands between dollar signs is a formula if it is one, and letters with an index are set.

    Dollar signs that begin no formula stay dollar signs.
    """
    plain = one_line(text)
    if "$" in plain:
        return plain if _is_formula(plain) else plain.replace("$", r"\$")
    return _STARRED.sub(r"$\1^*$", _INDEXED.sub(r"$\1_{\2}$", plain))


def wrapped(text: str, letters: float) -> str:
    """Long words on several lines, about equally long ones; formulas stay whole."""
    if any(" " in formula for formula in _FORMULA.findall(text)):
        return text
    most = max(_SHORTEST, int(letters))
    rows = _rows(text, most)
    even = next((own for least in range(_SHORTEST, most) if len(own := _rows(text, least)) == len(rows)), rows)
    return "\n".join(even)


def _rows(text: str, letters: int) -> list[str]:
    return textwrap.wrap(text, letters, break_long_words=False, break_on_hyphens=False)


@lru_cache(maxsize=512)
def _is_formula(text: str) -> bool:
    if text.count("$") % 2:
        return False
    try:
        MathTextParser("path").parse(text)
    except ValueError:
        return False
    return True
