"""Many profiles drawn (matplotlib): the mean curve of D of every network, its seeds, and the band of the mean over them."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equisep.compare import ManyProfiles, ProfileGroup
from equisep.errors import InputError
from equisep.report.formatting import limits, number
from equisep.report.legends import add_legend
from equisep.report.plots import LINE_COLORS, depth_axes, plain_text, save_figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def plot_groups(many: ManyProfiles, path: str | Path | None = None, *, title: str | None = None) -> Figure:
    """D against depth of every group, saved where a `path` is given.

    The thick line is the geometric mean over seeds, the band the t-interval of the mean of ln D, thin lines are the seeds.
    """
    if not any(site.fuzziness for group in many.groups for site in group.sites):
        raise InputError("There is no D to draw: the profiles hold none. Measure with the metric `fuzziness`.")
    figure = Figure(figsize=(6.5, 4.5), layout="constrained")
    axes = figure.add_subplot()
    kinds = sorted({group.passed for group in many.groups}, reverse=True)
    depth_axes(
        axes,
        "fuzziness",
        kinds=kinds,
        from_input=all(group.sites[0].index == 0 for group in many.groups if group.sites),
    )
    for position, group in enumerate(many.groups):
        _draw(axes, group, LINE_COLORS[position % len(LINE_COLORS)], MARKERS[position % len(MARKERS)])
    if title:
        axes.set_title(plain_text(title), fontsize="medium")
    add_legend(axes, grow="top", fontsize="small", framealpha=0.8, edgecolor="none")
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw(axes: Axes, group: ProfileGroup, color: str, marker: str) -> None:
    at = [site.index for site in group.sites]
    for curve in group.curves if len(group.curves) > 1 else ():
        points = [(index, value) for index, value in zip(at, curve, strict=True) if value]
        axes.plot([x for x, _ in points], [y for _, y in points], color=color, linewidth=0.6, alpha=0.35, zorder=1)
    bands = [(site.index, site.band) for site in group.sites if site.band is not None]
    if bands:
        low, high = [band.low for _, band in bands], [band.high for _, band in bands]
        axes.fill_between([x for x, _ in bands], low, high, color=color, alpha=0.22, linewidth=0, zorder=2)
    means = [(site.index, site.fuzziness) for site in group.sites if site.fuzziness]
    style = {"marker": marker, "markersize": 4.5, "linewidth": 1.5, "zorder": 3}
    axes.plot([x for x, _ in means], [y for _, y in means], color=color, label=_label(group), **style)  # type: ignore[arg-type]


def _label(group: ProfileGroup) -> str:
    words = plain_text(group.name)
    if len(group.members) > 1:
        words += f", {len(group.members)} seeds"
    if group.law.rho is not None:
        words += f": ρ = {number(group.law.rho, 3)}{limits(group.law.intervals.get('rho'))}"
    return words
