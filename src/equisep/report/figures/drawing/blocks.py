"""The panels of a figure as blocks of rows, with what they show and how large they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from equisep.figures.evidence import Evidence
from equisep.figures.figure import Panel
from equisep.report.figures.drawing.curves import lines_of
from equisep.report.figures.drawing.legends import beside_width, is_long
from equisep.report.figures.drawing.lines import Line
from equisep.report.figures.drawing.points import ACROSS, Cloud, clouds_of, rows_of
from equisep.report.figures.drawing.seeds import counts_of, told_seeds
from equisep.report.figures.drawing.strokes import Scale
from equisep.report.figures.drawing.ticks import slant

SHAPE = 0.76  # height over width of a panel
_WIDTHS = {1: 5.4, 2: 3.9, 3: 3.0, 4: 2.6}  # inches of a panel, by columns
_NARROWEST = 2.0
_BESIDE = 4  # panels of a column that was left alone, beside one another
_CLOUD = 1.75  # inches of a site's samples


@dataclass(frozen=True, slots=True)
class Block:
    """Neighboring panels that stand in one grid, or a single panel of points; with what they show.

    `scale` is the order that lines of its panels are in, if they are in one.
    """

    panels: tuple[Panel, ...]
    lines: tuple[tuple[Line, ...], ...]
    columns: int
    clouds: tuple[Cloud, ...] = ()
    scale: Scale | None = None

    @property
    def of_points(self) -> bool:
        """Whether samples are drawn."""
        return self.panels[0].kind == "points"

    @property
    def rows(self) -> int:
        """How many rows of panels."""
        return math.ceil(len(self.panels) / self.columns)

    @property
    def shares_legend(self) -> bool:
        """Whether one legend serves all its panels."""
        shown = [lines for lines in self.lines if any(line.drawn for line in lines)]
        if self.scale is not None:  # a name that all lines of other panels have says nothing
            names = {line.label for lines in shown for line in lines if line.named}
            beside = any(line.named for lines in shown for line in lines if any(one.order is not None for one in lines))
            return beside or len(names) > 1
        return len(shown) > 1 and bool(_shared_keys(shown))


def panel_width(columns: int) -> float:
    """Inches of a panel, by how many stand in a row."""
    return _WIDTHS.get(columns, _NARROWEST)


def blocks_of(evidence: Evidence, columns: int) -> tuple[list[Block], list[str]]:
    """Rows of panels with the same legend are one grid, so that one legend serves them; a panel of points is a row.

    Rows and columns of which nothing was run are left out where something else was: their titles come second.
    """
    rows: list[list[tuple[Panel, tuple[Line, ...]]]] = []
    headings = Counter(panel.heading for panel in evidence.figure.panels if panel.heading)
    across = {heading: _across(count, columns) for heading, count in headings.items()}
    for panel in evidence.figure.panels:
        last = rows[-1][0][0] if rows else None
        full = last is not None and len(rows[-1]) == across.get(last.heading, columns)
        apart = last is None or full or "points" in (panel.kind, last.kind)
        if apart or (last is not None and last.heading != panel.heading):
            rows.append([])
        rows[-1].append((panel, lines_of(evidence, panel)))
    groups = [[row for _, row in group] for _, group in groupby(enumerate(rows), _likeness)]
    whole = [_block(evidence, group, across.get(group[0][0][0].heading, columns)) for group in groups]
    if not any(_was_run(block, index) for block in whole for index in range(len(block.panels))):
        return whole, []
    kept = [part for part in map(_run_part, whole) if part is not None]
    shown = {panel.name for block in kept for panel in block.panels}
    counts = {count for block in kept for lines in block.lines for count in counts_of(lines)}
    told = [_with_counts(block) if len(counts) > 1 else block for block in kept]
    return told, _absent_titles(evidence.figure.panels, shown)


def sizes_of(blocks: Sequence[Block], columns: int) -> tuple[float, list[float]]:
    """The width of the figure and the heights of its blocks, in inches."""
    each = panel_width(columns)
    beside = [0.0] * columns
    for block in blocks:
        for index, lines in enumerate(block.lines):
            if not block.shares_legend and is_long(lines, each):
                at = index % block.columns
                beside[at] = max(beside[at], beside_width(lines))
    width = columns * each + sum(beside) + (0.6 if any(block.scale for block in blocks) else 0.0)
    if any(block.of_points for block in blocks):
        width = max(width, ACROSS * _CLOUD)
    return width, [_height(block, each, width) for block in blocks]


def _height(block: Block, each: float, width: float) -> float:
    if block.of_points:
        return rows_of(block.clouds) * width / ACROSS * 0.92 + 0.6 if block.clouds else 1.2
    named = 0.25 if block.panels[0].heading else 0.0
    names = 0.25 if any(panel.kind == "categories" for panel in block.panels) else 0.0
    # every row has names of its own, which no other shares
    aslant = max((slant(line.names, each) for lines in block.lines for line in lines if line.names), default=0.0)
    rows = block.rows * (each * SHAPE + 0.25 + aslant)
    return rows + named + names + (0.25 if block.shares_legend else 0.0)


def _across(count: int, columns: int) -> int:
    """How many of the panels below one heading stand in a row: fewer where the last of them would stand alone in its own."""
    if count % columns != 1:
        return columns
    return next((fewer for fewer in range(columns - 1, 1, -1) if count % fewer == 0), columns)


def _block(evidence: Evidence, rows: Sequence[Sequence[tuple[Panel, tuple[Line, ...]]]], columns: int) -> Block:
    held = [pair for row in rows for pair in row]
    panels, lines = tuple(panel for panel, _ in held), tuple(own for _, own in held)
    clouds = clouds_of(evidence, panels[0]) if panels[0].kind == "points" else ()
    if keys := _shared_keys([own for own in lines if any(line.drawn for line in own)]):
        lines = tuple(tuple(_placed(line, keys) for line in own) for own in lines)
    return Block(panels, lines, columns, clouds, _scale(panels, lines))


def _placed(line: Line, keys: Sequence[str]) -> Line:
    """A line as the legend numbers it; what was not run may not be in it."""
    return replace(line, index=keys.index(line.label)) if line.label in keys else line


def _scale(panels: Sequence[Panel], lines: Sequence[Sequence[Line]]) -> Scale | None:
    """The order that the lines of panels are in, from the least to the greatest of them."""
    every = [line.order for own in lines for line in own if line.order is not None]
    orders = [order for order in every if math.isfinite(order)]
    words = next((panel.ordered for panel in panels if panel.ordered), "")
    return Scale(min(orders), max(orders), words, endless=len(orders) < len(every)) if orders else None


def _was_run(block: Block, index: int) -> bool:
    return bool(block.clouds) if block.of_points else any(line.run for line in block.lines[index])


def _run_part(block: Block) -> Block | None:
    """The rows and columns of a block of which anything was run."""
    if block.of_points:
        return block if block.clouds else None
    run = [index for index in range(len(block.panels)) if _was_run(block, index)]
    rows = {index // block.columns for index in run}
    columns = sorted({index % block.columns for index in run})
    kept = [
        index
        for index in range(len(block.panels))
        if index // block.columns in rows and index % block.columns in columns
    ]
    if not kept:
        return None
    narrower = len(columns) if len(block.panels) > block.columns else block.columns
    fits = len(kept) % narrower == 0 or narrower == block.columns
    across = min(len(kept), _BESIDE) if narrower == 1 else narrower  # a single column lies down
    panels, lines = tuple(block.panels[index] for index in kept), tuple(block.lines[index] for index in kept)
    return Block(panels, lines, across if fits else block.columns, block.clouds, _scale(panels, lines))


def _with_counts(block: Block) -> Block:
    """A block that says of how many seeds its networks are: above them all, above a panel, or beside its lines."""
    panels, lines = told_seeds(block.panels, block.lines, shared=block.shares_legend)
    return replace(block, panels=panels, lines=lines)


def _likeness(at: tuple[int, Sequence[tuple[Panel, Sequence[Line]]]]) -> tuple[str, object]:
    """What rows of one grid have in common: every panel of points stands alone; rows of unlike legends keep these inside."""
    index, row = at
    first = row[0][0]
    if first.kind == "points":
        return "points", index
    if first.ordered or first.heading:
        return "ordered", (first.ordered, first.heading)
    keys = {_keys_of(lines) for _, lines in row if any(line.drawn for line in lines)}
    return ("lines", keys.pop()) if len(keys) == 1 else ("lines", None)


def _shared_keys(panels: Sequence[Sequence[Line]]) -> tuple[str, ...]:
    """The labels of one legend for all these panels, where the longest has those of the others; nothing where it has not."""
    keys = [_keys_of(lines) for lines in panels]
    known = [own for own in keys if own is not None]
    longest = max(known, key=len, default=())
    inside = len(known) == len(keys) and all(line.label in longest for lines in panels for line in lines)
    return longest if inside else ()


def _absent_titles(panels: Sequence[Panel], shown: Collection[str]) -> list[str]:
    """What was left out, in words: a heading all of whose panels are, else their titles."""
    seen = {panel.heading for panel in panels if panel.name in shown}
    absent = [panel for panel in panels if panel.name not in shown]
    words = [panel.title or panel.name if panel.heading in seen else panel.heading for panel in absent]
    return list(dict.fromkeys(words))


def _keys_of(lines: Sequence[Line]) -> tuple[str, ...] | None:
    """The labels of a legend that panels can share; None where there is one line, or words of its own panel in it."""
    labels = tuple(line.label for line in lines if line.named)
    return labels if len(labels) > 1 and not any(line.words for line in lines) else None
