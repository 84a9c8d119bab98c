"""Figures of the Layer-Peeled Model (matplotlib): minority cosines over R, phase diagrams, and the long tail."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from equisep.errors import InputError
from equisep.peeled.classes import State
from equisep.peeled.diagrams import STATES, CosineCurve, PhaseDiagram, vanishing_line
from equisep.peeled.long_tail import LongTail
from equisep.report.formatting import number
from equisep.report.plots import LINE_COLORS, tidy

# pale enough to be read through, apart in lightness too, so that they survive a gray copy
STATE_COLORS = {
    State.TOLD_APART: "#F0F0F0",
    State.LOST: "#C6DBEF",
    State.COLLAPSED: "#9ECAE1",
    State.VANISHED: "#5B7C99",
    State.UNSOLVED: "#D55E00",
}
BAR_COLORS = {False: "#0072B2", True: "#D55E00"}  # told apart, lost
RATIO = "imbalance ratio R (majority over minority class size)"
_MOST_MARKERS = 60  # points a curve may have and still show each
_BELOW: dict[str, Any] = {"loc": "outside lower center", "ncols": 5, "frameon": False, "fontsize": "small"}
_UNDER: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "frameon": False, "fontsize": "small"}


def plot_cosines(curves: Sequence[CosineCurve], *, features: bool = True) -> Figure:
    """Draw the minority cosine over R, one panel a pair of energies, as in Fang et al. 2021.

    Classifiers are solid, class means (`features`) dashed. A bar across the curve stands at R*, a cross where the minority
    vanishes, behind which there is no cosine to draw.
    """
    if not curves:
        raise InputError("`plot_cosines` needs at least one curve; found none. Pass what `cosine_curves` returns.")
    ordered = sorted(curves, key=_energies)
    panels = [(energies, list(group)) for energies, group in groupby(ordered, key=_energies)]
    figure = Figure(figsize=(5.2 * len(panels) + 0.3, 5.0), layout="constrained")
    for panel, (energies, group) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), panel + 1)
        _prepare_cosines(axes, group, first=panel == 0)
        axes.set_title(_energy_words(*energies), fontsize="medium")
        for index, curve in enumerate(group):
            _draw_cosine(axes, curve, LINE_COLORS[index % len(LINE_COLORS)], features=features)
        axes.legend(**_UNDER)  # inside, it would hide a curve somewhere
    figure.legend(handles=_cosine_keys(curves, features=features), **_BELOW)
    return figure


def plot_phases(diagram: PhaseDiagram, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw which state is the optimum over R and E_H (or k_A/K), with R* and R₀ as their equations have them."""
    if len(diagram.ratios) < 2 or len(diagram.rows) < 2:
        raise InputError(
            f"`plot_phases` needs at least 2 ratios and 2 rows; found {len(diagram.ratios)} and {len(diagram.rows)}. "
            "Make a finer diagram."
        )
    axes = Figure(figsize=(6.4, 4.6), layout="constrained").add_subplot() if ax is None else ax
    colors = ListedColormap([STATE_COLORS[state] for state in STATES])
    shades: dict[str, Any] = {"cmap": colors, "vmin": -0.5, "vmax": len(STATES) - 0.5, "shading": "nearest"}
    axes.set_xscale("log")
    if diagram.kind == "energy":
        axes.set_yscale("log")
    axes.pcolormesh(diagram.ratios, diagram.rows, diagram.states, rasterized=True, **shades)
    axes.set_xlim(diagram.ratios[0], diagram.ratios[-1])
    axes.set_ylim(diagram.rows[0], diagram.rows[-1])
    for which in ("x", "y") if diagram.kind == "energy" else ("x",):
        _plain_log_ticks(axes, which)
    handles: list[Patch | Line2D] = [
        Patch(facecolor=STATE_COLORS[state], edgecolor="0.4", linewidth=0.5, label=state)
        for code, state in enumerate(STATES)
        if (diagram.states == code).any()
    ]
    lines = (
        (diagram.collapse, diagram.rows, "-", "$R^*$: collapsed from\nhere on (root finding)"),
        (*vanishing_line(diagram), "--", "$R_0$: vanished from\nhere on (closed form)"),
    )
    for values, rows, style, name in lines:
        if np.isfinite(values).any():
            handles += axes.plot(values, rows, linestyle=style, color="black", linewidth=1.3, label=name)
    axes.set_xlabel(RATIO)
    axes.set_ylabel(
        "feature energy $E_H$ (mean squared norm)" if diagram.kind == "energy" else "share of majority classes $k_A/K$"
    )
    axes.set_title(_phase_title(diagram) if title is None else title, fontsize="medium")
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    axes.legend(handles=handles, fontsize="small", frameon=False, **beside)
    return axes


