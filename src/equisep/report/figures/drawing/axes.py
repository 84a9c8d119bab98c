"""One pair of axes of a figure: lines with their bands over seeds, laws, the paper's numbers, scales and ticks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from equisep.figures.figure import Panel
from equisep.figures.quantities import Quantity, Query, entry_of
from equisep.report.figures.drawing.curves import Line, asked_of
from equisep.report.figures.drawing.labels import x_words, y_words
from equisep.report.figures.drawing.ticks import log_number, log_ticks, plain_ticks, tick_x
from equisep.report.formatting import one_line
from equisep.report.plots import CLASS_COLORS, LINE_COLORS

GREY = "0.45"
SMALL = 7.0  # points: the size of legends and ticks
_READ = ("sites", "epochs", "sweep")  # panels whose x are those that were read
_MARKERS = "os^Dv*Ph"
_MOST_MARKERS = 60  # points a line may have and still show each
_FEW = 25  # points of a line whose markers can be large
_CROWDED = 10  # lines whose bands would hide each other


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn in a panel: its axes, its lines, whether y is logarithmic, and the keys of its legend."""

    panel: Panel
    axes: Axes
    lines: tuple[Line, ...]
    log_y: bool
    keys: tuple[Line2D, ...] = ()

    @property
    def filled(self) -> bool:
        """Whether anything is there to see."""
        return any(line.drawn for line in self.lines)


def draw_panel(axes: Axes, panel: Panel, lines: Sequence[Line], *, title: str, size: tuple[float, float]) -> Drawn:
    """Draw the lines of one panel of about `size` inches; a panel without any says so in its middle."""
    wide, high = size
    axes.set_title(_wrapped(plain(title), wide * 14), fontsize=SMALL + 1.5)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    if not any(line.drawn for line in lines):
        return _empty(axes, panel, lines)
    log_y = _is_log(panel, lines)
    _label_axes(axes, panel, wide, high)
    axes.grid(visible=True, which="major", alpha=0.2, linewidth=0.6)
    positions = _positions(panel, lines)
    _scale_x(axes, panel, [at for x, at in positions.items() if math.isfinite(x)])
    if log_y:
        axes.set_yscale("log")
    axes.margins(0.04 if panel.kind != "scatter" else 0.08, 0.08)
    keys = [_draw_key(axes, panel, line, lines, log_y=log_y, positions=positions) for line in lines]
    handles = [key for key, line in zip(keys, lines, strict=True) if line.label]
    if panel.kind in _READ:
        _reach_all(axes, lines, positions)
    marked = [
        _draw_marks(axes, line, log_y=log_y, positions=positions) for line in lines
    ]  # also where we have no number
    if any(marked):
        handles.append(Line2D([], [], color=GREY, marker="x", linestyle="none", markersize=5, label="paper"))
    tick_x(axes, panel, positions)
    return Drawn(panel, axes, tuple(lines), log_y, tuple(handles))


def _reach_all(axes: Axes, lines: Sequence[Line], positions: dict[float, float]) -> None:
    """All x that were read, also where nothing exists: a network is as deep, and was trained as long, as it was."""
    reach = [positions[at] for line in lines for at in line.x if not math.isnan(at)]
    axes.update_datalim([(at, 0.0) for at in reach], updatey=False)
    axes.autoscale_view(scaley=False)


def _label_axes(axes: Axes, panel: Panel, wide: float, high: float) -> None:
    grain = Query.of(asked_of(panel)[0]).ways.get("grain", "") if panel.kind == "sites" else ""
    across = plain(panel.x_label) or x_words(panel.kind, panel.x, grain)
    up = plain(panel.y_label) or y_words(asked_of(panel))
    axes.set_xlabel(_wrapped(across, wide * 16), fontsize=SMALL + 0.5)
    axes.set_ylabel(_wrapped(up, high * 14), fontsize=SMALL + 0.5)


def _draw_key(
    axes: Axes, panel: Panel, line: Line, lines: Sequence[Line], *, log_y: bool, positions: dict[float, float]
) -> Line2D:
    """One line with its band, where it was run; returns its key."""
    if not line.drawn:
        return _not_run(line)
    color = line_color(panel, line, lines)
    if len(lines) <= _CROWDED:
        _draw_band(axes, line, log_y=log_y, color=color, positions=positions)
    return _draw_line(axes, panel, line, log_y=log_y, color=color, positions=positions)


def tick_y(drawn: Drawn) -> None:
    """Plain numbers up the axis, chosen for the limits that it has in the end."""
    axes = drawn.axes
    if not drawn.filled:
        return
    low, high = axes.get_ylim()
    if not drawn.log_y:
        shares = all(entry.style == "share" for entry in _entries(drawn.panel))
        values = [value for line in drawn.lines for sample in line.samples for value in sample]
        axes.yaxis.set_major_locator(FixedLocator(plain_ticks(values, low, high, shares=shares)))
        return
    axes.yaxis.set_major_locator(FixedLocator(log_ticks(low, high, most=9)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: log_number(value)))


def line_color(panel: Panel, line: Line, lines: Sequence[Line]) -> Any:
    """The line's color by its index: Okabe & Ito's, beyond seven lines Tol's, beyond ten and for layers in order viridis."""
    count = 1 + max(other.index for other in lines)
    ordered = panel.y.startswith("ratios")
    if count <= len(LINE_COLORS) and not ordered:
        return LINE_COLORS[line.index]
    if count <= len(CLASS_COLORS) and not ordered:
        return CLASS_COLORS[line.index]
    return colormaps["viridis"](0.92 * line.index / max(1, count - 1))


