"""Legends of a figure: inside axes where they are short, beside them where long, below a grid that shares one."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from matplotlib.figure import SubFigure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from equisep.report.figures.drawing.axes import GREY, SMALL, Drawn, key_words, plain
from equisep.report.figures.drawing.curves import Line

_LETTER = 0.056  # inches of a letter of that size
_HANDLE = 0.35  # inches of the sample of a line
_MARGIN = 0.9  # inches of a panel that are not its axes, and room to the right
_INSIDE = 6  # rows of a legend that fit into axes
_BESIDE = 32  # letters in a row of a legend beside axes
_STACKED = 14  # rows above each other beside axes
_ACROSS = 5  # keys beside each other below a grid
_LOOK: dict[str, Any] = {"fontsize": SMALL, "frameon": False, "labelspacing": 0.35, "handlelength": 1.6}


def is_long(lines: Sequence[Line], wide: float) -> bool:
    """Whether the legend of these lines has too many rows to stand inside axes of a panel so many inches wide."""
    return sum(len(_rows(words, _letters(wide))) for words in _said(lines)) > _INSIDE


def beside_width(lines: Sequence[Line]) -> float:
    """The inches that a legend beside its axes takes."""
    rows = [row for words in _said(lines) for row in _rows(words, _BESIDE)]
    return _columns(rows) * (_HANDLE + 0.15 + _LETTER * max(map(len, rows)))


def legend_inside(drawn: Drawn, wide: float) -> Legend:
    """A legend inside the axes of a panel so many inches wide; where it covers nothing is still to be found."""
    return drawn.axes.legend(**_wrapped(drawn.keys, _letters(wide)), loc="upper right", borderaxespad=0.3, **_LOOK)


def law_legend(drawn: Drawn) -> Legend | None:
    """The r and ρ of a panel's only line, and below them in gray what the paper prints; None where neither exists."""
    line = drawn.lines[0]
    return _words(drawn, [(line.words, "black"), (line.paper, GREY)])


def absent_legend(drawn: Drawn) -> Legend | None:
    """Which lines of a panel are not there, where the legend that several panels share cannot say it."""
    absent = [line for line in drawn.lines if line.label and not line.drawn]
    if len(absent) > 1:
        return _words(drawn, [(f"{len(absent)} lines not run", GREY)])
    return _words(drawn, [(f"{line.label}: {'no values' if line.run else 'not run'}", GREY) for line in absent])


def _words(drawn: Drawn, rows: Sequence[tuple[str, str]]) -> Legend | None:
    """A legend of words alone, at the right of one another, in their colors."""
    shown = [(plain(words), color) for words, color in rows if words]
    if not shown:
        return None
    nothing = [Line2D([], [], linestyle="none") for _ in shown]
    look: dict[str, Any] = {**_LOOK, "handlelength": 0, "handletextpad": 0, "markerfirst": False, "borderaxespad": 0.3}
    return drawn.axes.legend(nothing, [words for words, _ in shown], labelcolor=[color for _, color in shown], **look)


def legend_beside(drawn: Drawn) -> None:
    """A legend to the right of the axes."""
    rows = [row for key in drawn.keys for row in _rows(str(key.get_label()), _BESIDE)]
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    drawn.axes.legend(**_wrapped(drawn.keys, _BESIDE), ncols=_columns(rows), columnspacing=1.0, **beside, **_LOOK)


def legend_below(part: SubFigure, filled: Sequence[Drawn]) -> None:
    """One legend for panels with the same lines; a line that none of them has is not run."""
    keys: dict[str, list[tuple[bool, Line2D]]] = {}
    for one in filled:
        for key, line in zip_longest(one.keys, [line for line in one.lines if line.label]):
            absent = line is not None and not line.drawn
            keys.setdefault("" if line is None else line.label, []).append((absent, key))
    # of the keys of one line, one that was drawn, and joined rather than dots; the paper's mark comes last
    best = {label: min(found, key=lambda pair: (pair[0], not _is_joined(pair[1])))[1] for label, found in keys.items()}
    handles = [best[label] for label in sorted(best, key=lambda label: not label)]
    columns = math.ceil(len(handles) / math.ceil(len(handles) / _ACROSS))
    labels = [plain(str(key.get_label())) for key in handles]
    part.legend(
        handles=handles, labels=labels, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False
    )


def _said(lines: Sequence[Line]) -> list[str]:
    return [key_words(line) for line in lines if line.label]


def _letters(wide: float) -> int:
    return int((wide - _MARGIN) / _LETTER)


def _rows(words: str, letters: int) -> list[str]:
    """Words in rows of so many letters; a law that no longer fits behind its label begins a row."""
    if len(words) <= letters:
        return [words]
    label, mark, law = words.rpartition(": r = ")
    if not mark:
        return textwrap.wrap(words, letters)
    own, bracket, paper = f"r = {law}".partition(" (")
    rows = [f"{own}{bracket}{paper}"] if len(own) + len(paper) + 2 <= letters else [own, f"{bracket}{paper}".strip()]
    return [*textwrap.wrap(f"{label}:", letters), *(row for row in rows if row)]


def _wrapped(keys: Sequence[Line2D], letters: int) -> dict[str, Any]:
    labels = ["\n".join(_rows(str(key.get_label()), letters)) for key in keys]
    return {"handles": list(keys), "labels": [label.replace("$", r"\$") for label in labels]}


def _columns(rows: Sequence[str]) -> int:
    return math.ceil(len(rows) / _STACKED)


def _is_joined(key: Line2D) -> bool:
    return key.get_linestyle() != "None"