def plot_long_tail(tail: LongTail) -> Figure:
    """Draw class sizes, the predicted norms of classifiers and features, and how near the next classifier is."""
    prediction = tail.prediction
    classes = np.arange(len(tail.sizes))
    figure = Figure(figsize=(6.6, 6.2), layout="constrained")
    sizes, norms, cosines = figure.subplots(3, 1, sharex=True)
    colors = [BAR_COLORS[state.lost] for state in prediction.states]
    sizes.bar(classes, tail.sizes, width=1.0 if len(classes) > 40 else 0.8, color=colors)
    sizes.set_yscale("log")
    sizes.set_ylim(min(tail.sizes) / 2, max(tail.sizes) * 1.5)
    _plain_log_ticks(sizes, "y")
    sizes.set_ylabel("samples $n_k$")
    style: dict[str, Any] = {"markersize": 3, "linewidth": 1.0}
    norms.plot(classes, prediction.classifier_norms, "o-", color=LINE_COLORS[0], label="classifier $‖w_k‖$", **style)
    norms.plot(classes, prediction.feature_norms, "s--", color=LINE_COLORS[1], label="features $‖h_k‖$", **style)
    norms.set_ylabel("norm")
    norms.set_ylim(bottom=0)
    norms.legend(loc="upper right", fontsize="small", framealpha=0.85, edgecolor="none")
    cosines.plot(classes, prediction.nearest_cosines, "o-", color=LINE_COLORS[2], **style)
    cosines.set_ylabel("cosine to the\nnearest classifier")
    cosines.set_ylim(min(-0.1, float(np.nanmin(prediction.nearest_cosines, initial=0.0)) - 0.05), 1.05)
    falling = all(a >= b for a, b in pairwise(tail.sizes))
    cosines.set_xlabel("class, largest first" if falling else "class")
    cosines.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    cosines.set_xlim(-0.7, len(classes) - 0.3)
    for axes in (sizes, norms, cosines):
        tidy(axes)
    problem = tail.solution.problem
    lost = len(prediction.lost)
    sizes.set_title(
        f"{len(classes)} classes, largest over smallest {tail.ratio:g}\n"
        + _energy_words(problem.weight_energy, problem.feature_energy),
        fontsize="medium",
    )
    keys = [Patch(color=BAR_COLORS[False], label=f"told apart ({len(classes) - lost})")]
    keys.append(Patch(color=BAR_COLORS[True], label=f"lost: no margin ({lost})"))
    sizes.legend(
        handles=keys if lost else keys[:1], loc="upper right", fontsize="small", framealpha=0.85, edgecolor="none"
    )
    return figure


def _energies(curve: CosineCurve) -> tuple[float, float]:
    return curve.thresholds.weight_energy, curve.thresholds.feature_energy


def _prepare_cosines(axes: Axes, curves: Sequence[CosineCurve], *, first: bool) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(curve.ratios[0] for curve in curves), max(curve.ratios[-1] for curve in curves))
    lowest = min(float(np.nanmin(curve.classifier_cosines, initial=0.0)) for curve in curves)
    axes.set_ylim(min(-0.2, lowest - 0.1), 1.07)
    _plain_log_ticks(axes, "x")
    axes.set_xlabel(RATIO)
    if first:
        axes.set_ylabel("cosine between minority classes")
    axes.axhline(1.0, color="0.6", linewidth=0.7, zorder=0)
    tidy(axes)


