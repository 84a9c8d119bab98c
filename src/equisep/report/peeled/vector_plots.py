"""Class vectors of the Layer-Peeled Model, drawn (matplotlib): a simplex for equal classes, minority collapse beyond R*."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from equisep.errors import InputError
from equisep.peeled.vectors import ClassVectors
from equisep.report.plots import LINE_COLORS

MAJORITY, MINORITY = LINE_COLORS[0], LINE_COLORS[1]
_ABOVE = 1.16  # where the name of a class stands, beyond its vector
_FLAT = 0.42  # height of a row of two classes, which lie on a line, over that of the others


def plot_vectors(rows: Sequence[Sequence[ClassVectors]]) -> Figure:
    """Draw one row per number of classes, one drawing per imbalance ratio: classifiers as arrows, class means as rings."""
    if not rows or not all(rows):
        raise InputError(
            "`plot_vectors` needs at least one set of vectors; found none. Pass what `class_vectors` returns."
        )
    columns = max(map(len, rows))
    heights = [_FLAT if sets[0].classes == 2 else 1.0 for sets in rows]
    figure = Figure(figsize=(2.9 * columns, 2.9 * sum(heights) + 0.6), layout="constrained")
    grid = figure.add_gridspec(len(rows), columns, height_ratios=heights)
    for row, sets in enumerate(rows):
        reach = _ABOVE * max(
            float(np.linalg.norm(part, axis=1).max()) for one in sets for part in (one.classifiers, one.features)
        )
        for column, one in enumerate(sets):
            if one.classes > 3:
                axes: Any = figure.add_subplot(grid[row, column], projection="3d")
                _draw_solid(axes, one, reach)
            else:
                axes = figure.add_subplot(grid[row, column])
                _draw_flat(axes, one, reach)
            axes.set_title(_title(one), fontsize=9)
    look: dict[str, Any] = {"linestyle": "none", "marker": "o"}
    keys = [
        Line2D([], [], color=MAJORITY, linewidth=2, label="classifiers of large classes"),
        Line2D([], [], color=MINORITY, linewidth=2, label="classifiers of small classes"),
        Line2D([], [], color="0.3", markerfacecolor="none", label="class means", **look),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_flat(axes: Axes, one: ClassVectors, reach: float) -> None:
    """Two or three classes: a line or a plane."""
    arrows, rings = (np.pad(part, ((0, 0), (0, 2 - part.shape[1]))) for part in (one.classifiers, one.features))
    for k, color in enumerate(_colors(one)):
        axes.annotate("", arrows[k], (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 2})
        axes.plot(*rings[k], marker="o", markersize=9, markerfacecolor="none", color=color)
    for at, name in _names(arrows):
        beside = at + 0.16 * reach * np.array([0.0, 1.0]) if one.classes == 2 else _beyond(at, rings)
        axes.annotate(name, tuple(beside), ha="center", va="center", fontsize=8)
    axes.plot(0, 0, ".", color="0.4")
    axes.set_xlim(-1.08 * reach, 1.08 * reach)
    high = 0.3 if one.classes == 2 else 1.08
    axes.set_ylim(-high * reach, high * reach)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_solid(axes: Any, one: ClassVectors, reach: float) -> None:
    """Four classes: in three dimensions, with the edges of the body that the classifiers span."""
    arrows = one.classifiers
    for k in range(one.classes):
        for other in range(k):
            axes.plot(*np.stack([arrows[k], arrows[other]]).T, color="0.8", linewidth=0.7)
    for k, color in enumerate(_colors(one)):
        axes.quiver(0, 0, 0, *arrows[k], color=color, linewidth=2, arrow_length_ratio=0.12)
        axes.plot(*one.features[k][:, None], marker="o", markersize=9, markerfacecolor="none", color=color)
    for at, name in _names(arrows):
        axes.text(*_beyond(at, one.features), name, fontsize=8, ha="center")
    for limits in (axes.set_xlim, axes.set_ylim, axes.set_zlim):
        limits(-0.8 * reach, 0.8 * reach)
    axes.set_box_aspect((1, 1, 1), zoom=1.3)
    axes.view_init(elev=16, azim=-62)
    axes.set_axis_off()


def _names(arrows: np.ndarray) -> list[tuple[np.ndarray, str]]:
    """Where the numbers of classes stand; classes that are one vector share a place, and vanished ones stand at zero."""
    spots: list[tuple[np.ndarray, list[str]]] = []
    for k, arrow in enumerate(arrows):
        near = next((names for at, names in spots if np.linalg.norm(at - arrow) < 1e-3), None)
        if near is None:
            spots.append((arrow, [str(k + 1)]))
        else:
            near.append(str(k + 1))
    return [(at, " = ".join(names)) for at, names in spots]


def _beyond(arrow: np.ndarray, rings: np.ndarray) -> np.ndarray:
    """A place in the direction of an arrow, beyond it and the rings that lie there."""
    length = float(np.linalg.norm(arrow))
    if not length:
        return arrow
    along = max([length, *(float(ring @ arrow) / length for ring in rings)])
    return np.asarray(arrow * (along / length + _ABOVE - 1))


def _colors(one: ClassVectors) -> list[str]:
    return [MAJORITY] * one.majority + [MINORITY] * one.minority


def _title(one: ClassVectors) -> str:
    """The ratio, and what became of the minority."""
    first = f"K = {one.classes}, R = {one.ratio:.4g}"
    if one.ratio == 1:
        return f"{first}\nsimplex ETF, cosine {-1 / (one.classes - 1):.3g}".replace("-", "−")
    if one.threshold is None:
        return f"{first}\none small class: nothing to collapse with"
    words = "" if math.isnan(one.cosine) else f"cosine of small classes {one.cosine:.3g}".replace("-", "−")
    side = "beyond" if one.ratio >= one.threshold else "below"
    return f"{first}, {side} $R^*$ = {one.threshold:.4g}\n{words or one.state.value}"
