"""Lines on axes: points with their bands over seeds, laws in the style of their verdict, the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.lines import Line2D

from equisep.figures.figure import Panel
from equisep.report.figures.drawing.lines import Line
from equisep.report.plots import CLASS_COLORS, LAW_STYLES, LINE_COLORS

GREY = "0.45"
UPRIGHT_STYLES: tuple[Any, ...] = ((0, (4, 2)), (0, (1, 1.5)))
BEHIND = "0.75"
_MARKERS = "os^Dv<p>"  # with room inside, so that hollow ones are seen
_HOLLOW: Mapping[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 0.8}
_MOST_MARKERS = 60  # points a line may have and still show each
_FEW = 25  # points of a line whose markers can be large
_CROWDED = 10  # lines whose bands would hide each other
_WIDE = 8  # times the least number, from which on colors go by logarithms
_STEP = 0.2  # of the way from the least to the greatest number, that ∞ stands beyond it
_APART = 0.09  # of the bar of colors, between two ticks
_BRIGHTEST = 0.92  # of viridis: its end is too pale for a line


@dataclass(frozen=True, slots=True)
class Scale:
    """The order that lines of several panels are in: its least and greatest number, and what they count.

    endless     whether a line is of ∞, which stands one step beyond the greatest number.
    """

    low: float
    high: float
    words: str
    endless: bool = False

    @property
    def colors(self) -> Colormap:
        """From dark to bright, told apart with any color vision and in gray."""
        return LinearSegmentedColormap.from_list("order", colormaps["viridis"](np.linspace(0, _BRIGHTEST, 64)))

    @property
    def norm(self) -> Normalize:
        """From the number to the color: by its logarithm where the first of many numbers would else be one color."""
        top = self.number(math.inf) if self.endless else self.high
        return LogNorm(self.low, top) if self._is_log else Normalize(self.low, max(top, self.low + 1))

    def number(self, order: float) -> float:
        """The number that an order is drawn at: itself, and of ∞ one beyond all others."""
        if math.isfinite(order):
            return order
        low, high = self.low, max(self.high, self.low + 1)
        return high * (high / low) ** _STEP if self._is_log else high + (high - low) * _STEP

    def ticks(self, orders: Iterable[float]) -> list[float]:
        """The numbers that have room beside the bar of colors: the ends, and between them those far enough apart."""
        first, *rest = sorted(self.number(order) for order in set(orders))
        kept = [first]
        for number in rest:
            if self.norm(number) - self.norm(kept[-1]) >= _APART:
                kept.append(number)
        if rest and kept[-1] != rest[-1]:
            kept[max(1, len(kept) - 1) :] = [rest[-1]]
        return kept

    def name(self, number: float) -> str:
        """What stands beside a tick."""
        return "∞" if self.endless and number > self.high else f"{number:g}"

    @property
    def _is_log(self) -> bool:
        return self.low > 0 and self.high >= _WIDE * self.low


def line_color(line: Line, lines: Sequence[Line], scale: Scale | None = None) -> Any:
    """By its order where lines are in one, or the first of its pair; else by its index.

    Okabe & Ito's colors, beyond seven lines Tol's, beyond ten viridis.
    """
    if line.behind:
        return BEHIND
    if line.order is not None and scale is not None:
        return scale.colors(scale.norm(scale.number(line.order)))
    if scale is not None:  # a line beside those in order
        return "black"
    if line.pair is not None:
        words = _pair_words(lines, 0)
        return _color_of(words.index(line.pair[0]), len(words))
    return _color_of(line.index, 1 + max(other.index for other in lines))


def _color_of(index: int, count: int) -> Any:
    if count <= len(LINE_COLORS):
        return LINE_COLORS[index]
    if count <= len(CLASS_COLORS):
        return CLASS_COLORS[index]
    return colormaps["viridis"](_BRIGHTEST * index / max(1, count - 1))


def _pair_words(lines: Iterable[Line], side: int) -> list[str]:
    """What the colors (0) or the markers (1) of lines stand for that have a pair, in their order."""
    return list(dict.fromkeys(line.pair[side] for line in lines if line.pair))


def pair_keys(lines: Sequence[Line]) -> list[Line2D]:
    """The keys of lines that have a pair: one for each color that is drawn, then one for each marker."""
    drawn = [line for line in lines if line.pair and line.drawn]
    by_color, by_marker = ({line.pair[side]: line for line in drawn if line.pair} for side in (0, 1))
    look: dict[str, Any] = {"color": "0.2", "linestyle": "none", "markersize": 4.5}
    return [
        *(Line2D([], [], color=line_color(by_color[word], lines), linewidth=5, label=word)
          for word in _pair_words(drawn, 0)),
        *(Line2D([], [], marker=_marker_of(by_marker[word], lines), label=word, **look) for word in _pair_words(drawn, 1)),
    ]  # fmt: skip


def has_band(panel: Panel, line: Line, lines: Sequence[Line]) -> bool:
    """Whether the seeds of a line are shown as a band: not among many lines, nor of layers, of which there are many elsewhere."""
    of_layers = line.order is not None and panel.kind != "array"
    return len(lines) <= _CROWDED and not line.behind and not of_layers


def has_marker(panel: Panel, line: Line) -> bool:
    """Whether the points of a line are shown: not where there are many, nor of what stands behind the others."""
    return panel.kind == "categories" or (not line.behind and sum(map(bool, line.samples)) <= _MOST_MARKERS)


def draw_stroke(
    axes: Axes,
    panel: Panel,
    line: Line,
    lines: Sequence[Line],
    *,
    log_y: bool,
    positions: Mapping[float, float],
    scale: Scale | None,
) -> Line2D:
    """One line with its band, its laws and what the paper prints of it; returns the key that stands for it in a legend."""
    color = line_color(line, lines, scale)
    _draw_marks(axes, line, log_y=log_y, positions=positions)  # also where we have no number
    if not line.drawn:
        return Line2D([], [], color="0.75", linestyle=":", linewidth=1.2, label=key_words(line))
    x = np.array([positions.get(at, math.nan) for at in line.x])
    if has_band(panel, line, lines):
        _draw_band(axes, line, x, log_y=log_y, color=color)
    key = _draw_points(axes, panel, line, lines, x, log_y=log_y, color=color)
    if log_y:
        styles = [_draw_law(axes, line, index, color) for index in range(len(line.laws))]
        fitted = next((style for style in reversed(styles) if style is not None), None)
        if fitted is not None:
            key["linestyle"] = fitted
    for at, words in line.upright:
        style = UPRIGHT_STYLES[[known for _, known in panel.upright].index(words) % len(UPRIGHT_STYLES)]
        axes.axvline(at, color=color, linewidth=1.0, linestyle=style, zorder=1.5)
    return Line2D([], [], label=key_words(line), **key)


def draw_categories(axes: Axes, line: Line, *, log_y: bool) -> None:
    """Every seed as a point above the name of its series, and a bar at their mean."""
    color = LINE_COLORS[line.index % len(LINE_COLORS)]
    middle = line.middle(log=log_y)
    for at, values in enumerate(line.samples):
        kept = [value for value in values if value > 0 or not log_y]
        face = "white" if line.hollow and line.hollow[at] else color
        look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "markerfacecolor": face}
        axes.plot([float(at)] * len(kept), kept, color=color, alpha=0.75, zorder=3, **look)
        if not kept and line.run:
            axes.text(
                at,
                0.02,
                line.absent.replace(" ", "\n"),
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="bottom",
                color=GREY,
                fontsize=7,
            )
        if len(kept) > 1:
            axes.plot([at - 0.2, at + 0.2], [middle[at]] * 2, color=color, linewidth=1.8, zorder=2)
    _draw_marks(axes, line, log_y=log_y, positions={})


def key_words(line: Line) -> str:
    """What a legend says of a line: its label, its law, the paper's numbers; or that it was not run."""
    if not line.drawn:
        return f"{_shown(line.label)}: {' '.join(line.absent.split())}"
    paper = f" ({line.paper})" if line.paper else ""
    return f"{_shown(line.label)}: {line.words}{paper}" if line.words else _shown(line.label)


