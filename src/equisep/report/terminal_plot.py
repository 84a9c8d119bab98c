"""A depth curve drawn in characters: points and the fitted line on a logarithmic axis, braille or plain ASCII."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from equisep.report.formatting import number
from equisep.results import LawFit

LEAST_WIDTH, LEAST_HEIGHT = 24, 4
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row of four][column of two], Unicode's numbering


@dataclass(frozen=True, slots=True)
class _Pen:
    """The characters one plot is drawn with."""

    point: str
    zero: str
    wall: str
    notch: str
    corner: str
    floor: str
    tick: str


_FINE = _Pen(point="●", zero="▼", wall="│", notch="┤", corner="└", floor="─", tick="┴")
_PLAIN = _Pen(point="o", zero="v", wall="|", notch="+", corner="+", floor="-", tick="+")


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where `sites` sites, numbered from `first`, and values lie on a canvas of `width` × `height` characters."""

    first: int
    sites: int
    low: float
    high: float
    width: int
    height: int

    def column(self, site: int) -> int:
        """The column of a site, in half characters; a margin of one character at each side."""
        share = 0.5 if self.sites == 1 else site / (self.sites - 1)
        return round(2 + share * (2 * (self.width - 2) - 1))

    def row(self, log: float) -> int:
        """The row of a value of ln D, 0 at the top, in quarters of a character."""
        share = 0.5 if self.high == self.low else (self.high - log) / (self.high - self.low)
        return round(share * (4 * self.height - 1))

    def cell(self, site: int, log: float) -> tuple[int, int]:
        """The character, row and column, in which a point lies."""
        return self.row(log) // 4, self.column(site) // 2


def render_curve(
    curve: Sequence[float | None],
    fit: LawFit | None,
    width: int = 72,
    height: int = 12,
    ascii: bool = False,
    *,
    first: int = 0,
) -> str:
    """D against depth on a logarithmic axis, with the line of `fit`, as lines of at most `width` characters.

    `first` is the number of the first site: 1 where the raw input is left out. `ascii` keeps to characters that every
    terminal has. Sites without D are left out; D = 0 lies below every logarithm and is marked on the floor.
    """
    logs = [math.log(value) if value is not None and value > 0 else None for value in curve]
    drawn = [log for log in logs if log is not None]
    if not drawn:
        return "(no D above 0 to draw)"
    line = _line(fit, len(curve))
    reach = [*drawn, *(line or ())]
    labels_at = _ticks(min(reach), max(reach))
    gutter = max(len(label) for label in labels_at.values())
    frame = _Frame(
        first=first,
        sites=len(curve),
        low=min(reach),
        high=max(reach),
        width=max(width, LEAST_WIDTH) - gutter - 1,
        height=max(height, LEAST_HEIGHT) - 2,
    )
    pen = _PLAIN if ascii else _FINE
    canvas = _canvas(frame, line, ascii)
    for site, (value, log) in enumerate(zip(curve, logs, strict=True)):
        row, column = frame.cell(site, frame.low if log is None else log)
        if log is not None or value == 0:
            canvas[row][column] = pen.zero if log is None else pen.point
    return "\n".join([*_walled(canvas, frame, labels_at, gutter, pen), *_floor(frame, gutter, pen)])


def _line(fit: LawFit | None, sites: int) -> tuple[float, float] | None:
    """The fitted ln D at the first and the last site."""
    if fit is None or fit.rho is None or fit.intercept is None or fit.rho <= 0 or sites < 2:
        return None
    return fit.intercept, fit.intercept + (sites - 1) * math.log(fit.rho)


def _canvas(frame: _Frame, line: tuple[float, float] | None, ascii: bool) -> list[list[str]]:
    """An empty canvas with the line on it: braille has two columns and four rows of dots a character."""
    canvas = [[" "] * frame.width for _ in range(frame.height)]
    if line is None:
        return canvas
    first, last = frame.column(0), frame.column(frame.sites - 1)
    dots: dict[tuple[int, int], int] = {}
    for column in range(first, last + 1):
        share = (column - first) / max(1, last - first)
        row = frame.row(line[0] + share * (line[1] - line[0]))
        cell = (row // 4, column // 2)
        dots[cell] = dots.get(cell, 0) | _DOTS[row % 4][column % 2]
    for (row, column), bits in dots.items():
        canvas[row][column] = "." if ascii else chr(_BRAILLE + bits)
    return canvas


def _ticks(low: float, high: float) -> dict[float, str]:
    """Round values of D inside the range with their labels; its two ends where no round value lies inside."""
    low, high = max(low, -700.0), min(high, 700.0)  # what a float can hold: a damaged file may ask for more
    decades = (high - low) / math.log(10)
    steps = (1, 2, 5) if decades < 3 else (1,)
    every = max(1, math.ceil(decades / 8))
    powers = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    logs = [math.log(step) + power * math.log(10) for power in powers if power % every == 0 for step in steps]
    inside = [log for log in logs if low - 1e-9 <= log <= high + 1e-9]
    if len(inside) >= 2:
        return {log: f"{float(f'{_value(log):.0e}'):g}" for log in inside}
    return {log: number(_value(log), 3) for log in (low, high)}


def _value(log: float) -> float:
    return math.exp(min(log, 709.0))


def _walled(canvas: list[list[str]], frame: _Frame, labels_at: dict[float, str], gutter: int, pen: _Pen) -> list[str]:
    """The canvas with the axis of D at its left; of two labels on one row the first stays."""
    labels: dict[int, str] = {}
    for log, label in labels_at.items():
        labels.setdefault(frame.row(log) // 4, label)
    return [
        f"{labels.get(row, ''):>{gutter}}{pen.notch if row in labels else pen.wall}{''.join(cells)}".rstrip()
        for row, cells in enumerate(canvas)
    ]


def _floor(frame: _Frame, gutter: int, pen: _Pen) -> list[str]:
    """The axis of depth: a tick per site, and as many site numbers as fit."""
    axis = [pen.floor] * frame.width
    numbers = [" "] * (frame.width + 1)
    room = max(1, math.ceil((len(str(frame.first + frame.sites - 1)) + 1) * frame.sites / frame.width))
    for site in range(frame.sites):
        column = frame.column(site) // 2
        axis[column] = pen.tick
        if site % room == 0:
            label = str(frame.first + site)
            start = min(column, len(numbers) - len(label))
            numbers[start : start + len(label)] = label
    return [
        f"{'':>{gutter}}{pen.corner}{''.join(axis)}",
        f"{'':>{gutter + 1}}{''.join(numbers)}".rstrip(),
    ]
