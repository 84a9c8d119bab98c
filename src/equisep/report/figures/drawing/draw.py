"""The papers' figures, drawn from evidence alone in the papers' arrangement (matplotlib)."""

from __future__ import annotations

import hashlib
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend

from equisep.errors import InputError
from equisep.figures.evidence import Evidence
from equisep.figures.figure import Panel
from equisep.figures.judge import Verdict, judge
from equisep.report.figures.drawing.axes import SMALL, Drawn, draw_panel, is_log, name_levels, panel_title, tick_y
from equisep.report.figures.drawing.blocks import SHAPE, Block, blocks_of, panel_width, sizes_of
from equisep.report.figures.drawing.labels import footer_lines, scale_words, sign_words, typeset, verdict_words, wrapped
from equisep.report.figures.drawing.legends import (
    absent_legend,
    is_long,
    law_legend,
    legend_below,
    legend_beside,
    legend_inside,
    sign_key,
)
from equisep.report.figures.drawing.lines import Line, drawn_fit
from equisep.report.figures.drawing.points import draw_points
from equisep.report.figures.drawing.strokes import GREY, has_band
from equisep.report.legends import place_legend
from equisep.report.plots import LINE_COLORS

ENDINGS = (".pdf", ".png", ".svg")
_MOST = 0.7  # of the height of axes that a legend inside them may take
_ROUNDS = 3  # in which panels make room for words and then share their heights again
_WARNING = LINE_COLORS[1]
_OWN = 0.5  # of a column, for the labels of panels that do not fill their row
_SINGLE = ("scatter", "categories")  # panels with a dot for every seed
_DIGITS = 4  # that a drawing shows at most; the last bits of a mean differ from machine to machine


def draw_figure(evidence: Evidence, verdicts: Sequence[Verdict] | None = None) -> Figure:
    """Draw what was run of a figure: its panels in the paper's rows, means over seeds with bands, laws, the paper's numbers.

    Panels of a row that show one quantity have one scale. The line of a law has the style of its verdict; networks that do
    not fit their training data are hollow. What was not run says so, or is left out where the rest of its row or column was
    not run either. The axes contain every point, band and fitted line. No state of matplotlib is touched.
    """
    judged = judge(evidence) if verdicts is None else verdicts
    in_grids = sum(panel.kind != "points" for panel in evidence.figure.panels)
    columns = max(1, min(evidence.figure.columns, in_grids))
    blocks, left_out = blocks_of(evidence, columns)
    columns = max((block.columns for block in blocks if not block.of_points), default=1)
    width, heights = sizes_of(blocks, columns)
    title = textwrap.wrap(evidence.figure.title, int(width * 11))
    footer = _footer(evidence, blocks, left_out, width)
    height = sum(heights) + 0.22 * len(title) + 0.15 * len(footer) + 0.6
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle("\n".join(map(typeset, title)), fontsize=SMALL + 4)
    figure.supxlabel("\n".join(map(typeset, footer)), fontsize=SMALL - 0.5, color=GREY)
    body = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
    warning = scale_words(evidence)
    below = [evidence.figure.source, warning or verdict_words(judged)]
    body.suptitle(
        "\n".join(textwrap.wrap(" · ".join(part for part in below if part), int(width * 16))),
        fontsize=SMALL + 1, color=_WARNING if warning else GREY, weight="bold" if warning else "normal",
    )  # fmt: skip
    parts = body.subfigures(max(1, len(blocks)), 1, height_ratios=heights or None, squeeze=False)[:, 0]
    placed: list[tuple[Drawn, Legend]] = []
    rows: list[list[Drawn]] = []
    for part, block in zip(parts, blocks, strict=False):
        if block.of_points:
            draw_points(part, block.panels[0], block.clouds)
        else:
            own = _draw_grid(part, block, panel_width(columns))
            rows += [own[first : first + block.columns] for first in range(0, len(own), block.columns)]
            placed += _draw_words(part, own, shared=block.shares_legend, wide=panel_width(columns))
    sign_key(body, [one for row in rows for one in row], fit=drawn_fit(evidence.figure.fit), wide=width)
    _finish(figure, rows, placed, same_heights=evidence.figure.same_heights)
    return figure


