"""One pair of axes of a figure: its scales, labels, ticks, levels, and the lines in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from equisep.figures.course import PREFIX
from equisep.figures.figure import Panel
from equisep.figures.quantities import Quantity, Query, entry_of
from equisep.report.figures.drawing.labels import typeset, wrapped, x_words, y_words
from equisep.report.figures.drawing.lines import Line, panel_quantities
from equisep.report.figures.drawing.strokes import GREY, Scale, draw_categories, draw_stroke, draw_zeros
from equisep.report.figures.drawing.ticks import (
    AXES,
    LETTER,
    correlation_ticks,
    log_ticks,
    log_words,
    name_ticks,
    plain_ticks,
    tick_x,
)

SMALL = 7.0  # points: the size of legends and ticks
_READ = ("sites", "epochs", "sweep")  # panels whose x are those that were read
_PALE = "0.6"
_NEAREST = 1e-7  # to −1, that a correlation is drawn
_BETWEEN = (0.75, 0.5, 0.25)  # of the way from the left to the right end
_BESIDE = 10  # letters in a row of words beside axes
_SPOTS = 40  # along a stretch between two points, that words should not cover


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn in a panel: its axes, its lines, whether y is logarithmic, and the keys of its legend.

    `near_minus_one`: whether y is a correlation, drawn by the logarithm of its distance from −1. `size`: of the panel, in inches.
    """

    panel: Panel
    axes: Axes
    lines: tuple[Line, ...]
    log_y: bool
    keys: tuple[Line2D, ...] = ()
    near_minus_one: bool = False
    size: tuple[float, float] = (1.0, 1.0)

    @property
    def filled(self) -> bool:
        """Whether anything is there to see."""
        return any(line.drawn for line in self.lines)

    @property
    def compared(self) -> tuple[str, ...]:
        """What scatters have in common that are compared: they stand below one heading and say the same of both axes."""
        return (self.panel.heading, self.panel.x_label or self.panel.x, self.panel.y_label or self.panel.y)

    @property
    def height(self) -> tuple[object, ...]:
        """What panels must have in common for their heights to be compared."""
        names = {Query.of(text).name.removesuffix("_test") for text in panel_quantities(self.panel)} - {"accuracy"}
        scales = (self.log_y, self.near_minus_one)
        return (*scales, *sorted(names), *sorted({line.data for line in self.lines if line.drawn}))


def draw_panel(
    axes: Axes,
    panel: Panel,
    lines: Sequence[Line],
    *,
    title: str,
    size: tuple[float, float],
    scale: Scale | None = None,
) -> Drawn:
    """Draw the lines of one panel of about `size` inches; a panel without any says so in its middle.

    `scale` is that of the colors where lines are in an order.
    """
    wide, high = size
    axes.set_title(wrapped(typeset(title), wide * 14), fontsize=SMALL + 1.5)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    if not any(line.drawn for line in lines):
        return _empty(axes, panel, lines)
    log_y, near = is_log(panel, lines), is_near_minus_one(panel, lines)
    _label_axes(axes, panel, wide, high, near=near)
    axes.grid(visible=True, which="major", alpha=0.2, linewidth=0.6)
    positions = _positions(panel, lines)
    _scale_x(axes, panel, [at for x, at in positions.items() if math.isfinite(x)])
    if log_y:
        axes.set_yscale("log")
    elif near:
        axes.set_yscale("function", functions=(_log_distance, _from_log_distance))
    axes.margins(0.04 if panel.kind != "scatter" else 0.08, 0.08)
    for level, _ in _levels(panel, log_y=log_y):
        axes.axhline(level, color=_PALE, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1.5)
    if panel.cut is not None:
        axes.axvline(panel.cut, color=_PALE, linewidth=0.9, zorder=1.5)
    keys: list[Line2D | None]
    if panel.kind == "categories":
        keys = [None for _ in lines]
        for line in lines:
            draw_categories(axes, line, log_y=log_y)
        axes.margins(0.5 / max(1, len(lines[0].x)), 0.1)
        name_ticks(axes, lines[0].names, wide)
    else:
        keys = [draw_stroke(axes, panel, line, lines, log_y=log_y, positions=positions, scale=scale) for line in lines]
        if panel.kind in _READ:
            _reach_all(axes, lines, positions)
        tick_x(axes, panel, positions, wide)
    if log_y:
        draw_zeros(axes, lines, positions=positions, scale=scale)
    handles = [key for key, line in zip(keys, lines, strict=True) if key is not None and line.named]
    lost = next((line.lost for line in lines if line.drawn and line.lost), "")
    if lost:
        axes.text(0.97, 0.6, lost, transform=axes.transAxes, ha="right", va="center", color=GREY, fontsize=SMALL + 0.5)
    return Drawn(panel, axes, tuple(lines), log_y, tuple(handles), near, size)


