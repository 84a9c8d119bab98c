"""Legends of a figure: of lines inside, beside or below their axes, and one key of all signs below the figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import SubFigure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from equisep.report.figures.drawing.axes import SMALL, Drawn
from equisep.report.figures.drawing.labels import typeset
from equisep.report.figures.drawing.lines import Line
from equisep.report.figures.drawing.strokes import BEHIND, GREY, UPRIGHT_STYLES, has_marker, key_words, pair_keys
from equisep.report.formatting import percent
from equisep.report.plots import LAW_STYLES
from equisep.results.records import FUZZY_R, LAW_R, NO_LAW_R

_LETTER = 0.056  # inches of a letter of that size
_HANDLE = 0.35  # inches of the sample of a line
_MARGIN = 0.9  # inches of a panel that are not its axes, and room to the right
_INSIDE = 6  # rows of a legend that fit into axes
_BESIDE = 32  # letters in a row of a legend beside axes
_STACKED = 14  # rows above each other beside axes
_ACROSS = 5  # keys beside each other below a grid
_LOOK: dict[str, Any] = {"fontsize": SMALL, "labelspacing": 0.35, "handlelength": 1.6}
# a grid line must not run through words
_INSIDE_LOOK: dict[str, Any] = {
    **_LOOK,
    "facecolor": "white",
    "edgecolor": "none",
    "framealpha": 0.85,
    "borderpad": 0.2,
}
_LAW_WORDS = {
    "law": f"law (r ≤ {LAW_R:g})",
    "fuzzy law": f"fuzzy law (r ≤ {FUZZY_R:g})",
    "between": "between law and no law",
    "no law": f"no law (r > {NO_LAW_R:g} or ρ ≥ 1)",
    "not even fuzzy": f"not even a fuzzy law (r > {FUZZY_R:g} or ρ ≥ 1)",
    "undetermined": "too few layers to say",
}


def sign_key(part: SubFigure, drawn: Sequence[Drawn], *, fit: float, wide: float) -> None:
    """One key below all panels: line styles of laws, hollow points, the paper's crosses, vertical lines."""
    handles = list(_signs(drawn, fit))
    if handles:
        letters = max(len(str(handle.get_label())) for handle in handles)
        columns = max(1, min(len(handles), int(wide / (letters * _LETTER + 0.7))))
        part.legend(
            handles=handles, loc="outside lower center", ncols=columns, frameon=False, **{**_LOOK, "handlelength": 2.8}
        )


def _signs(drawn: Sequence[Drawn], fit: float) -> Iterator[Artist]:
    lines = [line for one in drawn for line in one.lines if line.drawn]
    fitted = {stretch.verdict for line in lines for stretch in line.laws if line.law(stretch) is not None and line.laws}
    by_style: dict[Any, list[str]] = {}
    for verdict, words in _LAW_WORDS.items():
        if verdict in fitted:
            by_style.setdefault(LAW_STYLES[verdict], []).append(words.replace("-", "−"))
    for style, own in by_style.items():
        yield Line2D([], [], color="0.2", linestyle=style, label=" / ".join(own))
    dot: dict[str, Any] = {"color": "0.2", "linestyle": "none"}
    if any(line.is_hollow and has_marker(one.panel, line) for one in drawn for line in one.lines if line.drawn):
        words = f"network does not fit (training accuracy below {percent(fit)} %)"
        yield Line2D([], [], marker="o", markerfacecolor="white", label=words, **dot)
    if any(line.behind for line in lines):
        yield Line2D([], [], color=BEHIND, label="all classes together")
    if any(line.marks for one in drawn if one.filled for line in one.lines):
        yield Line2D([], [], color=GREY, marker="x", linestyle="none", markersize=5, label="paper")
    known = dict.fromkeys(word for one in drawn for _, word in one.panel.upright)
    shown = {word for line in lines for _, word in line.upright}
    for index, word in enumerate(known):
        if word in shown:
            style = UPRIGHT_STYLES[index % len(UPRIGHT_STYLES)]
            yield Line2D([], [], color="0.2", linestyle=style, linewidth=1.0, label=typeset(word))


def is_long(lines: Sequence[Line], wide: float) -> bool:
    """Whether the legend of these lines has too many rows to stand inside axes of a panel so many inches wide."""
    return sum(len(_rows(words, _letters(wide))) for words in _said(lines)) > _INSIDE


def beside_width(lines: Sequence[Line]) -> float:
    """The inches that a legend beside its axes takes."""
    rows = [row for words in _said(lines) for row in _rows(words, _BESIDE)]
    return _columns(rows) * (_HANDLE + 0.15 + _LETTER * max(map(len, rows)))


def legend_inside(drawn: Drawn, wide: float) -> Legend:
    """A legend inside the axes of a panel so many inches wide; where it covers nothing is still to be found."""
    return drawn.axes.legend(
        **_wrapped(_keys(drawn), _letters(wide)), loc="upper right", borderaxespad=0.3, **_INSIDE_LOOK
    )


