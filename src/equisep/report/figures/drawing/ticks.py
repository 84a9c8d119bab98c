"""Ticks of a figure's axes: few, in plain numbers, and far enough apart to be read."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from equisep.figures.figure import Panel
from equisep.figures.quantities import Query, entry_of

_MANY = 24  # x that are not all marked
LETTER = 0.056  # inches of a digit
_SLANT = 40  # degrees
_BLANK = 0.05  # inches between two labels
AXES = 0.78  # of the width of a panel that its axes take


def tick_x(axes: Axes, panel: Panel, positions: Mapping[float, float], wide: float) -> None:
    """Ticks at the x that were read where these are few or unevenly apart, otherwise at round numbers.

    `wide` is the width of the panel in inches.
    """
    if panel.kind == "scatter" and _is_share(panel.x):
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        return
    numbers = log_words([x for x in positions if math.isfinite(x)])
    shown = {at: numbers.get(x, "∞") for x, at in positions.items()}
    linear = axes.get_xscale() == "linear"
    few = len(shown) <= _MANY and (panel.kind == "sweep" or (panel.kind == "epochs" and not linear))
    round_numbers = not few and "∞" not in shown.values()
    if round_numbers and linear:
        whole = panel.kind in ("sites", "epochs") or all(float(x).is_integer() for x in positions)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=whole, steps=[1, 2, 5, 10]))
        return
    if round_numbers:
        low, high = axes.get_xlim()
        if low > 0:
            shown = log_words(log_ticks(low, high, most=7))
    axes.xaxis.set_major_locator(FixedLocator(_apart(axes, shown, wide * AXES)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown.get(value, log_number(value))))


def _is_share(text: str) -> bool:
    """Whether a quantity is a share, by its style or by its words: shares are percents wherever they are drawn."""
    entry = entry_of(Query.of(text).name)
    return entry.style == "share" or entry.words.startswith("share of ")


def plain_ticks(values: Sequence[float], low: float, high: float, *, shares: bool) -> list[float]:
    """Round numbers; whole ones where all values are, and none above 1 where no share can lie."""
    if not shares and all(value.is_integer() for value in values):
        whole = range(math.ceil(low), math.floor(high) + 1)
        return [float(at) for at in whole[:: max(1, math.ceil(len(whole) / 6))]]
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(at) for at in ticks if low <= at <= (min(high, 1 + 1e-9) if shares else high)]


def log_ticks(low: float, high: float, *, most: int) -> list[float]:
    """Decades, with 2 and 5 where decades are few, or round numbers where there is hardly one."""
    decades = math.log10(high / low)
    subs = (1.0,) if decades > 2.5 else (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    found = LogLocator(base=10, subs=subs, numticks=most).tick_values(low, high)
    shown = [float(at) for at in found if low <= at <= high]
    if len(shown) < 2:
        shown = [float(at) for at in MaxNLocator(nbins=4).tick_values(low, high) if low <= at <= high]
    return shown


def correlation_ticks(low: float, high: float) -> list[float]:
    """Correlations of round distances from −1 between two limits, far enough apart where distances are logarithmic."""
    subs = (1.0,) if (1 + high) / max(1 + low, 1e-9) > 1e3 else (1.0, 2.0, 5.0)
    distances = (sub * 10.0**power for power in range(-7, 1) for sub in subs)
    return [round(distance - 1, 9) for distance in distances if low <= distance - 1 <= min(high, 1.0)]


def log_words(ticks: Sequence[float]) -> dict[float, str]:
    """The ticks of a logarithmic axis in words: all plain where each is short, otherwise all powers of ten."""
    powers = not all(map(_is_short, ticks))
    return {at: log_number(at, power=powers) for at in ticks}


def log_number(value: float, *, power: bool = False) -> str:
    """A number of a logarithmic axis: plain where that is short and no `power` is asked for, otherwise a power of ten."""
    if value <= 0 or (_is_short(value) and not power):
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    lead = value / 10**exponent
    return f"$10^{{{exponent}}}$" if abs(lead - 1) < 1e-6 else rf"${lead:g}\cdot 10^{{{exponent}}}$"


def _is_short(value: float) -> bool:
    return 1e-4 < value < 1e5 or value <= 0


def name_ticks(axes: Axes, names: Sequence[str], wide: float) -> None:
    """A name below each category: in as many rows as it takes, or aslant where its longest word has no room."""
    axes.grid(visible=False, axis="x")
    if slant(names, wide):
        axes.set_xticks(range(len(names)), names, rotation=_SLANT, ha="right", rotation_mode="anchor")
        return
    letters = _letters_each(names, wide)
    axes.set_xticks(range(len(names)), ["\n".join(_name_rows(name, letters)) for name in names])


def slant(names: Sequence[str], wide: float) -> float:
    """The inches that the names of a panel so many inches wide take below it where they stand aslant; else 0."""
    letters = _letters_each(names, wide)
    fits = all(len(row) < letters for name in names for row in _name_rows(name, letters))
    return 0.0 if fits else LETTER * max(map(len, names)) * math.sin(math.radians(_SLANT))


def _letters_each(names: Sequence[str], wide: float) -> int:
    return max(1, int(wide * AXES / max(1, len(names)) / LETTER))


def _name_rows(name: str, letters: int) -> list[str]:
    """A name in rows of so many letters, broken at its commas where it can be."""
    parts = [name] if len(name) <= letters else [part.strip() for part in name.split(",")]
    return [row for part in parts for row in textwrap.wrap(part, letters, break_long_words=False)]


def _apart(axes: Axes, shown: Mapping[float, str], wide: float) -> list[float]:
    """The ends, and between them those whose labels stand far enough from the ones kept; `wide` in inches."""
    values = sorted(shown)
    if not values:
        return []
    transform = axes.xaxis.get_transform()
    low, high = (float(transform.transform(np.array([limit]))[0]) for limit in axes.get_xlim())
    spots = {value: wide * (float(transform.transform(np.array([value]))[0]) - low) / (high - low) for value in values}
    half = {value: 0.5 * LETTER * _letters(label) + 0.5 * _BLANK for value, label in shown.items()}

    def far(left: float, right: float) -> bool:
        return spots[right] - spots[left] > half[left] + half[right]

    kept = [values[0]]
    for value in values[1:-1]:
        if far(kept[-1], value) and far(value, values[-1]):
            kept.append(value)
    return kept if len(values) == 1 else [*kept, values[-1]]


def _letters(label: str) -> int:
    return 3 if label.startswith("$") else len(label)  # powers of ten are short