def _draw_points(
    axes: Axes, panel: Panel, line: Line, lines: Sequence[Line], x: np.ndarray, *, log_y: bool, color: Any
) -> dict[str, Any]:
    """The means over seeds, joined where no law is drawn through them; hollow where networks do not fit. Returns the style."""
    middle = np.array(line.middle(log=log_y))
    fitted = log_y and any(line.law(stretch) is not None for stretch in line.laws)
    joined = panel.joined and panel.kind != "scatter" and not fitted
    style: dict[str, Any] = {
        "color": color,
        "linewidth": _line_width(panel, line, lines),
        "markersize": 3.8 if len(x) <= _FEW and not panel.ordered else 2.6,
        "linestyle": "-" if joined else "none",
        "marker": _marker(panel, line, lines) if has_marker(panel, line) else "",
        "zorder": 1.8 if line.behind else 3,
        "clip_on": panel.kind != "scatter",  # rows share heights: a dot may stand on the rim
    }
    infinite = np.isinf(np.array(line.x, dtype=float))
    if joined and infinite.any():  # nothing lies between the greatest number and ∞
        axes.plot(x[~infinite], middle[~infinite], color=color, linewidth=style["linewidth"], zorder=3)
        style["linestyle"] = "none"
    hollow = np.array(line.hollow, dtype=bool) if line.hollow else np.zeros(len(x), dtype=bool)
    if hollow.all() and len(hollow):
        style |= _HOLLOW
    axes.plot(x, middle, **style)
    if hollow.any() and not hollow.all():
        over: dict[str, Any] = {**style, **_HOLLOW, "linestyle": "none", "zorder": 3.5}
        axes.plot(x[hollow], middle[hollow], **over)
    return {**style, "linestyle": "-" if joined else "none"}