def law_legend(drawn: Drawn) -> Legend | None:
    """The r and ρ of a panel's only line, and below them in gray what the paper prints; None where neither exists."""
    line = next((line for line in drawn.lines if line.named), drawn.lines[0])
    return _words(drawn, [*((row, "black") for row in line.words.split("; ")), (line.paper, GREY)])


def absent_legend(drawn: Drawn, wide: float) -> Legend | None:
    """Which lines of a panel so many inches wide are not there, where the legend that several panels share cannot say it."""
    labels: dict[str, list[str]] = {}
    for line in drawn.lines:
        if line.named and not line.drawn:
            labels.setdefault(line.absent, []).append(line.label)
    said = (f"{own[0] if len(own) == 1 else f'{len(own)} lines'}: {why}" for why, own in labels.items())
    return _words(drawn, [(row, GREY) for words in said for row in _rows(words, _letters(wide))])


def _words(drawn: Drawn, rows: Sequence[tuple[str, str]]) -> Legend | None:
    """A legend of words alone, at the right of one another, in their colors."""
    shown = [(typeset(words), color) for words, color in rows if words]
    if not shown:
        return None
    nothing = [Line2D([], [], linestyle="none") for _ in shown]
    look: dict[str, Any] = {
        **_INSIDE_LOOK,
        "handlelength": 0,
        "handletextpad": 0,
        "markerfirst": False,
        "borderaxespad": 0.3,
    }
    return drawn.axes.legend(nothing, [words for words, _ in shown], labelcolor=[color for _, color in shown], **look)


def legend_beside(drawn: Drawn) -> None:
    """A legend to the right of the axes."""
    keys = _keys(drawn)
    rows = [row for key in keys for row in _rows(str(key.get_label()), _BESIDE)]
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    look = {**_LOOK, "frameon": False}
    drawn.axes.legend(**_wrapped(keys, _BESIDE), ncols=_columns(rows), columnspacing=1.0, **beside, **look)


def legend_below(part: SubFigure, filled: Sequence[Drawn]) -> None:
    """One legend for panels with the same lines; a line that none of them has is not run."""
    keys: dict[str, list[tuple[bool, Line2D]]] = {}
    every = [line for one in filled for line in one.lines]
    paired = {line.label for line in every if line.pair and line.drawn}
    for one in filled:
        for key, line in zip_longest(one.keys, [line for line in one.lines if line.named]):
            absent = line is not None and not line.drawn
            if line is None or line.label not in paired:
                keys.setdefault("" if line is None else line.label, []).append((absent, key))
    # of the keys of one line, one that was drawn, and joined rather than dots
    best = {label: min(found, key=lambda pair: (pair[0], not _is_joined(pair[1])))[1] for label, found in keys.items()}
    told = _told_apart([(key, all(absent for absent, _ in keys[label])) for label, key in best.items()])
    handles = [*pair_keys(every), *told]
    columns = math.ceil(len(handles) / math.ceil(len(handles) / _ACROSS))
    labels = [typeset(str(key.get_label())) for key in handles]
    part.legend(
        handles=handles, labels=labels, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False
    )


def _told_apart(keys: Sequence[tuple[Line2D, bool]]) -> list[Line2D]:
    """One key for lines that look the same, as of training and of test data in panels of their own; `True`: not drawn."""
    alike: dict[tuple[str, ...], list[Line2D]] = {}
    for key, absent in keys:
        look = (str(key.get_color()), str(key.get_linestyle()), str(key.get_marker()))
        alike.setdefault((*look, str(key.get_label())) if absent else look, []).append(key)
    for first, *others in alike.values():
        first.set_label(" / ".join(str(key.get_label()) for key in (first, *others)))
    return [first for first, *_ in alike.values()]


def _keys(drawn: Drawn) -> list[Line2D]:
    """The keys of a panel's own legend: one for each line, or for each color and marker of lines that have a pair."""
    named = zip(drawn.keys, (line for line in drawn.lines if line.named), strict=True)
    return [*pair_keys(drawn.lines), *(key for key, line in named if not (line.pair and line.drawn))]


def _said(lines: Sequence[Line]) -> list[str]:
    pairs = [str(key.get_label()) for key in pair_keys(lines)]
    return [*pairs, *(key_words(line) for line in lines if line.named and not (line.pair and line.drawn))]


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
    labels = ["\n".join(map(typeset, _rows(str(key.get_label()), letters))) for key in keys]
    return {"handles": list(keys), "labels": labels}


def _columns(rows: Sequence[str]) -> int:
    return math.ceil(len(rows) / _STACKED)


def _is_joined(key: Line2D) -> bool:
    return key.get_linestyle() != "None"
