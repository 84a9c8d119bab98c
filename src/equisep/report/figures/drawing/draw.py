"""The papers' figures, drawn from evidence alone in the papers' arrangement (matplotlib)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend

from equisep.errors import InputError
from equisep.figures.evidence import Evidence
from equisep.figures.figure import Panel
from equisep.report.figures.drawing.axes import GREY, SMALL, Drawn, draw_panel, panel_title, plain, tick_y
from equisep.report.figures.drawing.curves import Line, lines_of
from equisep.report.figures.drawing.labels import footer_lines, scale_words
from equisep.report.figures.drawing.legends import (
    absent_legend,
    beside_width,
    is_long,
    law_legend,
    legend_below,
    legend_beside,
    legend_inside,
)
from equisep.report.figures.drawing.points import ACROSS, Cloud, clouds_of, draw_points, rows_of
from equisep.report.legends import place_legend
from equisep.report.plots import LINE_COLORS
from equisep.results.records import NO_LAW_R

ENDINGS = (".pdf", ".png", ".svg")
_WIDTHS = {1: 5.4, 2: 3.9, 3: 3.0, 4: 2.6}  # inches a panel, by columns
_NARROWEST = 2.3
_SHAPE = 0.76  # height over width of a panel
_MOST = 0.7  # of the height of axes that a legend inside them may take
_CLOUD = 1.75  # inches of a site's samples
_WARNING = LINE_COLORS[1]


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighboring panels that stand in one grid, or a single panel of points; with what they show."""

    panels: tuple[Panel, ...]
    lines: tuple[tuple[Line, ...], ...]
    clouds: tuple[Cloud, ...] = ()

    @property
    def of_points(self) -> bool:
        return self.panels[0].kind == "points"


def draw_figure(evidence: Evidence) -> Figure:
    """Draw what was run of a figure: its panels in the paper's rows, means over seeds with bands, laws, the paper's numbers.

    What was not run says so. The axes contain every point, band and fitted line. No state of matplotlib is touched.
    """
    in_grids = sum(panel.kind != "points" for panel in evidence.figure.panels)
    columns = max(1, min(evidence.figure.columns, in_grids))
    blocks = list(_blocks(evidence, columns))
    width, heights = _sizes(blocks, columns)
    title = textwrap.wrap(f"{evidence.figure.id}   {evidence.figure.title}", int(width * 12.5))
    footer = _footer(evidence, [line for block in blocks for lines in block.lines for line in lines], width)
    warned = evidence.scale == "smoke"
    height = sum(heights) + 0.22 * len(title) + 0.15 * len(footer) + (0.3 if warned else 0.1)
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(plain("\n".join(title)) if len(title) == 1 else "\n".join(map(plain, title)), fontsize=SMALL + 3)
    figure.supxlabel("\n".join(map(plain, footer)), fontsize=SMALL - 0.5, color=GREY)
    body = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
    if warned:
        body.suptitle(scale_words(evidence), fontsize=SMALL + 2, color=_WARNING, weight="bold")
    parts = body.subfigures(max(1, len(blocks)), 1, height_ratios=heights or None, squeeze=False)[:, 0]
    placed: list[tuple[Drawn, Legend]] = []
    drawn: list[Drawn] = []
    for part, block in zip(parts, blocks, strict=False):
        if block.of_points:
            draw_points(part, block.panels[0], block.clouds)
        else:
            own = _draw_grid(part, block, columns)
            drawn += own
            placed += _draw_words(part, own, shared=_shares_legend(block), wide=_WIDTHS.get(columns, _NARROWEST))
    _finish(figure, drawn, placed)
    return figure


