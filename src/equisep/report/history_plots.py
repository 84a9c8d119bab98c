"""A history drawn (matplotlib): D against depth epoch by epoch, ρ, the shares of the work, and the effective depth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from equisep.errors import InputError
from equisep.report.formatting import passed_words
from equisep.report.legends import add_legend
from equisep.report.plots import LINE_COLORS, columns_of, plain_text, save_figure, tidy
from equisep.results import Profile
from equisep.results.records import work_shares
from equisep.tracking.history import History

MOST_CURVES = 40  # curves of D that are drawn; of more readings, as many evenly spread
_EMERGED = {"law": "law", "collapse": "neural collapse", "minority": "minority collapse"}
_FILLS = {"law": "full", "between": "bottom"}


def plot_history(history: History, path: str | Path | None = None, *, title: str | None = None) -> Figure:
    """Four panels over the epochs (or steps) of a training; saved where a `path` is given.

    D against depth, one line per reading; ρ, its points filled where the law holds; each layer's share of the work; the
    effective depth and nearest-center accuracy. Dashed lines stand where the law, neural collapse and minority collapse emerged.
    """
    profiles = history.profiles()
    if not profiles:
        failed = f", {len(history)} readings failed" if len(history) else ""
        raise InputError(f"The history has no reading to draw{failed}. Train on, or look at its `entries`.")
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    curves, ratio, work, depth = (axes for row in figure.subplots(2, 2) for axes in row)
    unit = history.unit
    _draw_curves(curves, profiles, unit)
    _draw_ratio(ratio, profiles, unit)
    _draw_work(work, profiles, unit)
    _draw_depth(depth, profiles, unit)
    _mark_emergence(ratio, history)
    first_read, last_read = min(profiles), max(profiles)
    beyond = max(0.5, 0.02 * (last_read - first_read))
    for axes in (ratio, work, depth):
        axes.set_xlim(first_read - beyond, last_read + beyond)
    for axes in (ratio, depth):
        if axes.get_legend_handles_labels()[0]:
            add_legend(axes, fontsize="small", framealpha=0.8, edgecolor="none")
    first = next(iter(profiles.values()))
    words = title or f"{first.model}, {first.reading} reading, {sum(first.counts)} samples"
    figure.suptitle(plain_text(words), fontsize="medium")
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_curves(axes: Axes, profiles: dict[int, Profile], unit: str) -> None:
    """D over depth, from the first reading (dark) to the last (light)."""
    shown = _spread(list(profiles), MOST_CURVES)
    shade, colors = Normalize(min(profiles), max(*profiles, min(profiles) + 1)), _colors()
    for number in shown:
        profile = profiles[number]
        points = [(site.index, site.fuzziness) for site in profile.sites if site.fuzziness]
        axes.plot(*columns_of(points), color=colors(shade(number)), linewidth=1.1, marker="o", markersize=2.5)
    one = profiles[shown[-1]]
    axes.set_xlabel(f"{passed_words(one).removesuffix('s')}{' (0 = input)' if one.sites[0].index == 0 else ''}")
    axes.set_ylabel("separation fuzziness D")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    tidy(axes)
    axes.figure.colorbar(ScalarMappable(shade, colors), ax=axes, label=unit, pad=0.02).locator = MaxNLocator(
        integer=True
    )


def _draw_ratio(axes: Axes, profiles: dict[int, Profile], unit: str) -> None:
    """ρ over the epochs, with a filled point where the law holds."""
    color = LINE_COLORS[0]
    known = [(number, profile.law.rho) for number, profile in profiles.items() if profile.law.rho is not None]
    axes.plot(*columns_of(known), color=color, linewidth=1.0, zorder=1)
    words = {"law": "law", "between": "between", "no law": "no law", "undetermined": "undetermined"}
    for verdict, label in words.items():
        points = [(n, rho) for n, rho in known if profiles[n].law.verdict == verdict]
        if points:
            style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 5, "markerfacecoloralt": "white"}
            style["fillstyle"] = _FILLS.get(verdict, "none")
            axes.plot(*columns_of(points), color=color, label=label, **style)
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel(unit)
    axes.set_ylabel("ρ, the factor on D per layer")
    tidy(axes)


def _draw_work(axes: Axes, profiles: dict[int, Profile], unit: str) -> None:
    """Each layer's share of the fall of ln D, over the epochs: one color everywhere is the law."""
    numbers, rows = list(profiles), [work_shares(profile.law) for profile in profiles.values()]
    layers = max((len(row) for row in rows if row is not None), default=0)
    axes.set_xlabel(unit)
    axes.set_ylabel("layer")
    if not layers:
        axes.text(0.5, 0.5, "D does not fall with depth:\nno shares of the work", ha="center", transform=axes.transAxes)
        return
    table = np.full((layers, len(numbers)), np.nan)
    for column, row in enumerate(rows):
        if row is not None and len(row) == layers:
            table[:, column] = row
    first = next(iter(profiles.values()))
    begin = first.sites[min(first.begin() + 1, len(first.sites) - 1)].index
    low, high = float(np.nanmin(table)), float(np.nanmax(table))
    mesh = axes.pcolormesh(
        _edges(numbers), np.arange(layers + 1) + begin - 0.5, table, cmap="viridis", vmin=min(low, 0.0), vmax=high
    )
    axes.set_facecolor("0.9")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    bar = axes.figure.colorbar(mesh, ax=axes, label=f"share of the work (equal: {100 / layers:.3g} %)", pad=0.02)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g} %"))


