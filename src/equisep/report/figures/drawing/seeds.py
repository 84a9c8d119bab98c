"""Of how many seeds networks are, said where the panels of a figure differ in it: a dot of one seed is not a mean of ten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from equisep.figures.figure import Panel
from equisep.report.figures.drawing.axes import panel_title
from equisep.report.figures.drawing.labels import count_words, span_words
from equisep.report.figures.drawing.lines import Line


def counts_of(lines: Sequence[Line]) -> set[int]:
    """The numbers of seeds of some lines; none of what is solved or was not run."""
    return {count for line in lines if line.drawn for count in line.seeds if count}


def told_seeds(
    panels: Sequence[Panel], lines: Sequence[tuple[Line, ...]], *, shared: bool
) -> tuple[tuple[Panel, ...], tuple[tuple[Line, ...], ...]]:
    """Panels and their lines with the numbers: in the heading where all have one, in a title, or in the names of lines.

    `shared`: whether one legend serves all these panels, whose names have to stay the same.
    """
    every = [line for own in lines for line in own]
    whole = counts_of(every)
    if len(whole) == 1 and panels[0].heading:
        heading = f"{panels[0].heading}, {count_words(*whole)}"
        return tuple(replace(panel, heading=heading) for panel in panels), tuple(lines)
    by_label = {line.label: counts_of([other for other in every if other.label == line.label]) for line in every}
    by_group = {
        line.pair[1]: counts_of([other for other in every if other.pair and other.pair[1] == line.pair[1]])
        for line in every
        if line.pair
    }
    told = [
        (_titled(panel, own), own)
        if len(counts_of(own)) == 1 and not shared
        else (panel, tuple(_paired(_named(line, by_label[line.label]), by_group) for line in own))
        for panel, own in zip(panels, lines, strict=True)
    ]
    return tuple(panel for panel, _ in told), tuple(own for _, own in told)


def _titled(panel: Panel, lines: Sequence[Line]) -> Panel:
    title, words = panel_title(panel, lines), count_words(*counts_of(lines))
    return replace(panel, title=f"{title}, {words}" if title else words)


def _paired(line: Line, counts: Mapping[str, set[int]]) -> Line:
    """A line whose group, for which its marker stands, has its number, or the least and the greatest."""
    if line.pair is None or not (found := counts[line.pair[1]]):
        return line
    return replace(line, pair=(line.pair[0], f"{line.pair[1]}, {span_words(found)}"))


def _named(line: Line, counts: set[int]) -> Line:
    """A line whose legend, or below which each category, has its number; not one of which panels differ that share a legend."""
    if line.names and line.seeds:
        names = (f"{name}, n = {count}" if count else name for name, count in zip(line.names, line.seeds, strict=True))
        return replace(line, names=tuple(names))
    return replace(line, label=f"{line.label}, {count_words(*counts)}") if line.named and len(counts) == 1 else line