def _draw_cosine(axes: Axes, curve: CosineCurve, color: str, *, features: bool) -> None:
    limits = curve.thresholds
    words = "" if limits.collapse is None else f": $R^*$ = {number(limits.collapse, 4)}"
    if limits.vanishing is not None:
        words += f"{', ' if words else ': '}$R_0$ = {number(limits.vanishing, 4)}"
    label = f"{_group_words(limits.majority, limits.minority)}{words}"
    low, high = axes.get_xlim()
    marks = [(limits.collapse, "|", 16), (limits.vanishing, "x", 7)]
    shown = [(at, marker, size) for at, marker, size in marks if at is not None and low <= at <= high]
    values: list[tuple[np.ndarray, Any, float, str | None]] = [(curve.classifier_cosines, "-", 1.4, label)]
    if features:
        values.append((curve.feature_cosines, (0, (4, 2)), 1.0, None))
    for cosines, style, width, name in values:
        line = _with_limits(curve, cosines, [at for at, _, _ in shown])
        axes.plot(*line, linestyle=style, color=color, linewidth=width, label=name)
    if len(curve.ratios) <= _MOST_MARKERS:
        axes.plot(curve.ratios, curve.classifier_cosines, "o", markersize=2.8, color=color)
    for at, marker, size in shown:
        axes.plot([at], [1.0], marker=marker, markersize=size, markeredgewidth=1.8, color=color)


def _with_limits(curve: CosineCurve, cosines: np.ndarray, limits: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The curve through R* and R₀ as well, where the cosine is 1: between two points it would cut the corner."""
    ratios = np.concatenate([curve.ratios, limits])
    order = np.argsort(ratios, kind="stable")
    return ratios[order], np.concatenate([cosines, np.ones(len(limits))])[order]


def _cosine_keys(curves: Sequence[CosineCurve], *, features: bool) -> list[Line2D]:
    black: dict[str, Any] = {"color": "0.2"}
    keys = [Line2D([], [], label="classifiers", **black)]
    if features:
        keys.append(Line2D([], [], linestyle=(0, (4, 2)), label="class means", **black))
    keys.append(
        Line2D(
            [],
            [],
            linestyle="none",
            marker="|",
            markersize=12,
            markeredgewidth=1.8,
            label="$R^*$: collapsed from here on",
            **black,
        )
    )
    if any(State.VANISHED in curve.states for curve in curves):
        mark: dict[str, Any] = {"linestyle": "none", "marker": "x", "markeredgewidth": 1.8}
        keys.append(Line2D([], [], label="$R_0$: vanished from here on", **mark, **black))
    unsolved = sum(curve.unsolved for curve in curves)
    if unsolved:
        keys.append(Line2D([], [], linestyle="none", label=f"{unsolved} points not solved"))
    return keys


def _phase_title(diagram: PhaseDiagram) -> str:
    if diagram.kind == "energy":
        words = _group_words(int(diagram.majorities[0]), int(diagram.minorities[0]))
        return f"{words} classes; classifier energy $E_W$ = {diagram.weight_energy:g}"
    classes = diagram.majorities[0] + diagram.minorities[0]
    return f"K = {classes} classes; {_energy_words(diagram.weight_energy, float(diagram.feature_energies[0]))}"


def _group_words(majority: int, minority: int) -> str:
    return f"$k_A$ = {majority} majority, $k_B$ = {minority} minority"


def _energy_words(weight_energy: float, feature_energy: float) -> str:
    return f"energy of classifiers $E_W$ = {weight_energy:g}, of features $E_H$ = {feature_energy:g}"


def _plain_log_ticks(axes: Axes, which: str) -> None:
    """Decades (and 2 and 5 where few decades are shown) as plain numbers, powers of ten beyond 10⁵."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / max(low, 1e-300) < 1e3 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=12))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
