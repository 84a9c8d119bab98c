"""Figures for papers (matplotlib): D and other numbers against depth, with the fitted law; saving them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from equisep.errors import InputError, did_you_mean
from equisep.report.columns import BY_NAME
from equisep.report.formatting import (
    class_labels,
    correlation,
    limits,
    minus_signs,
    number,
    one_line,
    passed_words,
    verdict_words,
)
from equisep.report.legends import add_legend, root_figure
from equisep.results import Interval, LawFit, Profile
from equisep.results.profile import CURVES
from equisep.results.records import work_shares
from equisep.results.wording import AXES

X = TypeVar("X", int, float)
# Okabe & Ito's colors for lines and Paul Tol's muted ones, with black, for classes: told apart with any color vision.
LINE_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CLASS_COLORS = (
    *("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#000000"),
)
# How the line of a law is drawn, by its verdict, in styles that a gray copy keeps: solid is a law and nothing else.
LAW_STYLES: Mapping[str, Any] = {
    "law": "-",
    "fuzzy law": (0, (5, 2)),
    "between": (0, (6, 2, 1.5, 2)),
    "no law": (0, (1, 1.4)),
    "not even fuzzy": (0, (1, 1.4)),
    "undetermined": (0, (1, 4)),
}
METRICS = (*CURVES, "class_fuzziness", "load")  # what can be drawn against depth
_MARK = "equisep-curve"  # followed by what is passed from site to site, layers or blocks
_SHARES = ("ncc_train", "ncc_test", "load")
_AXES = AXES | {"null": AXES["chance"], "ncc_train": AXES["ncc"]}  # as profiles call them


def plot_profile(profile: Profile, target: Axes | str | Path | None = None, **options: Any) -> Axes:
    """`Profile.plot`: onto axes, into a file, or as a new figure, which a notebook or `plt.show()` then shows.

    A new figure is made by pyplot where pyplot is in use or an IPython session runs, which shows what pyplot knows; else
    nothing global is touched. `options` are those of `plot_law`.
    """
    if isinstance(target, str | Path):
        axes = plot_law(profile, **options)
        save_figure(axes, target)
        return axes
    if target is not None and not isinstance(target, Axes):
        raise InputError(
            f"`plot` draws onto matplotlib axes or into a file; found {type(target).__name__}. Pass `ax`, such as "
            "plt.gca(), or a path, such as `law.png`."
        )
    return plot_law(profile, target, show=target is None and _shown(), **options)


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
    show: bool = False,
) -> Axes:
    """Draw a metric against depth, D with its fitted law, on a logarithmic axis (shares on a plain one).

    `metric` is a curve of the profile, `class_fuzziness` (one line per class) or `load` (each layer's share of the work).
    `test` adds the curve of the test data (by default where there is one and the axes are new), `null` D with shuffled
    labels, `interval` the error bars. Where the profile holds several readings, new axes show D in each. Several profiles can
    share one `ax`; each takes the next color. Without `ax` a figure of 6 × 4 inches is made, `ax.figure`; no state of
    matplotlib is touched, unless `show` hands the figure to pyplot.
    """
    if metric not in METRICS:
        raise InputError(f"No curve `{metric}`.{did_you_mean(str(metric), METRICS)} Known: {', '.join(METRICS)}.")
    if metric == "load" and profile.law.loads and work_shares(profile.law) is None:
        raise InputError(
            "`plot_law` has no share of the work to draw: D rises, or rises again by much, from layer to layer."
        )
    if not _holds(profile, metric):
        raise InputError(f"`plot_law` has no `{metric}` to draw: the profile holds none. Measure with that metric.")
    axes = _new_figure(show).add_subplot() if ax is None else ax
    curves = [line for line in axes.lines if str(line.get_gid()).startswith(_MARK)]
    color = color or LINE_COLORS[len(curves) % len(LINE_COLORS)]
    kinds = {str(line.get_gid()).removeprefix(_MARK).strip() for line in curves} | {passed_words(profile)}
    from_input = metric != "load" and profile.sites[0].index == 0
    from_input = from_input and all(0 in np.asarray(line.get_xdata()) for line in curves)
    depth_axes(axes, metric, kinds=sorted(kinds, reverse=True), from_input=from_input)
    readings = profile.other_readings if ax is None and metric == "fuzziness" else {}
    own = f"reading {profile.reading}" if readings else "training data"
    name = label or _distinct(profile.model if ax is not None else own, axes)
    if metric == "class_fuzziness":
        _draw_classes(axes, profile)
    elif metric == "load":
        _draw_shares(axes, profile, color, label=plain_text(name), bars=ax is None)
    else:
        _draw_metric(axes, profile, metric, name=label or name, color=color, alone=ax is None, interval=interval)
    for place, (other, read) in enumerate(readings.items(), start=1):
        shown = LINE_COLORS[place % len(LINE_COLORS)]
        _draw_metric(axes, read, metric, name=f"reading {other}", color=shown, alone=False, interval=False)
    if metric == "fuzziness":
        if ax is None if test is None else test:
            _draw_test(axes, profile, color)
        if null:
            _draw_null(axes, profile)
    if title != "" and (title is not None or ax is None):
        axes.set_title(plain_text(title or _caption(profile, readings)), fontsize="medium")
    look: dict[str, Any] = {"fontsize": "small", "framealpha": 0.8, "edgecolor": "none"}
    bare = metric == "class_fuzziness" and profile.class_names is None  # numbers, which do not say what they count
    look |= {"title": "class", "title_fontsize": "small"} if bare else {}
    if axes.get_legend_handles_labels()[0]:
        add_legend(axes, grow="bottom" if metric in ("ncc_train", "ncc_test") else "top", **look)
    return axes


def save_figure(figure: Any, path: str | Path, *, dpi: int = 200) -> Path:
    """Write a figure, or the one that holds these axes, in the format that the ending of `path` names.

    The folder is made where it is missing.
    """
    target = Path(path)
    whole = root_figure(figure)
    known = sorted(whole.canvas.get_supported_filetypes())
    if target.suffix.lower().lstrip(".") not in known:
        raise InputError(
            f"A figure cannot be saved as `{target.name}`: the ending names no known format. Use one of "
            f"{', '.join(f'.{kind}' for kind in known)}."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    # a layout makes room for what stands beside the axes; without one the page does
    whole.savefig(target, dpi=dpi, bbox_inches=None if whole.get_layout_engine() else "tight")
    return target


def class_color(kind: int, classes: int) -> Any:
    """The color of a class: ten that any eye tells apart, a color map beyond."""
    if classes <= len(CLASS_COLORS):
        return CLASS_COLORS[kind % len(CLASS_COLORS)]
    return colormaps["turbo"](kind / max(1, classes - 1))


def plain_text(text: str) -> str:
    """A name as it stands: dollar signs would begin a formula, and a leading underscore hides it from the legend."""
    shown = one_line(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _shown() -> bool:
    """Whether someone looks at what pyplot knows: it has been imported, or an IPython session (a notebook) runs."""
    ipython = sys.modules.get("IPython")
    return "matplotlib.pyplot" in sys.modules or (ipython is not None and ipython.get_ipython() is not None)


def _new_figure(show: bool) -> Figure:
    if not show:
        return Figure(figsize=(6, 4), layout="constrained")
    from matplotlib import pyplot

    return pyplot.figure(figsize=(6, 4), layout="constrained")


def _holds(profile: Profile, metric: str) -> bool:
    if metric == "class_fuzziness":
        return any(site.class_fuzziness is not None for site in profile.sites)
    column = "share" if metric == "load" else metric
    return any(value is not None for value in BY_NAME[column].of(profile))


def _distinct(name: str, axes: Axes) -> str:
    """The name of a curve, numbered where the legend has it already."""
    taken = [str(label).split(": ρ", maxsplit=1)[0] for label in axes.get_legend_handles_labels()[1]]
    names = [name, *(f"{name} ({count})" for count in range(2, len(taken) + 2))]
    return next(entry for entry in names if plain_text(entry) not in taken)


def _caption(profile: Profile, others: Mapping[str, Profile]) -> str:
    """What was measured, and how it was read: it stands beside every number. `others`: the further readings that are drawn."""
    words = profile.model if profile.reading is None else f"{profile.model}, {profile.reading} reading"
    if others:  # each of which the legend names
        words = f"{profile.model}, {len(others) + 1} readings"
    reduction = profile.settings.get("reduction", "flatten")
    return words if reduction == "flatten" else f"{words}, reduction {reduction}"


def tidy(axes: Axes) -> None:
    """No box around the axes, and a pale grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, which="major", alpha=0.2, linewidth=0.6)


