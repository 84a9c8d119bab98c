"""Figures for papers (matplotlib): D over depth with its law, and the sites on their principal components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from equisep.errors import InputError
from equisep.report.formatting import correlation, limits, number, one_line, passed_words, shortened_names
from equisep.results import Interval, LawFit, Profile, SiteReading

# Okabe & Ito's colors for lines and Paul Tol's muted ones for classes: told apart with any color vision.
LINE_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CLASS_COLORS = (
    *("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#777777"),
)
_MARK = "equisep-curve"
_METRICS = {
    "fuzziness": "separation fuzziness D",
    "fuzziness_test": "separation fuzziness D on test data",
    "null": "D under permuted labels",
    "nc1": "NC1",
    "cdnv": "CDNV",
    "cdnv_test": "CDNV on test data",
    "ncc_train": "nearest class-center accuracy",
    "ncc_test": "nearest class-center accuracy on test data",
}
_SHARES = ("ncc_train", "ncc_test")


def plot_law(
    profile: Profile,
    ax: Axes | None = None,
    *,
    metric: str = "fuzziness",
    test: bool | None = None,
    null: bool = False,
    interval: bool = True,
    title: str | None = None,
    label: str | None = None,
    color: str | None = None,
) -> Axes:
    """Draw a metric over depth, D with its fitted law, on a logarithmic axis (accuracies on a plain one).

    `test` adds the curve of the test data (by default where there is one and the axes are new), `null` D under permuted
    labels, `interval` the error bars. Several profiles can share one `ax`; each takes the next color. No state of
    matplotlib is touched: without `ax` a figure of 6 × 4 inches is made, `ax.figure`, which no pyplot knows.
    """
    axes = Figure(figsize=(6, 4), layout="constrained").add_subplot() if ax is None else ax
    values = profile.curve(metric)
    if not any(value is not None for value in values):
        raise InputError(f"`plot_law` has no `{metric}` to draw: the profile holds none. Measure with that metric.")
    drawn = sum(line.get_gid() == _MARK for line in axes.lines)
    color = color or LINE_COLORS[drawn % len(LINE_COLORS)]
    law = {"fuzziness": profile.law, "fuzziness_test": profile.laws.get("test")}.get(metric)
    _prepare(axes, metric, passed=passed_words(profile))
    bars = [site.fuzziness_interval for site in profile.sites] if interval and metric == "fuzziness" else []
    name = label or (profile.model if ax is not None else "test data" if metric.endswith("_test") else "training data")
    _draw_curve(axes, values, label=_plain(name) + _law_words(law, full=ax is None), color=color, bars=bars)
    _draw_line(axes, law, color)
    if metric == "fuzziness":
        if ax is None if test is None else test:
            _draw_test(axes, profile, color)
        if null:
            _draw_null(axes, profile)
    if title != "" and (title is not None or ax is None):
        axes.set_title(_plain(title or _caption(profile)), fontsize="medium")
    _add_legend(axes, below_top=null)
    return axes


def plot_sites(profile: Profile, *, columns: int = 4, title: str | None = None) -> Figure:
    """Draw every site on its first two principal components, one panel a site, colored by class."""
    sites = [site for site in profile.sites if site.coordinates is not None]
    if not sites:
        raise InputError(
            f"`plot_sites` needs the principal-component coordinates of the sites; the profile of `{profile.model}` "
            "holds none. Measure again with coordinates switched on."
        )
    across = min(columns, len(sites))
    down = math.ceil(len(sites) / across)
    figure = Figure(figsize=(2.2 * across, 2.3 * down + 0.5), layout="constrained")
    names = shortened_names([one_line(site.name) for site in sites], 22)
    for place, (site, name) in enumerate(zip(sites, names, strict=True)):
        _draw_site(figure.add_subplot(down, across, place + 1), site, name, profile.classes)
    if profile.classes <= 2 * len(CLASS_COLORS):
        handles, labels = _class_keys(figure.axes, profile.classes)
        look: dict[str, Any] = {"ncols": min(10, profile.classes), "frameon": False, "fontsize": "small"}
        figure.legend(handles, labels, loc="outside lower center", markerscale=2, handletextpad=0.1, **look)
    if title is not None:
        figure.suptitle(_plain(title))
    return figure


def save_figure(figure: Figure | SubFigure | Axes, path: str | Path, *, dpi: int = 200) -> Path:
    """Write a figure, or the one that holds these axes, in the format that the ending of `path` names.

    The folder is made where it is missing.
    """
    target = Path(path)
    whole = figure.figure if isinstance(figure, Axes) else figure
    while isinstance(whole, SubFigure):
        whole = whole.figure
    known = sorted(whole.canvas.get_supported_filetypes())
    if target.suffix.lower().lstrip(".") not in known:
        raise InputError(
            f"A figure cannot be saved as `{target.name}`: the ending names no known format. Use one of "
            f"{', '.join(f'.{kind}' for kind in known)}."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    whole.savefig(target, dpi=dpi)
    return target


def _add_legend(axes: Axes, *, below_top: bool) -> None:
    # The null is a line along the top, which matplotlib's search for room runs the legend over: keep it below.
    place: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (1, 0.95)} if below_top else {}
    axes.legend(fontsize="small", framealpha=0.8, edgecolor="none", borderaxespad=1, **place)


def _caption(profile: Profile) -> str:
    """What was measured, and in which mode: it stands beside every number."""
    settings = profile.settings
    words = f"{profile.model}, {settings['mode']} mode" if "mode" in settings else profile.model
    reduction = settings.get("reduction", "flatten")
    return words if reduction == "flatten" else f"{words}, features as {reduction}"


def _prepare(axes: Axes, metric: str, *, passed: str) -> None:
    axes.set_xlabel(f"site ({passed} passed)")
    axes.set_ylabel(_METRICS[metric])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True, steps=[1, 2, 5, 10]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, which="major", alpha=0.2, linewidth=0.6)
    if metric not in _SHARES:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_curve(
    axes: Axes, values: Sequence[float | None], *, label: str, color: str, bars: Sequence[Interval | None]
) -> None:
    """The points, their error bars, and marks on the floor where D = 0 lies below every logarithm."""
    linear = axes.get_yscale() == "linear"
    points = [(site, value) for site, value in enumerate(values) if value is not None and (value > 0 or linear)]
    style: dict[str, Any] = {"marker": "o", "linestyle": "-" if linear else "none", "markersize": 5.5, "zorder": 3}
    axes.plot(*_columns(points), color=color, label=label, gid=_MARK, **style)
    barred = [(site, value, bar) for (site, value) in points if (bar := _at(bars, site)) is not None]
    if barred:
        below = [max(0.0, value - bar.low) for _, value, bar in barred]
        above = [max(0.0, bar.high - value) for _, value, bar in barred]
        places = _columns([(site, value) for site, value, _ in barred])
        axes.errorbar(*places, yerr=[below, above], fmt="none", ecolor=color, elinewidth=1.1, capsize=2.5, zorder=2)
    zeros = [] if linear else [site for site, value in enumerate(values) if value == 0]
    if zeros:
        floor: Any = axes.get_xaxis_transform()
        style = {"marker": "v", "linestyle": "none", "transform": floor, "label": "D = 0 (below the axis)"}
        axes.plot(zeros, [0.015] * len(zeros), color=color, **style)


def _draw_line(axes: Axes, law: LawFit | None, color: str) -> None:
    if law is None or law.rho is None or law.intercept is None or len(law.curve) < 2:
        return
    ends = (0, len(law.curve) - 1)
    fitted = [math.exp(law.intercept + site * math.log(law.rho)) for site in ends]
    axes.plot(ends, fitted, color=color, linewidth=1.4, zorder=1)


def _draw_test(axes: Axes, profile: Profile, color: str) -> None:
    points = [(site, value) for site, value in enumerate(profile.curve("fuzziness_test")) if value]
    if points:
        law = profile.laws.get("test")
        words = "" if law is None or law.rho is None else f", ρ {number(law.rho, 3)}, r {_minus(correlation(law.r))}"
        style: dict[str, Any] = {"marker": "s", "markersize": 4.5, "linewidth": 0.9, "markerfacecolor": "white"}
        axes.plot(*_columns(points), color=color, alpha=0.45, zorder=1.5, label=f"test data{words}", **style)


def _draw_null(axes: Axes, profile: Profile) -> None:
    points = [(site, value) for site, value in enumerate(profile.curve("null")) if value]
    if points:
        axes.plot(*_columns(points), color="0.5", linestyle=":", linewidth=1.1, label="permuted labels", zorder=1)


def _draw_site(axes: Axes, site: SiteReading, name: str, classes: int) -> None:
    assert site.coordinates is not None
    points, labels = site.coordinates.points, site.coordinates.labels
    for kind in sorted(set(labels)):
        mine = [point for point, label in zip(points, labels, strict=True) if label == kind]
        color = _class_color(kind, classes)
        axes.scatter(*_columns(mine), s=8, color=color, linewidths=0, alpha=0.85, label=str(kind), rasterized=True)
    axes.set_title(f"{site.index}  {_plain(name)}", fontsize="small")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_alpha(0.3)
    first, second = site.coordinates.explained
    axes.set_xlabel(f"{100 * first:.0f} % + {100 * second:.0f} % of variance", fontsize="x-small")
    axes.margins(0.08)


def _class_color(kind: int, classes: int) -> Any:
    if classes <= len(CLASS_COLORS):
        return CLASS_COLORS[kind % len(CLASS_COLORS)]
    return colormaps["turbo"](kind / max(1, classes - 1))


def _class_keys(panels: Sequence[Axes], classes: int) -> tuple[list[Any], list[str]]:
    """One handle a class, from the first panel that shows it, drawn larger than its dots."""
    found: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    labels = [str(kind) for kind in range(classes) if str(kind) in found]
    return [found[label] for label in labels], labels


def _law_words(law: LawFit | None, *, full: bool) -> str:
    """The law in the legend; beside r its greatest residual and, in full, the other numbers that r alone hides."""
    if law is None or law.rho is None:
        return ""
    first = f": ρ = {number(law.rho, 3)}{limits(law.intervals.get('rho')) if full else ''}"
    if law.half_life is not None:
        first += f", half-life {number(law.half_life, 3)}"
    if law.r is None:
        return _minus(first)
    second = f"r = {correlation(law.r)}, residual ≤ {number(law.max_residual, 2)}"
    if not full:
        return _minus(f"{first}\n{second}")
    gain = "" if law.two_slopes is None else f", two-slope BIC gain {number(law.two_slopes.gain, 2)}"
    return _minus(f"{first}\n{second}\nimbalance {number(law.imbalance, 3)}{gain}")


def _plain(text: str) -> str:
    """A name as it stands: dollar signs would begin a formula, and a leading underscore hides it from the legend."""
    shown = one_line(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _minus(text: str) -> str:
    """Hyphens before digits as minus signs."""
    return "".join("−" if char == "-" and text[i + 1 : i + 2].isdigit() else char for i, char in enumerate(text))


def _columns(points: Sequence[tuple[int | float, float]]) -> tuple[list[int | float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _at(bars: Sequence[Interval | None], site: int) -> Interval | None:
    return bars[site] if site < len(bars) else None