def tick_y(drawn: Drawn) -> None:
    """Plain numbers up the axis, shares in percent, chosen for the limits that it has in the end."""
    axes = drawn.axes
    if not drawn.filled:
        return
    low, high = axes.get_ylim()
    shares = all(entry.style == "share" for entry in _entries(drawn.panel))
    if drawn.log_y:
        words = log_words(log_ticks(low, high, most=9))
        axes.yaxis.set_major_locator(FixedLocator(list(words)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words.get(value, "")))
        return
    if drawn.near_minus_one:
        axes.yaxis.set_major_locator(FixedLocator(correlation_ticks(low, high)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
        return
    values = [value for line in drawn.lines for sample in line.samples for value in sample]
    axes.yaxis.set_major_locator(FixedLocator(plain_ticks(values, low, high, shares=shares)))
    if shares:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))


def panel_title(panel: Panel, lines: Sequence[Line]) -> str:
    """The panel's own title, or what its only line shows; the axes say the rest."""
    named = [line for line in lines if line.named]
    return panel.title or (named[0].label if len(named) == 1 else "")


def _reach_all(axes: Axes, lines: Sequence[Line], positions: Mapping[float, float]) -> None:
    """All x that were read, also where nothing exists: a network is as deep, and was trained as long, as it was."""
    reach = [positions[at] for line in lines for at in line.x if not math.isnan(at)]
    axes.update_datalim([(at, 0.0) for at in reach], updatey=False)
    axes.autoscale_view(scaley=False)


def _label_axes(axes: Axes, panel: Panel, wide: float, high: float, *, near: bool) -> None:
    grain = Query.of(panel_quantities(panel)[0]).ways.get("grain", "") if panel.kind == "sites" else ""
    across = panel.x_label or ("" if panel.kind == "categories" else x_words(panel.kind, panel.x, grain))
    up = (panel.y_label or y_words(panel_quantities(panel))) + (", spaced by log(1 + r)" if near else "")
    axes.set_xlabel(wrapped(typeset(across), wide * 16), fontsize=SMALL + 0.5)
    axes.set_ylabel(wrapped(typeset(up), high * 14), fontsize=SMALL + 0.5)


def name_levels(drawn: Drawn) -> None:
    """Write what the horizontal lines of a panel stand for, once its limits are known."""
    levels = _levels(drawn.panel, log_y=drawn.log_y) if drawn.filled else []
    for level, words in levels:
        if words:
            _name_level(drawn.axes, level, words, [other for other, _ in levels if other != level], drawn.size)


def _levels(panel: Panel, *, log_y: bool) -> list[tuple[float, str]]:
    return [(level, words) for level, words in panel.levels if level > 0 or not log_y]


def _name_level(axes: Axes, level: float, words: str, others: Sequence[float], size: tuple[float, float]) -> None:
    """Write what a horizontal line stands for above or below it where no line runs; beside the axes where one runs everywhere."""
    wide, high = size
    across, up = LETTER * len(words) / (wide * AXES), 0.13 / (high * AXES)  # of the axes, that the words take
    at, *crossed = (_share_up(axes, height) for height in (level, *others))
    spots = _drawn_spots(axes)
    ends, between = (1 - across, 0.0), [share * (1 - across) for share in _BETWEEN]
    places = [(x, above) for starts in (ends, between) for above in ("bottom", "top") for x in starts]

    def covered(place: tuple[float, str]) -> bool:
        x, y = place[0], at if place[1] == "bottom" else at - up
        inside = (spots[:, 0] >= x) & (spots[:, 0] <= x + across) & (spots[:, 1] >= y) & (spots[:, 1] <= y + up)
        return bool(inside.any()) or any(y <= other <= y + up for other in crossed) or y < 0 or y + up > 1

    free = [place for place in places if not covered(place)]
    if not free:
        beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        rows = "\n".join(wrapped(part, _BESIDE) for part in typeset(words).replace(": ", ":\n").split("\n"))
        axes.annotate(rows, (1.0, level), xytext=(3, 0), **beside, va="center", fontsize=SMALL, color=GREY)
        return
    x, above = free[0]
    right = x == ends[0]
    axes.annotate(
        typeset(words), (1.0 if right else x, level), xycoords=("axes fraction", "data"),
        xytext=(0 if right else 3, 2 if above == "bottom" else -2), textcoords="offset points",
        ha="right" if right else "left", va=above, fontsize=SMALL, color=GREY, zorder=1.7,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
    )  # fmt: skip


