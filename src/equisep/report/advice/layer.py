"""What `equisep layer` and `equisep rank` say: the answer in words, the layers or models as a table, and as a drawing."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import Group, RenderableType
from rich.text import Text

from equisep.advice.layer.records import FewShot, LayerAdvice, LayerReading, RankAdvice
from equisep.report.formatting import Glyphs, ascii_text, percent, shortened_names
from equisep.report.legends import add_legend
from equisep.report.plots import LINE_COLORS, plain_text, save_figure
from equisep.report.tables import plain_table
from equisep.report.terminal import View, notes_block, prose

NARROW, WIDE = 18, 120  # of the column of names, and the terminal from which on all columns have room
SHOWN = (1, 10, 100)  # few shots that have a column
_DROPPED = ("dim", "95 %", "error 1")  # where there is no room
_LEGEND = (
    "In percent. loo: ridge probe on training samples, each left out; ridge, ncc: ridge probe and nearest class means on "
    "held-out samples; error m: nearest centers of m samples per class, and what their mean error is certified not to exceed."
)


def render_layers(advice: LayerAdvice) -> RenderableType:
    """The answer, then one line per layer."""

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        shots = [m for m in SHOWN if advice.chosen.shots(m) is not None]
        columns = _columns(advice, shots, glyphs, name_width=NARROW if width < WIDE else 2 * NARROW)
        if width < WIDE:
            columns = {title: cells for title, cells in columns.items() if title not in _DROPPED}
        titles, rows = list(columns), list(zip(*columns.values(), strict=True))
        table = plain_table(titles, rows, glyphs, left=("", "site"))
        first, *others = advice.sentences
        said = (prose(first, glyphs, style="bold"), *(prose(sentence, glyphs) for sentence in others))
        marks = prose("* chosen, = not told apart from it. " + _LEGEND, glyphs, style="dim")
        return Group(*said, Text(""), table, marks, *notes_block(advice.notes, glyphs))

    return View(build)


def _columns(advice: LayerAdvice, shots: list[int], glyphs: Glyphs, *, name_width: int) -> dict[str, list[str]]:
    """All columns by their titles."""
    layers = advice.layers
    columns = {
        "": [_mark(advice, each) for each in layers],
        "layer": [str(each.index) for each in layers],
        "site": shortened_names([each.site for each in layers], name_width, glyphs.ellipsis),
        "dim": [str(each.dim) for each in layers],
        "loo": [percent(each.loo) for each in layers],
        "ridge": [percent(each.accuracy) for each in layers],
        "95 %": [f"{percent(each.interval[0])} to {percent(each.interval[1])}" for each in layers],
        "ncc": [percent(each.ncc) for each in layers],
    }
    return columns | {f"error {m}": [_shot(each.shots(m), glyphs) for each in layers] for m in shots}


def _mark(advice: LayerAdvice, layer: LayerReading) -> str:
    if layer is advice.chosen:
        return "*"
    return "" if layer.apart else "="


def _shot(found: FewShot | None, glyphs: Glyphs) -> str:
    """`12.3 ≤ 45.6`: the error, and its certificate."""
    if found is None:
        return glyphs.missing
    return f"{percent(found.error)} {ascii_text('≤', glyphs)} {percent(found.certificate)}"


def render_ranking(ranking: RankAdvice) -> RenderableType:
    """The answer, then one line per model."""

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        top = ranking.models[0]
        titles = ["model", "layer", "site", "ridge", "95 %", "ahead of it\nby, points", "told apart"]
        rows = []
        for each in ranking.models:
            one = each.chosen
            pair = None if each is top else ranking.pair(top.model, each.model)
            behind, apart = "", ""
            if pair is not None:
                low, high = pair.hits.interval
                behind = f"{100 * pair.hits.difference:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
                apart = "yes" if pair.apart else "no"
            span = f"{percent(one.interval[0])} to {percent(one.interval[1])}"
            rows.append([each.model, str(one.index), one.site, percent(one.accuracy), span, behind, apart])
        table = plain_table(titles, rows, glyphs, left=("model", "site", "told apart"), fold=("model", "site"))
        answer = prose(ranking.sentence, glyphs, style="bold")
        return Group(answer, Text(""), table, *notes_block(ranking.notes, glyphs))

    return View(build)


def plot_layers(advice: LayerAdvice, path: str | Path) -> Path:
    """Accuracies over the layers, and few shots at the chosen one with their certificate, into a file."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_layers(left, advice)
    _draw_shots(right, advice)
    figure.suptitle(
        plain_text(f"{advice.model}, {advice.n} training and {advice.n_test} {advice.held_out}"), fontsize="medium"
    )
    return save_figure(figure, path)


def _draw_layers(axes: Axes, advice: LayerAdvice) -> None:
    numbers = [each.index for each in advice.layers]
    held = [100 * each.accuracy for each in advice.layers]
    reach = [
        [100 * (each.accuracy - each.interval[0]) for each in advice.layers],
        [100 * (each.interval[1] - each.accuracy) for each in advice.layers],
    ]
    axes.errorbar(
        numbers, held, yerr=reach, color=LINE_COLORS[0], marker="o", markersize=4, capsize=2, label="ridge, held out"
    )
    axes.plot(
        numbers, [100 * each.loo for each in advice.layers], ":", color=LINE_COLORS[0], label="ridge, leave-one-out"
    )
    axes.plot(
        numbers, [100 * each.ncc for each in advice.layers], "--", color=LINE_COLORS[1], label="nearest means, held out"
    )
    axes.axvline(advice.chosen.index, color="0.7", linewidth=0.8, zorder=0)
    axes.set_xlabel("layer (0 = input)" if numbers[0] == 0 else "layer")
    axes.set_ylabel("accuracy, %")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    add_legend(axes, grow="bottom", fontsize="small", framealpha=0.8, edgecolor="none")


def _draw_shots(axes: Axes, advice: LayerAdvice) -> None:
    shots = advice.chosen.few_shot
    ms = [each.m for each in shots]
    axes.errorbar(
        ms, [100 * each.error for each in shots], yerr=[100 * each.spread for each in shots], color=LINE_COLORS[1], marker="o",
        markersize=4, capsize=2, label=f"mean and deviation of {advice.draws} draws",
    )  # fmt: skip
    axes.plot(
        ms, [100 * each.certificate for each in shots], "s--", color=LINE_COLORS[2], markersize=4, label="certificate"
    )
    axes.axhline(100 * advice.chance, color="0.5", linewidth=0.8, label="chance")
    if ms:
        axes.set_xscale("log")
        axes.set_xticks(ms, [str(m) for m in ms], minor=False)
        axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"samples per class, layer {advice.chosen.index}")
    axes.set_ylabel("error of nearest centers, %")
    add_legend(axes, fontsize="small", framealpha=0.8, edgecolor="none")