def save_drawn(
    evidence: Evidence, path: str | Path, *, verdicts: Sequence[Verdict] | None = None, dpi: int = 200
) -> Path:
    """Draw a figure and write it as PNG, SVG or PDF, as the ending of `path` says; the same evidence gives the same bytes.

    The folder is made where it is missing.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"A figure cannot be saved as `{target.name}`: its ending names no known format. Use one of {', '.join(ENDINGS)}."
        )
    figure = draw_figure(evidence, verdicts)
    target.parent.mkdir(parents=True, exist_ok=True)
    # dates and random names would make every file differ from the last
    metadata = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}[ending]
    with mpl.rc_context({"svg.hashsalt": evidence.figure.id}):
        figure.savefig(target, dpi=dpi, metadata=metadata)
    return target


def _draw_grid(part: SubFigure, block: Block, wide: float) -> list[Drawn]:
    drawn = []
    columns = min(block.columns, len(block.panels))
    held = part
    if columns < block.columns:  # panels that do not fill their row stand in its middle, below their heading
        middle = columns + _OWN
        beside = (block.columns - middle) / 2
        held = part.subfigures(1, 3, width_ratios=(beside, middle, beside), squeeze=False)[0, 1]
    for index, (panel, lines) in enumerate(zip(block.panels, block.lines, strict=True)):
        axes = held.add_subplot(block.rows, columns, index + 1)
        size = (wide, wide * SHAPE - 0.2)
        drawn.append(draw_panel(axes, panel, lines, title=panel_title(panel, lines), size=size, scale=block.scale))
    _share_labels(drawn, columns)
    if block.panels[0].heading:
        part.suptitle(typeset(block.panels[0].heading), fontsize=SMALL + 2.5)
    if block.scale is not None:
        colors = ScalarMappable(block.scale.norm, block.scale.colors)
        bar = held.colorbar(colors, ax=[one.axes for one in drawn], aspect=40, pad=0.01, fraction=0.03)
        bar.set_label(typeset(block.scale.words), fontsize=SMALL + 0.5)
        ticks = block.scale.ticks(line.order for lines in block.lines for line in lines if line.order is not None)
        bar.set_ticks(ticks, labels=list(map(block.scale.name, ticks)))
        bar.minorticks_off()
        bar.ax.tick_params(labelsize=SMALL)
    return drawn


def _share_labels(drawn: Sequence[Drawn], columns: int) -> None:
    """A label stands once where the next axes, to the left or below, have the same one."""
    across = [one.axes.get_xlabel() for one in drawn]
    up = [one.axes.get_ylabel() for one in drawn]
    for index, one in enumerate(drawn):
        if index % columns and up[index] == up[index - 1]:
            one.axes.set_ylabel("")
        if index + columns < len(drawn) and across[index] == across[index + columns]:
            one.axes.set_xlabel("")


def _draw_words(part: SubFigure, drawn: Sequence[Drawn], *, shared: bool, wide: float) -> list[tuple[Drawn, Legend]]:
    """Legends and corner words; those that stand inside axes are returned, since they still need room."""
    filled = [one for one in drawn if one.filled]
    placed: list[tuple[Drawn, Legend]] = []
    if shared:
        legend_below(part, filled)
        return [(one, words) for one in filled if (words := absent_legend(one, wide)) is not None]
    for one in filled:
        if is_long(one.lines, wide):
            legend_beside(one)
        elif len(one.keys) > 1:
            placed.append((one, legend_inside(one, wide)))
        elif (words := law_legend(one)) is not None:
            placed.append((one, words))
    return placed


def _finish(
    figure: Figure, rows: Sequence[Sequence[Drawn]], placed: Sequence[tuple[Drawn, Legend]], *, same_heights: bool
) -> None:
    """Shared heights, ticks, and room for words, once it is known how large axes and words are."""
    every = [one for row in rows for one in row]
    _share(rows, same_heights=same_heights)
    for one in every:
        name_levels(one)
        tick_y(one)
    for row in rows:
        for left, right in pairwise(row):
            if left.filled and right.filled and left.height == right.height:
                right.axes.tick_params(labelleft=False)
    figure.draw_without_rendering()
    for _ in range(_ROUNDS):
        for one, words in placed:
            place_legend(one.axes, words, grow="either", most=_MOST)
        if not _share(rows, same_heights=same_heights):
            break
    for one in every:
        tick_y(one)


def _share(rows: Sequence[Sequence[Drawn]], *, same_heights: bool) -> bool:
    """Give panels that are to be compared one scale: both axes of scatters, heights of a row, or of all rows where
    these are compared; whether that changed any.
    """
    heights = _share_heights([[one for row in rows for one in row]] if same_heights else rows)
    scatters = [one for row in rows for one in row if one.filled and one.panel.kind == "scatter" and one.panel.heading]
    changed = False
    for compared in {one.compared for one in scatters}:
        same = [one.axes for one in scatters if one.compared == compared]
        for limits, set_limits in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
            own = [getattr(axes, limits)() for axes in same]
            whole = (min(low for low, _ in own), max(high for _, high in own))
            changed |= any(each != whole for each in own)
            for axes in same:
                getattr(axes, set_limits)(*whole)
    return heights or changed


def _share_heights(groups: Sequence[Sequence[Drawn]]) -> bool:
    """Give the panels of a group that show one quantity one scale; whether that changed any."""
    changed = False
    for group in groups:
        for kind in {one.height for one in group if one.filled}:
            same = [one for one in group if one.filled and one.height == kind]
            limits = [one.axes.get_ylim() for one in same]
            whole = (min(low for low, _ in limits), max(high for _, high in limits))
            changed |= any(own != whole for own in limits)
            for one in same:
                one.axes.set_ylim(*whole)
    return changed


def _footer(evidence: Evidence, blocks: Sequence[Block], left_out: Sequence[str], width: float) -> list[str]:
    """The lines below the figure, no wider than it."""
    pairs = [pair for block in blocks for pair in zip(block.panels, block.lines, strict=True) if not block.of_points]
    shown = [(panel, own) for panel, own in pairs if any(line.drawn for line in own)]
    curves = [(panel, own) for panel, own in shown if panel.kind not in _SINGLE]
    signs = sign_words(
        evidence,
        means=bool(curves),
        single=any(panel.kind in _SINGLE for panel, _ in shown),
        bars=_bar_words(shown),
        bands=any(
            len(values) > 1
            for panel, own in curves
            for line in own
            if has_band(panel, line, own)
            for values in line.samples
        ),
        log=any(is_log(panel, own) for panel, own in curves),
        zeros=any(
            value <= 0
            for panel, own in shown
            if is_log(panel, own)
            for line in own
            for values in line.samples
            for value in values
        ),
    )
    said = footer_lines(evidence, signs=signs, left_out=left_out)
    return [part for line in said for part in wrapped(line, width * 19).split("\n")]


def _bar_words(shown: Sequence[tuple[Panel, Sequence[Line]]]) -> str:
    """At which mean the bars of categories stand; empty without any."""
    kinds = {
        is_log(panel, own) and not line.has_zeros for panel, own in shown if panel.kind == "categories" for line in own
    }
    if len(kinds) > 1:
        return "mean, geometric where the axis is logarithmic"
    return "" if not kinds else "geometric mean" if kinds.pop() else "mean"


def fingerprint(evidence: Evidence, verdicts: Sequence[Verdict]) -> str:
    """The same for the same panels, lines, samples and words, whichever code draws them."""
    blocks, left_out = blocks_of(evidence, max(1, evidence.figure.columns))
    shown = {
        "title": evidence.figure.title,
        "below": [evidence.figure.source, verdict_words(verdicts), evidence.figure.fit],
        "footer": footer_lines(evidence, signs="", left_out=left_out),
        "same heights": evidence.figure.same_heights,
        "blocks": blocks,
    }
    return hashlib.sha256(json.dumps(_plain(shown), sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """JSON types, with numbers as a drawing shows them."""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}" if math.isfinite(value) else str(value)
    if is_dataclass(value):  # without what has its default: a field that is added later changes nothing
        own = {entry.name: (getattr(value, entry.name), entry.default) for entry in fields(value)}
        return {name: _plain(held) for name, (held, default) in own.items() if held != default}
    if isinstance(value, Mapping):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value
