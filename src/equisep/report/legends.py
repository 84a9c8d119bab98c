"""A legend that covers nothing: at an edge where nothing is drawn, or in a strip that the axis grows for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend
from matplotlib.transforms import Bbox

_GROWN = "equisep-grown"  # marks the legend that an axis was grown for
_CORNERS = (("right", 1.0), ("left", 0.0), ("left", 1.0), ("right", 0.0))  # side and height, 1 at the top
_EDGES = tuple((side, step / 10) for step in range(9, 0, -1) for side in ("right", "left"))
_STEPS = 24  # points at which a straight piece of a line is looked at
_CLEARANCE = 4.0  # points kept free around a legend
_MOST = 0.5  # share of the axes that a legend may take


def root_figure(part: Any) -> Figure:
    """The whole figure that holds these axes or this subfigure."""
    whole = part.figure if isinstance(part, Axes) else part
    while isinstance(whole, SubFigure):
        whole = whole.figure
    assert isinstance(whole, Figure)
    return whole


def add_legend(axes: Axes, *, grow: str = "top", **style: Any) -> Legend:
    """Put the legend of these axes where it covers no point, line, band or error bar; see `place_legend`."""
    before = axes.get_legend()
    if before is not None and before.get_gid() == _GROWN:
        axes.autoscale(axis="y")  # what was grown for the legend of fewer curves
    legend = axes.legend(loc="upper right", **style)
    root_figure(axes).draw_without_rendering()
    place_legend(axes, legend, grow=grow)
    return legend


def place_legend(axes: Axes, legend: Legend, *, grow: str = "top", most: float = _MOST) -> None:
    """Move a legend of axes that have been laid out to where it covers nothing that is drawn.

    matplotlib's own search (`loc="best"`) does not see bands and error bars and settles for the least evil. Where no place at
    an edge is free the axis grows at its `grow` end (`top`, `bottom`, or `either` as takes less) until a corner there is; a
    legend that would take more than the share `most` of the axes stands beside them.
    """
    size = legend.get_window_extent()
    clear = _CLEARANCE * root_figure(axes).dpi / 72
    drawn = np.concatenate([np.empty((0, 2)), *_drawn(axes)])
    for side, height in (*_CORNERS, *_EDGES):
        box = _box(axes.bbox, size, side, height, clear)
        if box.width <= axes.bbox.width and not _inside(box, drawn):
            legend.set_loc("center left" if side == "left" else "center right")
            middle = (box.y0 + box.height / 2 - axes.bbox.y0) / axes.bbox.height
            legend.set_bbox_to_anchor((0, middle, 1, 0), transform=axes.transAxes)
            return
    share = (size.height + 2 * clear) / axes.bbox.height
    if share > most:  # of many curves: beside the axes, as their layout or a notebook makes room for it
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((1, 1), transform=axes.transAxes)
        return
    ends = ("top", "bottom") if grow == "either" else (grow,)
    # a line that runs from the bottom to the top does so however far the axis grows
    movable = np.concatenate([np.empty((0, 2)), *_drawn(axes, upright=False)])
    factors = {
        (side, end): _growth(axes.bbox, _box(axes.bbox, size, side, 1.0, clear), movable, share, end)
        for side in ("right", "left")
        for end in ends
    }
    side, end = min(factors, key=lambda corner: round(factors[corner], 6))
    _grow(axes, factors[side, end], end=end)
    legend.set_loc(Legend.codes[f"{'upper' if end == 'top' else 'lower'} {side}"])
    legend.set_gid(_GROWN)


def _growth(frame: Bbox, box: Bbox, points: np.ndarray[Any, Any], share: float, end: str) -> float:
    """By which factor the vertical range must grow at one end, so that a `share` of it is empty over the width of a box."""
    near = points[(box.x0 <= points[:, 0]) & (points[:, 0] <= box.x1), 1]
    heights = (near - frame.y0) / frame.height  # 0 at the bottom, 1 at the top
    reach = float(np.max(heights if end == "top" else 1 - heights, initial=0.0))
    return max(1.0, min(1.0, reach) / (1 - share))


def _grow(axes: Axes, factor: float, *, end: str) -> None:
    """Make the vertical range longer at one end by this factor."""
    low, high = axes.get_ylim()
    log = axes.get_yscale() == "log"
    if log:
        low, high = math.log(low), math.log(high)
    more = (high - low) * (factor - 1)
    low, high = (low, high + more) if end == "top" else (low - more, high)
    axes.set_ylim(*((math.exp(low), math.exp(high)) if log else (low, high)))


def _box(frame: Bbox, size: Bbox, side: str, height: float, clear: float) -> Bbox:
    """The box of a legend at one side, `height` of the way up, with what is kept free around it."""
    wide, high = size.width + 2 * clear, size.height + 2 * clear
    left = frame.x0 if side == "left" else frame.x1 - wide
    return Bbox.from_bounds(left, frame.y0 + height * (frame.height - high), wide, high)


def _inside(box: Bbox, points: np.ndarray[Any, Any]) -> bool:
    x, y = points[:, 0], points[:, 1]
    return bool(np.any((box.x0 <= x) & (x <= box.x1) & (box.y0 <= y) & (y <= box.y1)))


def _drawn(axes: Axes, *, upright: bool = True) -> Iterable[np.ndarray[Any, Any]]:
    """Where something is drawn, as points on the canvas: markers, and lines and error bars in small steps.

    `upright`: whether with the vertical lines that run from the bottom to the top.
    """
    for line in axes.lines:
        if not upright and line.get_transform() == axes.get_xaxis_transform() and np.ptp(line.get_ydata()) >= 1:
            continue
        path = line.get_transform().transform(line.get_xydata())
        yield path if line.get_linestyle() in ("None", "none", "", " ") else _in_steps(path)
    for entry in axes.collections:
        if isinstance(entry, PolyCollection):  # a band
            yield from (_in_steps(axes.transData.transform(path.vertices)) for path in entry.get_paths())
        if isinstance(entry, LineCollection):
            yield from (_in_steps(entry.get_transform().transform(piece)) for piece in _pieces(entry))
    for patch in axes.patches:
        yield _in_steps(patch.get_transform().transform_path(patch.get_path()).vertices)


def _pieces(collection: LineCollection) -> Sequence[Any]:
    return [piece for piece in collection.get_segments() if len(piece)]


def _in_steps(path: Any) -> np.ndarray[Any, Any]:
    """A path and the points between its corners."""
    points = np.asarray(path, dtype=float)
    if len(points) < 2:
        return points
    shares = np.linspace(0, 1, _STEPS)[:, None, None]
    steps = (1 - shares) * points[:-1] + shares * points[1:]
    return np.asarray(steps.reshape(-1, 2))
