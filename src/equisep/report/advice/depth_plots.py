"""A search for a depth drawn (matplotlib): test accuracy, final D, ρ and effective depth against depth, with bands."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from equisep.advice.depth.records import DepthAdvice, Trial
from equisep.errors import InputError
from equisep.report.legends import add_legend
from equisep.report.plots import LINE_COLORS, plain_text, save_figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
Point = tuple[int, float, float, float]  # depth, mean, and the limits of its interval


def plot_depths(advice: DepthAdvice, path: str | Path | None = None) -> Figure:
    """Four panels over depth; saved where a `path` is given.

    Test accuracy has its interval over seeds and test samples; what is hard in the test samples is hard for all depths, and the
    bars show what is left of that in the difference to the best. D (geometric mean), ρ and effective depth have theirs over
    seeds. A dashed line stands at the recommended depth, an open ring marks the least final D; hollow points are depths that
    were left out.
    """
    if not any(trial.mean_accuracy_test is not None for trial in advice.trials):
        raise InputError("There is nothing to draw: every training diverged. Lower the rate.")
    figure = Figure(figsize=(10, 7), layout="constrained")
    accuracy, fuzziness, ratio, effective = (axes for row in figure.subplots(2, 2, sharex=True) for axes in row)
    _draw(accuracy, advice, "accuracy_test")
    _draw_differences(accuracy, advice)
    _draw(fuzziness, advice, "last")
    _draw(ratio, advice, "rho")
    _draw(effective, advice, "effective_depth")
    _finish(advice, accuracy, fuzziness, ratio, effective)
    figure.suptitle(plain_text(_title(advice)), fontsize="medium")
    if path is not None:
        save_figure(figure, path)
    return figure


def _title(advice: DepthAdvice) -> str:
    answer = "the evidence does not tell" if advice.depth is None else f"depth {advice.depth} is recommended"
    data = advice.data
    about = f"{data['samples']} training samples, " if "samples" in data else ""
    return (
        f"{advice.settings.family}: {answer} ({about}{advice.settings.seeds} seeds, {advice.settings.reading} reading)"
    )


def _draw(axes: Axes, advice: DepthAdvice, name: str) -> None:
    """One line per width and rate, its band, and hollow points where a trial does not count."""
    lines = dict.fromkeys((trial.width if trial.depth > 1 else None, trial.rate) for trial in advice.trials)
    kinds = [key for key in lines if key[0] is not None] or list(lines)
    for place, (width, rate) in enumerate(kinds):
        color, marker = LINE_COLORS[place % len(LINE_COLORS)], MARKERS[place % len(MARKERS)]
        own = [
            (index, point)
            for index, trial in enumerate(advice.trials)
            if trial.rate == rate and trial.width in (width, 0) and (point := _point(trial, name)) is not None
        ]
        if not own:
            continue
        at, mean, low, high = (list(column) for column in zip(*(point for _, point in own), strict=True))
        axes.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0, zorder=1)
        axes.plot(at, mean, color=color, linewidth=1.4, zorder=2, label=_label(advice, width, rate))
        for index, point in own:
            fill = "white" if index in advice.left_out else color
            axes.plot(
                point[0],
                point[1],
                marker=marker,
                markersize=5.5,
                color=color,
                markerfacecolor=fill,
                linestyle="none",
                zorder=3,
            )


def _draw_differences(axes: Axes, advice: DepthAdvice) -> None:
    """The interval of the difference to the best depth, about the accuracy of each."""
    if advice.best is None or (top := advice.trials[advice.best].mean_accuracy_test) is None:
        return
    bars = [
        (advice.trials[each.trial].depth, each.beside_best) for each in advice.standings if each.beside_best is not None
    ]
    for place, (depth, interval) in enumerate(bars):
        label = "paired with the best" if place == 0 else None
        axes.plot([depth, depth], [top + interval.low, top + interval.high], color="0.25", linewidth=1.2, label=label)


def _label(advice: DepthAdvice, width: int | None, rate: float) -> str:
    words = [f"width {width}"] if len(advice.settings.widths) > 1 else []
    words += [f"rate {rate:g}"] if len(advice.settings.rates) > 1 else []
    return ", ".join(words)


def _finish(advice: DepthAdvice, accuracy: Axes, fuzziness: Axes, ratio: Axes, effective: Axes) -> None:
    accuracy.set_ylabel("test accuracy")
    accuracy.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    fuzziness.set_ylabel("final D on training data")
    fuzziness.set_yscale("log")
    fuzziness.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    fuzziness.yaxis.set_minor_locator(NullLocator())
    fuzziness.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ratio.set_ylabel("ρ, the factor on D per layer")
    effective.set_ylabel("effective depth, layers")
    tops = sorted({trial.depth for trial in advice.trials})
    effective.plot(tops, [depth - 1 for depth in tops], color="0.6", linewidth=0.9, linestyle=":", label="last layer")
    if advice.least is not None:
        trial = advice.trials[advice.least]
        ring = {"marker": "o", "markersize": 13, "markerfacecolor": "none", "linestyle": "none", "color": "0.2"}
        fuzziness.plot(trial.depth, trial.mean_last, label="least", **ring)  # type: ignore[arg-type]
    for axes in (accuracy, fuzziness, ratio, effective):
        if advice.depth is not None:
            name = "recommended" if axes is accuracy else None
            axes.axvline(advice.depth, color="0.3", linestyle="--", linewidth=1.0, zorder=0, label=name)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, which="major", alpha=0.2, linewidth=0.6)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        if any(axes.get_legend_handles_labels()[1]):
            add_legend(axes, fontsize="small", framealpha=0.8, edgecolor="none")
    for axes in (ratio, effective):
        axes.set_xlabel("depth: linear layers, with the classifier")


def _point(trial: Trial, name: str) -> Point | None:
    """Mean and interval of a number that two seeds have at least."""
    own = trial.summaries.get(name)
    if own is None or own.mean is None or own.interval is None:
        return None
    return trial.depth, own.mean, own.interval.low, own.interval.high