def plain(text: str) -> str:
    """Declared words as they stand: dollar signs would begin a formula."""
    return one_line(text).replace("$", r"\$")


def _wrapped(text: str, letters: float) -> str:
    """Long words on several lines; formulas stay whole."""
    return text if "$" in text.replace(r"\$", "") else "\n".join(textwrap.wrap(text, max(12, int(letters))))


def _draw_line(
    axes: Axes, panel: Panel, line: Line, *, log_y: bool, color: Any, positions: dict[float, float]
) -> Line2D:
    """One line and its law; returns the key that stands for it in a legend."""
    x = np.array([positions.get(at, math.nan) for at in line.x])
    middle = np.array(line.middle(log=log_y))
    law = line.law if log_y else None
    fitted = law is not None and law.rho is not None and law.intercept is not None
    joined = panel.kind != "scatter" and not fitted
    style: dict[str, Any] = {
        "color": color,
        "linewidth": 1.2,
        "markersize": 3.8 if len(x) <= _FEW else 2.6,
        "zorder": 3,
    }
    style["linestyle"] = "-" if joined else "none"
    style["marker"] = _marker(panel, line, int(np.isfinite(middle).sum()))
    axes.plot(x, middle, **style)
    key: dict[str, Any] = {**style, "linestyle": "-" if joined else "none"}
    if law is not None and law.rho is not None and law.intercept is not None:
        ends = np.array([0.0, len(law.curve) - 1.0])
        key["linestyle"] = "--" if law.verdict == "no law" else "-"
        fit = np.exp(law.intercept + ends * math.log(law.rho))
        axes.plot(ends + line.start, fit, color=color, linewidth=1.1, linestyle=key["linestyle"], zorder=2)
    if log_y:
        _draw_zeros(axes, line, x, color)
    return Line2D([], [], label=key_words(line), **key)


def _draw_marks(axes: Axes, line: Line, *, log_y: bool, positions: dict[float, float]) -> bool:
    """What the paper prints of a line, as gray crosses; whether there was any."""
    shown = [(positions.get(at, at), value) for at, value in line.marks if value > 0 or not log_y]
    if shown:
        x, y = zip(*shown, strict=True)
        axes.plot(x, y, color=GREY, marker="x", markersize=5, linestyle="none", zorder=4)
    return bool(shown)


def _draw_band(axes: Axes, line: Line, *, log_y: bool, color: Any, positions: dict[float, float]) -> None:
    """From the least to the greatest seed."""
    x = np.array([positions.get(at, math.nan) for at in line.x])
    low, high = (np.array(values) for values in line.band(log=log_y))
    if np.isfinite(low).sum() > 1:
        axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0, zorder=1)
    # a band needs neighbors: between gaps it would vanish
    alone = [index for index in range(len(x)) if _is_alone(low, index)]
    if alone:
        axes.vlines(x[alone], low[alone], high[alone], color=color, alpha=0.35, linewidth=3, zorder=1)


def _draw_zeros(axes: Axes, line: Line, x: np.ndarray, color: Any) -> None:
    """Marks on the floor where a seed has 0, which lies below every logarithm."""
    zeros = [at for at, values in zip(x, line.samples, strict=True) if any(value <= 0 for value in values)]
    if zeros:
        floor: Any = axes.get_xaxis_transform()
        axes.plot(zeros, [0.015] * len(zeros), marker="v", markersize=4, linestyle="none", color=color, transform=floor)


def _empty(axes: Axes, panel: Panel, lines: Sequence[Line]) -> Drawn:
    words = "no values" if any(line.run for line in lines) else "not run"
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=SMALL + 2)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("0.85")
    return Drawn(panel, axes, tuple(lines), log_y=False)


def _not_run(line: Line) -> Line2D:
    return Line2D([], [], color="0.75", linestyle=":", linewidth=1.2, label=key_words(line))


def key_words(line: Line) -> str:
    """What a legend says of a line: its label, its law, the paper's numbers; or that it was not run."""
    if not line.drawn:
        return f"{_shown(line.label)}: {'no values' if line.run else 'not run'}"
    paper = f" ({line.paper})" if line.paper else ""
    return f"{_shown(line.label)}: {line.words}{paper}" if line.words else _shown(line.label)


def _shown(label: str) -> str:
    """A label in a legend, from which matplotlib leaves those out that begin with an underscore."""
    return f" {label}" if label.startswith("_") else label


def _marker(panel: Panel, line: Line, points: int) -> str:
    if points > _MOST_MARKERS:
        return ""
    return "o" if panel.y.startswith("ratios") else _MARKERS[line.index % len(_MARKERS)]


def _is_alone(values: np.ndarray, index: int) -> bool:
    near = [other for other in (index - 1, index + 1) if 0 <= other < len(values)]
    return bool(np.isfinite(values[index])) and not any(np.isfinite(values[other]) for other in near)


def _is_log(panel: Panel, lines: Sequence[Line]) -> bool:
    values = [value for line in lines for sample in line.samples for value in sample]
    return panel.log_y and all(entry.log for entry in _entries(panel)) and min(values) >= 0 and max(values) > 0


def _entries(panel: Panel) -> list[Quantity]:
    return [entry_of(Query.of(text).name) for text in asked_of(panel)]


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


def panel_title(panel: Panel, lines: Sequence[Line]) -> str:
    """The panel's own title, or what its only line shows; the axes say the rest."""
    named = [line for line in lines if line.label]
    return panel.title or (named[0].label if len(named) == 1 else "")
