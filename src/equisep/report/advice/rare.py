"""The answer on rare classes in the terminal: a sentence, the classes, and weights to paste into code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.advice.rare.records import CAUTION, Fate, RareClasses, rounded_up
from equisep.report.formatting import Glyphs, number, percent
from equisep.report.peeled.terminal import Row, state_word, table_of
from equisep.report.terminal import View, noted, prose

_STYLES = {Fate.TOLD_APART: "", Fate.IN_PART: "red", Fate.LOST: "bold red"}
MOST_PRINTED = 200  # classes whose weights are printed as a list; --json has them all


def render_rare(found: RareClasses) -> RenderableType:
    """Who is lost, class by class, and the least weights, as Python lists."""
    return View(lambda glyphs, width: Group(*_blocks(found, glyphs)))


def _blocks(found: RareClasses, glyphs: Glyphs) -> Iterable[RenderableType]:
    lost = any(one.lost for one in found.at) or bool(found.measured is not None and found.measured.lost)
    yield prose(found.answer, glyphs, style="bold red" if lost else "bold")
    yield _classes(found, glyphs)
    yield from _weights(found, glyphs)
    yield prose(CAUTION, glyphs, style="dim")
    for note in found.measured.notes if found.measured is not None else ():
        yield noted(str(note), glyphs)


def _classes(found: RareClasses, glyphs: Glyphs) -> RenderableType:
    """One row per class: size, fate, margins; of a network also what was measured."""
    network = found.measured
    many = len(found.at) > 1
    titles = ["class", "size", *(f"margin\nE = {one.energy:.4g}" for one in found.at)]
    titles += ["over all" if many else "predicted"]
    if network is not None:
        titles += ["margin\nmeasured", "measured", *(["test\nacc. %"] if network.test_accuracy is not None else [])]
    rows: list[Row] = []
    for k, size in enumerate(found.sizes):
        word = _fate(found.fates[k]) if many else state_word(found.at[0].states[k])
        row: Row = [str(k), str(size), *(number(one.margins[k], 3) for one in found.at), word]
        if network is not None:
            state = network.states[k]
            row += [number(network.margins[k], 3, missing=glyphs.missing)]
            row += [glyphs.missing if state is None else state_word(state)]
            row += [] if network.test_accuracy is None else [percent(network.test_accuracy[k], missing=glyphs.missing)]
        rows.append(row)
    return table_of(titles, rows, glyphs, left=("over all", "predicted", "measured"))


def _fate(fate: Fate) -> Text:
    """The fate without `throughout`, which the head of the column says."""
    return Text(fate.value.removesuffix(" throughout"), style=_STYLES[fate])


def _weights(found: RareClasses, glyphs: Glyphs) -> Iterable[RenderableType]:
    """The least weights at each energy where some class is lost, the two kinds apart where they differ."""
    if len(found.sizes) > MOST_PRINTED:
        yield Text(f"{len(found.sizes)} classes: --json prints the weights of all.", style="dim")
        return
    for one in found.at:
        if not one.lost:
            continue
        yield Text(f"least loss weights at E = {one.energy:.4g}, or how often to repeat each sample", style="bold")
        parted, margin, half = map(_rounded, (one.collapse_weights, one.margin_weights, one.half_weights))
        if parted != margin:
            yield Text(f"  no classifiers coincide   weight={parted}")
        same = " (and no classifiers coincide)" if parted == margin else ""
        yield Text(f"  every margin above 0      weight={margin}{same}")
        yield Text(f"  half that of equal sizes  weight={half}")


def _rounded(weights: Sequence[float]) -> list[float]:
    return [rounded_up(weight) for weight in weights]