def _draw_depth(axes: Axes, profiles: dict[int, Profile], unit: str) -> None:
    """The effective depth, and the first layer as good as the network itself."""
    last = max(profile.sites[-1].index for profile in profiles.values())
    for place, (name, label, marker) in enumerate(
        (
            ("effective_depth", "effective depth", "o"),
            ("network_depth", "first layer as good as the network", "s"),
        )
    ):
        values = [getattr(profile, name) for profile in profiles.values()]
        drawn = [np.nan if value is None else value for value in values]
        if any(value is not None for value in values):
            # the first is seen below the second where both are one
            style: dict[str, Any] = {"marker": marker, "markersize": 8 - 5 * place, "linewidth": 3 - 2 * place}
            style["drawstyle"] = "steps-mid"
            axes.plot(list(profiles), drawn, color=LINE_COLORS[place], label=label, **style)
    if not axes.lines:
        words = "No layer separates the classes\nto 99 % by nearest means"
        axes.text(0.5, 0.5, words, ha="center", transform=axes.transAxes)
    axes.set_ylim(0, last + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel(unit)
    axes.set_ylabel("layer")
    tidy(axes)


def _mark_emergence(axes: Axes, history: History) -> None:
    for place, (what, emerged) in enumerate(history.emergence().items()):
        if emerged.first is not None:
            style: dict[str, Any] = {"linestyle": "--", "linewidth": 1.1, "color": LINE_COLORS[1 + place]}
            axes.axvline(emerged.first, label=f"{_EMERGED[what]} from {history.unit} {emerged.first}", **style)


def _colors() -> Colormap:
    return colormaps["viridis"]


def _spread(numbers: Sequence[int], most: int) -> list[int]:
    """All of them, or of many as many as `most`, evenly spread, the last among them."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[round(step * (len(numbers) - 1) / (most - 1))] for step in range(most)]


def _edges(numbers: Sequence[int]) -> Any:
    """Where the cells of readings begin and end: half way between them, the first and the last at what was read."""
    at = np.asarray(numbers, dtype=np.float64)
    reach = 0.5 * (len(at) == 1)
    return np.concatenate([[at[0] - reach], (at[1:] + at[:-1]) / 2, [at[-1] + reach]])
