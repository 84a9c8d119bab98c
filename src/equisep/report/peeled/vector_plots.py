"""Class vectors drawn (matplotlib): those of the Layer-Peeled Model, and the features of four classes over epochs, in space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from equisep.errors import InputError
from equisep.peeled.vectors import ClassVectors, simplex
from equisep.report.plots import LINE_COLORS
from equisep.shapes import Float64, Int

MAJORITY, MINORITY = LINE_COLORS[0], LINE_COLORS[1]
_ABOVE = 1.16  # where the name of a class stands, beyond its vector
_FLAT = 0.42  # height of a row of two classes, which lie on a line, over that of the others
CLASSES = 4  # whose centered means span three dimensions
_REACH = 1.45
_ACROSS = 4  # stills in a row


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


@dataclass(frozen=True, slots=True, eq=False)
class CollapseFrame:
    """The last layer at one epoch, in the space that the class means span: samples, class means and classifiers.

    Everything is centered, turned as near to a regular tetrahedron as it goes, and scaled to class means of mean norm 1;
    classifiers are scaled to their own. `fuzziness` is D of these features, `accuracy` that of the network, on the samples.
    """

    epoch: int
    samples: Float64[np.ndarray, "n 3"]
    labels: Int[np.ndarray, " n"]
    means: Float64[np.ndarray, "4 3"]
    classifiers: Float64[np.ndarray, "4 3"]
    fuzziness: float
    accuracy: float


def collapse_frame(
    epoch: int,
    features: Float64[np.ndarray, "n d"],
    labels: Int[np.ndarray, " n"],
    classifiers: Float64[np.ndarray, "4 d"],
    *,
    fuzziness: float,
    accuracy: float,
) -> CollapseFrame:
    """Project features and classifiers onto the three dimensions of the centered class means of this epoch."""
    if sorted(set(labels.tolist())) != list(range(CLASSES)):
        raise InputError(
            f"Neural collapse is drawn of the classes 0, 1, 2 and 3; found {len(set(labels.tolist()))} classes. Choose four."
        )
    by_class = np.stack([features[labels == label].mean(axis=0) for label in range(CLASSES)])
    middle = by_class.mean(axis=0)
    _, _, axes = np.linalg.svd(by_class - middle, full_matrices=False)
    axes = axes[: CLASSES - 1].T
    means = (by_class - middle) @ axes
    left, _, right = np.linalg.svd(means.T @ simplex(CLASSES))
    turn = axes @ left @ right
    scale = float(np.linalg.norm(means, axis=1).mean())
    weights = (classifiers - classifiers.mean(axis=0)) @ turn
    return CollapseFrame(
        epoch=epoch,
        samples=(features - middle) @ turn / scale,
        labels=labels,
        means=(by_class - middle) @ turn / scale,
        classifiers=weights / float(np.linalg.norm(weights, axis=1).mean()),
        fuzziness=fuzziness,
        accuracy=accuracy,
    )


def plot_collapse(frames: Sequence[CollapseFrame], names: Sequence[str]) -> Figure:
    """Stills of some epochs, four in a row: samples as points, class means as arrows, classifiers dashed, the simplex pale."""
    if not frames:
        raise InputError("`plot_collapse` needs at least one epoch; found none. Pass what `collapse_frame` returns.")
    rows = math.ceil(len(frames) / _ACROSS)
    columns = min(_ACROSS, len(frames))
    figure = Figure(figsize=(2.7 * columns, 2.9 * rows + 0.5), layout="constrained")
    for index, frame in enumerate(frames):
        axes: Any = figure.add_subplot(rows, columns, index + 1, projection="3d")
        _draw_frame(axes, frame, azimuth=-62.0)
    figure.legend(handles=_keys(names), loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    return figure


def save_collapse_film(
    frames: Sequence[CollapseFrame], names: Sequence[str], path: str | Path, *, dpi: int = 90
) -> Path:
    """The same as an animated GIF, turning slowly; the last epoch stays for a while."""
    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise InputError(f"An animation cannot be saved as `{target.name}`. Let its name end in .gif.")
    figure = Figure(figsize=(4.4, 4.9))
    FigureCanvasAgg(figure)
    axes: Any = figure.add_axes((0.0, 0.1, 1.0, 0.82), projection="3d")
    figure.legend(handles=_keys(names), loc="lower center", ncols=3, frameon=False, fontsize=8)
    writer = PillowWriter(fps=6)
    shown = [*frames, *[frames[-1]] * 8]
    with writer.saving(figure, str(target), dpi):
        for index, frame in enumerate(shown):
            axes.clear()
            _draw_frame(axes, frame, azimuth=-80.0 + 40.0 * index / len(shown))
            writer.grab_frame()
    return target


def _draw_frame(axes: Any, frame: CollapseFrame, *, azimuth: float) -> None:
    ideal = simplex(CLASSES)
    for k in range(CLASSES):
        for other in range(k):
            axes.plot(*np.stack([ideal[k], ideal[other]]).T, color="0.85", linewidth=0.7)
    for k in range(CLASSES):
        color = LINE_COLORS[k]
        own = frame.samples[frame.labels == k]
        axes.scatter(*own.T, s=5, color=color, alpha=0.55, linewidths=0, depthshade=False)
        axes.quiver(0, 0, 0, *frame.means[k], color=color, linewidth=1.8, arrow_length_ratio=0.1)
        axes.plot(*np.stack([np.zeros(3), frame.classifiers[k]]).T, color="0.25", linewidth=1.1, linestyle=(0, (3, 2)))
    for limits in (axes.set_xlim, axes.set_ylim, axes.set_zlim):
        limits(-_REACH, _REACH)
    axes.set_box_aspect((1, 1, 1), zoom=1.4)
    axes.view_init(elev=14, azim=azimuth)
    axes.set_axis_off()
    title = f"epoch {frame.epoch}\nD = {frame.fuzziness:.3g}, training accuracy {100 * frame.accuracy:.1f} %"
    axes.set_title(title, fontsize=8.5, y=0.98)


def _keys(names: Sequence[str]) -> list[Line2D]:
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4}
    keys = [Line2D([], [], color=LINE_COLORS[k], label=name, **dot) for k, name in enumerate(names)]
    keys.append(Line2D([], [], color="0.4", linewidth=1.8, label="class means"))
    return [*keys, Line2D([], [], color="0.25", linestyle=(0, (3, 2)), label="classifiers")]