def depth_axes(axes: Axes, metric: str, *, kinds: Sequence[str], from_input: bool) -> None:
    """Axes of a metric against depth; `kinds` are what is passed, layers or blocks."""
    depth = " or ".join(kind.removesuffix("s") for kind in kinds)
    axes.set_xlabel(f"{depth} (0 = input)" if from_input else depth)
    axes.set_ylabel(_AXES.get(metric, BY_NAME[metric].words if metric in BY_NAME else metric))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True, steps=[1, 2, 5, 10]))
    tidy(axes)
    if metric in _SHARES:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_metric(
    axes: Axes, profile: Profile, metric: str, *, name: str, color: str, alone: bool, interval: bool
) -> None:
    """One curve over the sites, with its law where it is of D."""
    law = {"fuzziness": profile.law, "fuzziness_test": profile.laws.get("test")}.get(metric)
    bars = [site.fuzziness_interval for site in profile.sites] if interval and metric == "fuzziness" else []
    if name == "training data" and metric.endswith("_test"):
        name = "test data"
    _draw_curve(axes, profile, metric, label=plain_text(name) + _law_words(law, full=alone), color=color, bars=bars)
    if law is not None:
        _draw_line(axes, law, color, first=profile.sites[profile.begin(metric)].index)


def _draw_curve(
    axes: Axes, profile: Profile, metric: str, *, label: str, color: str, bars: Sequence[Interval | None]
) -> None:
    """The points, their error bars, and marks on the floor where D = 0 lies below every logarithm."""
    linear = axes.get_yscale() == "linear"
    points = _points(profile, metric, positive=not linear)
    style: dict[str, Any] = {"marker": "o", "linestyle": "-" if linear else "none", "markersize": 5.5, "zorder": 3}
    axes.plot(*columns_of(points), color=color, label=label, gid=_mark(profile), **style)
    around = {site.index: bar for site, bar in zip(profile.sites, bars, strict=False) if bar is not None}
    barred = [(site, value, around[site]) for site, value in points if site in around]
    if barred:
        below = [max(0.0, value - bar.low) for _, value, bar in barred]
        above = [max(0.0, bar.high - value) for _, value, bar in barred]
        at = columns_of([(site, value) for site, value, _ in barred])
        axes.errorbar(*at, yerr=[below, above], fmt="none", ecolor=color, elinewidth=1.1, capsize=2.5, zorder=2)
    zeros = [] if linear else [site.index for site, value in _valued(profile, metric) if value == 0]
    if zeros:
        floor: Any = axes.get_xaxis_transform()
        style = {"marker": "v", "linestyle": "none", "transform": floor, "label": "D = 0 (below the axis)"}
        axes.plot(zeros, [0.015] * len(zeros), color=color, **style)


