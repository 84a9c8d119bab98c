"""The words of figures where a terminal has ASCII alone: signs are spelled out before lines are broken, so that none is lost."""

from __future__ import annotations

from typing import Any

from equisep.report.formatting import ASCII, Glyphs

_SPELLED = {
    "ρ": "rho", "≤": "<=", "≥": ">=", "≠": "!=", "±": "+/-", "−": "-", "–": "-", "×": "x", "·": "|", "…": "...",
    "ε": "epsilon", "“": '"', "”": '"', "’": "'", "⁺": "+", "²": "2", "→": "->",
}  # fmt: skip


def spelled(content: Any, glyphs: Glyphs) -> Any:
    """Text, or every text in lists and dictionaries, with the signs that these glyphs lack spelled out."""
    if glyphs is not ASCII:
        return content
    if isinstance(content, str):
        return "".join(_SPELLED.get(char, char) for char in content)
    if isinstance(content, dict):
        return {name: spelled(value, glyphs) for name, value in content.items()}
    return [spelled(value, glyphs) for value in content] if isinstance(content, list) else content