def save_drawn(evidence: Evidence, path: str | Path, *, dpi: int = 200) -> Path:
    """Draw a figure and write it as PNG, SVG or PDF, as the ending of `path` says; the same evidence gives the same bytes.

    The folder is made where it is missing.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"A figure cannot be saved as `{target.name}`: its ending names no known format. Use one of {', '.join(ENDINGS)}."
        )
    figure = draw_figure(evidence)
    target.parent.mkdir(parents=True, exist_ok=True)
    # dates and random names would make every file differ from the last
    metadata = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}[ending]
    with mpl.rc_context({"svg.hashsalt": evidence.figure.id}):
        figure.savefig(target, dpi=dpi, metadata=metadata)
    return target


def _blocks(evidence: Evidence, columns: int) -> Iterator[_Block]:
    """Rows of panels with the same legend are one grid, so that one legend serves them; a panel of points is a row."""
    rows: list[list[tuple[Panel, tuple[Line, ...]]]] = []
    for panel in evidence.figure.panels:
        if panel.kind == "points" or not rows or len(rows[-1]) == columns or rows[-1][0][0].kind == "points":
            rows.append([])
        rows[-1].append((panel, lines_of(evidence, panel)))
    for (first, _), group in groupby(enumerate(rows), key=lambda at: _likeness(*at)):
        held = [pair for _, row in group for pair in row]
        clouds = clouds_of(evidence, held[0][0]) if first == "points" else ()
        yield _Block(tuple(panel for panel, _ in held), tuple(lines for _, lines in held), clouds)


def _likeness(index: int, row: Sequence[tuple[Panel, Sequence[Line]]]) -> tuple[str, object]:
    """What rows of one grid have in common: every panel of points stands alone; rows of unlike legends keep these inside."""
    if row[0][0].kind == "points":
        return "points", index
    keys = {_keys_of(lines) for _, lines in row if any(line.drawn for line in lines)}
    return ("lines", keys.pop()) if len(keys) == 1 else ("lines", None)


def _keys_of(lines: Sequence[Line]) -> tuple[str, ...] | None:
    """The labels of a legend that panels can share; None where there is one line, or words of its own panel in it."""
    labels = tuple(line.label for line in lines if line.label)
    return labels if len(labels) > 1 and not any(line.words for line in lines) else None


def _shares_legend(block: _Block) -> bool:
    keys = [_keys_of(lines) for lines in block.lines if any(line.drawn for line in lines)]
    return len(keys) > 1 and len(set(keys)) == 1 and keys[0] is not None


def _sizes(blocks: Sequence[_Block], columns: int) -> tuple[float, list[float]]:
    """The width of the figure and the heights of its blocks, in inches."""
    each = _WIDTHS.get(columns, _NARROWEST)
    apart = [block for block in blocks if not _shares_legend(block)]
    beside = [0.0] * columns
    for block in apart:
        for index, lines in enumerate(block.lines):
            if is_long(lines, each):
                beside[index % columns] = max(beside[index % columns], beside_width(lines))
    width = columns * each + sum(beside)
    if any(block.of_points for block in blocks):
        width = max(width, ACROSS * _CLOUD)
    heights = []
    for block in blocks:
        if block.of_points:
            heights.append(rows_of(block.clouds) * width / ACROSS * 0.92 + 0.6 if block.clouds else 1.2)
        else:
            heights.append(math.ceil(len(block.panels) / columns) * (each * _SHAPE + 0.25))
    return width, heights


def _draw_grid(part: SubFigure, block: _Block, columns: int) -> list[Drawn]:
    rows = math.ceil(len(block.panels) / columns)
    wide = _WIDTHS.get(columns, _NARROWEST)
    drawn = []
    for index, (panel, lines) in enumerate(zip(block.panels, block.lines, strict=True)):
        axes = part.add_subplot(rows, columns, index + 1)
        drawn.append(draw_panel(axes, panel, lines, title=panel_title(panel, lines), size=(wide, wide * _SHAPE - 0.2)))
    _share_labels(drawn, columns)
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
        return [(one, words) for one in filled if (words := absent_legend(one)) is not None]
    for one in filled:
        if is_long(one.lines, wide):
            legend_beside(one)
        elif len(one.keys) > 1:
            placed.append((one, legend_inside(one, wide)))
        elif (words := law_legend(one)) is not None:
            placed.append((one, words))
    return placed


def _finish(figure: Figure, drawn: Sequence[Drawn], placed: Sequence[tuple[Drawn, Legend]]) -> None:
    """Ticks and room for words, once it is known how large axes and words are."""
    for one in drawn:
        tick_y(one)
    figure.draw_without_rendering()
    for one, words in placed:
        place_legend(one.axes, words, grow="either", most=_MOST)
        tick_y(one)


def _footer(evidence: Evidence, lines: Sequence[Line], width: float) -> list[str]:
    """The lines below the figure, no wider than it."""
    said = footer_lines(evidence, seeds_words="; ".join(_signs_words([line for line in lines if line.drawn])))
    return [part for line in said for part in textwrap.wrap(line, int(width * 19))]


def _signs_words(shown: Sequence[Line]) -> list[str]:
    """What bands, dashes and marks stand for, where there are any."""
    words = []
    if any(len(values) > 1 for line in shown for values in line.samples):
        words.append("means over seeds, geometric on logarithmic axes, with bands from the least to the greatest seed")
        if any(line.words for line in shown):
            words.append("r and ρ are means over seeds")
    if any(line.law_verdict == "no law" for line in shown):
        words.append(f"dashed: no law (r > {NO_LAW_R:g} or ρ ≥ 1)".replace("-", "−"))
    if any(value <= 0 for line in shown if line.lawful for values in line.samples for value in values):
        words.append("▾ on the floor: 0 in some seed")
    return words