def _share_up(axes: Axes, height: float) -> float:
    """Where a height lies, from 0 at the bottom of the axes to 1 at the top."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((axes.get_xlim()[0], height)))[1])


def _drawn_spots(axes: Axes) -> np.ndarray:
    """Spots along all lines that are drawn, in shares of the axes."""
    to_axes = axes.transData + axes.transAxes.inverted()
    spots = [np.empty((0, 2))]
    for line in axes.get_lines():
        points = np.asarray(line.get_xydata(), dtype=float)
        points = points[np.isfinite(points).all(axis=1)]
        if line.get_transform() == axes.transData and len(points):  # levels and marks on the floor have their own
            shares = to_axes.transform(points)
            steps = np.linspace(0, 1, _SPOTS, endpoint=False)[:, None]
            between = [a + steps * (b - a) for a, b in pairwise(shares)] if line.get_linestyle() != "None" else []
            spots += [*between, shares]
    return np.concatenate(spots)


def _empty(axes: Axes, panel: Panel, lines: Sequence[Line]) -> Drawn:
    words = next((line.absent for line in lines if line.run), "not run")
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=SMALL + 2)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("0.85")
    return Drawn(panel, axes, tuple(lines), log_y=False)


def is_log(panel: Panel, lines: Sequence[Line]) -> bool:
    """Whether the heights of a panel are drawn on a logarithmic axis."""
    values = [value for line in lines for sample in line.samples for value in sample]
    return (
        bool(values)
        and panel.log_y
        and all(entry.log for entry in _entries(panel))
        and min(values) >= 0
        and max(values) > 0
    )


def is_near_minus_one(panel: Panel, lines: Sequence[Line]) -> bool:
    """Whether a panel of correlations is drawn by the logarithm of 1 + r: laws differ in how near r is to −1."""
    values = [value for line in lines for sample in line.samples for value in sample]
    correlations = all(entry.style == "correlation" for entry in _entries(panel))
    return bool(values) and panel.log_y and correlations and min(values) > -1


def _log_distance(r: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.maximum(1 + np.asarray(r, dtype=float), _NEAREST)))


def _from_log_distance(distance: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(np.asarray(distance, dtype=float)) - 1)


def _entries(panel: Panel) -> list[Quantity]:
    """Of the course of a training, those whose course it is."""
    return [entry_of(Query.of(text).name.removeprefix(PREFIX)) for text in panel_quantities(panel)]


def _positions(panel: Panel, lines: Sequence[Line]) -> dict[float, float]:
    """Where each x stands: at itself, and ∞ one step beyond the greatest number."""
    given = [*(at for line in lines for at in line.x), *(at for line in lines for at, _ in line.marks)]
    values = sorted({x for x in given if not math.isnan(x)})
    beyond = _next([x for x in values if math.isfinite(x)], log=panel.log_x)
    return {x: x if math.isfinite(x) else beyond for x in values}


def _next(values: Sequence[float], *, log: bool) -> float:
    """One step, as large as the mean one, beyond the greatest of values in order."""
    if not values:
        return 10.0 if log else 2.0
    low, top, steps = values[0], values[-1], max(1, len(values) - 1)
    if log:
        return top * max(2.0, (top / low) ** (1 / steps)) if low > 0 else top * 10
    return top + ((top - low) / steps or 1.0)


def _scale_x(axes: Axes, panel: Panel, values: Sequence[float]) -> None:
    if not panel.log_x or not any(value > 0 for value in values):
        return
    if min(values) > 0:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=min(value for value in values if value > 0), linscale=0.4)