def _draw_line(axes: Axes, law: LawFit, color: str, *, first: int) -> None:
    """The fitted line, which counts from the first site of the curve."""
    if law.rho is None or law.intercept is None or len(law.curve) < 2:
        return
    ends = (0, len(law.curve) - 1)
    fitted = [math.exp(law.intercept + step * math.log(law.rho)) for step in ends]
    style = LAW_STYLES[law.verdict]
    axes.plot([first + step for step in ends], fitted, color=color, linewidth=1.4, linestyle=style, zorder=1)


def _draw_test(axes: Axes, profile: Profile, color: str) -> None:
    points = _points(profile, "fuzziness_test", positive=True)
    if points:
        law = profile.laws.get("test")
        words = (
            ""
            if law is None or law.rho is None
            else f": ρ = {number(law.rho, 3)}, r = {minus_signs(correlation(law.r))}"
        )
        # filled: hollow ones are, in the papers' figures, of networks that do not fit
        style: dict[str, Any] = {"marker": "s", "markersize": 4.5, "linewidth": 0.9}
        axes.plot(*columns_of(points), color=color, alpha=0.6, zorder=1.5, label=f"test data{words}", **style)


def _draw_null(axes: Axes, profile: Profile) -> None:
    points = _points(profile, "null", positive=True)
    if points:
        axes.plot(
            *columns_of(points), color="0.5", linestyle=":", linewidth=1.1, label="chance (shuffled labels)", zorder=1
        )