def _draw_law(axes: Axes, line: Line, index: int, color: Any) -> Any:
    """The line of one law, in the style of its verdict; None where there is none."""
    stretch = line.laws[index]
    law = line.law(stretch)
    if law is None or law.rho is None or law.intercept is None:
        return None
    style = LAW_STYLES[stretch.verdict]
    ends = np.array([0.0, float(stretch.last - stretch.first)])
    fit = np.exp(law.intercept + ends * math.log(law.rho))
    axes.plot(ends + line.start + stretch.first, fit, color=color, linewidth=1.2, linestyle=style, zorder=2)
    return style


def _draw_marks(axes: Axes, line: Line, *, log_y: bool, positions: Mapping[float, float]) -> None:
    """What the paper prints of a line, as gray crosses."""
    shown = [(positions.get(at, at), value) for at, value in line.marks if value > 0 or not log_y]
    if shown:
        x, y = zip(*shown, strict=True)
        axes.plot(x, y, color=GREY, marker="x", markersize=5, markeredgewidth=1.4, linestyle="none", zorder=4)


def _draw_band(axes: Axes, line: Line, x: np.ndarray, *, log_y: bool, color: Any) -> None:
    """From the least to the greatest seed."""
    low, high = (np.array(values) for values in line.band(log=log_y))
    finite = ~np.isinf(np.array(line.x, dtype=float))
    if np.isfinite(low[finite]).sum() > 1:
        axes.fill_between(x[finite], low[finite], high[finite], color=color, alpha=0.2, linewidth=0, zorder=1)
    # a band needs neighbors: between gaps it would vanish
    alone = [
        index for index in range(len(x)) if _is_alone(low, index) or (not finite[index] and low[index] < high[index])
    ]
    if alone:
        axes.vlines(x[alone], low[alone], high[alone], color=color, alpha=0.35, linewidth=3, zorder=1)


def draw_zeros(
    axes: Axes, lines: Sequence[Line], *, positions: Mapping[float, float], scale: Scale | None = None
) -> None:
    """Marks on the floor where a seed has 0, which lies below every logarithm: one at each x, gray for several lines."""
    owners: dict[float, list[Line]] = {}
    for line in lines:
        for at, values in zip(line.x, line.samples, strict=True):
            if any(value <= 0 for value in values):
                owners.setdefault(positions.get(at, at), []).append(line)
    floor: Any = axes.get_xaxis_transform()
    for at, own in owners.items():
        color = line_color(own[0], lines, scale) if len(own) == 1 else GREY
        axes.plot([at], [0.015], marker="v", markersize=4, linestyle="none", color=color, transform=floor)


def _shown(label: str) -> str:
    """A label in a legend, from which matplotlib leaves those out that begin with an underscore."""
    return f" {label}" if label.startswith("_") else label


def _line_width(panel: Panel, line: Line, lines: Sequence[Line]) -> float:
    """Arrays that end on one another are drawn thick below thin, so that each is seen."""
    if panel.kind == "array" and panel.upright:
        return 1.0 + 1.1 * (max(other.index for other in lines) - line.index)
    return 1.2


def _marker(panel: Panel, line: Line, lines: Sequence[Line]) -> str:
    return "o" if panel.ordered or panel.y.startswith("ratios") else _marker_of(line, lines)


def _marker_of(line: Line, lines: Sequence[Line]) -> str:
    index = line.index if line.pair is None else _pair_words(lines, 1).index(line.pair[1])
    return _MARKERS[index % len(_MARKERS)]


def _is_alone(values: np.ndarray, index: int) -> bool:
    near = [other for other in (index - 1, index + 1) if 0 <= other < len(values)]
    return bool(np.isfinite(values[index])) and not any(np.isfinite(values[other]) for other in near)
