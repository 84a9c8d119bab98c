"""Room for words inside axes: the corner that nothing drawn reaches, or limits wide enough that one becomes free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnchoredOffsetbox, TextArea, VPacker

from equisep.report.figures.axes import GREY, SMALL, Drawn, plain

# in the order they are tried: above a falling curve, and below it
_CORNERS: Mapping[str, tuple[bool, bool]] = {
    "upper right": (True, True),
    "lower left": (False, False),
    "upper left": (False, True),
    "lower right": (True, False),
}
_PAD = 0.025  # of the axes, around the words
_MOST = 0.7  # of the height that words may take by widening the limits


def corner_words(drawn: Drawn) -> AnchoredOffsetbox | None:
    """The r and ρ of a panel's only line, and below them in grey what the paper prints; None where neither exists."""
    line = drawn.lines[0]
    return _corner(drawn, [(line.words, "black"), (line.paper, GREY)])


def absent_words(drawn: Drawn) -> AnchoredOffsetbox | None:
    """Which lines of a panel are not there, where the legend that several panels share cannot say it."""
    absent = [line for line in drawn.lines if line.label and not line.drawn]
    if len(absent) > 1:
        return _corner(drawn, [(f"{len(absent)} lines not run", GREY)])
    return _corner(drawn, [(f"{line.label}: {'no values' if line.run else 'not run'}", GREY) for line in absent])


def _corner(drawn: Drawn, said: Sequence[tuple[str, str]]) -> AnchoredOffsetbox | None:
    rows: list[Artist] = [
        TextArea(plain(words), textprops={"fontsize": SMALL, "color": color}) for words, color in said if words
    ]
    if not rows:
        return None
    box = AnchoredOffsetbox(
        loc="upper right",
        child=VPacker(children=rows, align="right", pad=0, sep=2),
        frameon=False,
        pad=0.1,
        borderpad=0.3,
    )
    box.set_zorder(5)
    drawn.axes.add_artist(box)
    return box


def make_room(drawn: Drawn, words: AnchoredOffsetbox | Legend) -> None:
    """Move the words into a free corner; where none is free, widen the limits up or down, whichever takes less.

    The figure must have been laid out before: the sizes of words and axes are taken from there.
    """
    axes = drawn.axes
    size = words.get_window_extent().transformed(axes.transAxes.inverted())
    wide, high = min(1.0, size.width + _PAD), min(_MOST, size.height + _PAD)
    reached = np.concatenate(list(_reached(axes)))
    needs = {corner: _needed(reached, wide, high, *sides) for corner, sides in _CORNERS.items()}
    best = min(needs, key=lambda corner: round(needs[corner], 6))
    _put(words, best)
    if needs[best] > 1:
        _stretch(axes, needs[best], up=_CORNERS[best][1])


def _needed(reached: np.ndarray, wide: float, high: float, right: bool, upper: bool) -> float:
    """By which factor the axis must grow for the corner to be free; 1 where it is."""
    across, up = reached[:, 0], reached[:, 1] if upper else 1 - reached[:, 1]
    under = up[across >= 1 - wide] if right else up[across <= wide]
    return max(1.0, float(under.max(initial=0.0)) / (1 - high))


def _stretch(axes: Axes, factor: float, *, up: bool) -> None:
    transform = axes.yaxis.get_transform()
    low, high = transform.transform(np.array(axes.get_ylim()))
    span = factor * (high - low)
    ends = (low, low + span) if up else (high - span, high)
    axes.set_ylim(*transform.inverted().transform(np.array(ends)).tolist())


def _put(words: AnchoredOffsetbox | Legend, corner: str) -> None:
    if isinstance(words, Legend):
        words.set_loc(Legend.codes[corner])
    else:
        words.loc = AnchoredOffsetbox.codes[corner]


def _reached(axes: Axes) -> Iterator[np.ndarray]:
    """Points along everything drawn, in fractions of the axes."""
    back = axes.transAxes.inverted()
    yield np.empty((0, 2))
    for line in axes.lines:
        places = line.get_transform().transform(np.column_stack(line.get_data()).astype(float))
        yield back.transform(_along(places) if _is_joined(line) else places[np.isfinite(places).all(axis=1)])
    for collection in axes.collections:
        for path in collection.get_paths():
            yield back.transform(_along(axes.transData.transform(path.vertices)))
        offsets = np.asarray(collection.get_offsets(), dtype=float)
        if offsets.size and offsets.any():
            yield back.transform(axes.transData.transform(offsets))


def _is_joined(line: Line2D) -> bool:
    return line.get_linestyle() not in ("None", "none", " ", "")


def _along(places: np.ndarray) -> np.ndarray:
    """Points on the segments between neighbors, since a segment may cross a corner that no end of it lies in."""
    steps = np.linspace(0, 1, 200)[:, None, None]
    between = (places[:-1] * (1 - steps) + places[1:] * steps).reshape(-1, 2)
    both: np.ndarray = np.concatenate([places, between])
    return np.asarray(both[np.isfinite(both).all(axis=1)])