def _draw_classes(axes: Axes, profile: Profile) -> None:
    """D_k, one thin line per class; beyond twenty classes the colors alone tell them apart."""
    labels = class_labels(profile)
    for kind, label in enumerate(labels):
        rows = [(site.index, site.class_fuzziness) for site in profile.sites if site.class_fuzziness is not None]
        points = [(index, value) for index, row in rows if (value := row[kind]) is not None and value > 0]
        style: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.0, "gid": _mark(profile)}
        shown = plain_text(label) if len(labels) <= 2 * len(CLASS_COLORS) else "_hidden"
        axes.plot(*columns_of(points), color=class_color(kind, len(labels)), label=shown, **style)


def _draw_shares(axes: Axes, profile: Profile, color: str, *, label: str, bars: bool) -> None:
    """Each layer's share of the work, beside the equal share that the law stands for."""
    shares = work_shares(profile.law) or ()
    at = [site.index for site in profile.sites[1:]]
    marker, shown = ("none", "_hidden") if bars else ("o", label)
    axes.plot(
        at, shares, color=color, marker=marker, linestyle="none" if bars else "-", gid=_mark(profile), label=shown
    )
    if bars:
        axes.bar(at, shares, color=color, alpha=0.6, width=0.7, label=label)
    axes.axhline(1 / len(shares), color=color, linestyle="--", linewidth=0.9, label="equal shares" if bars else None)


def _law_words(law: LawFit | None, *, full: bool) -> str:
    """The law in the legend, and beside r its greatest residual, which r alone hides."""
    if law is None or law.rho is None:
        return ""
    first = f": ρ = {number(law.rho, 3)}{limits(law.intervals.get('rho')) if full else ''}"
    if law.half_life is not None:
        first += f", half-life {number(law.half_life, 3)}"
    if law.r is None:
        return minus_signs(first)
    verdict, _ = verdict_words(law)  # the style of the line says it too, but has no key
    return minus_signs(f"{first}\nr = {correlation(law.r)}: {verdict}, residual ≤ {number(law.max_residual, 2)}")


def _mark(profile: Profile) -> str:
    return f"{_MARK} {passed_words(profile)}"


def _valued(profile: Profile, metric: str) -> list[tuple[Any, float]]:
    values = BY_NAME[metric].of(profile)
    return [(site, value) for site, value in zip(profile.sites, values, strict=True) if value is not None]


def _points(profile: Profile, metric: str, *, positive: bool) -> list[tuple[int, float]]:
    """A metric at the numbers that its sites have in every table."""
    return [(site.index, value) for site, value in _valued(profile, metric) if value > 0 or not positive]


def columns_of(points: Sequence[tuple[X, float]]) -> tuple[list[X], list[float]]:
    """Points as what they have along each axis."""
    return [x for x, _ in points], [y for _, y in points]
