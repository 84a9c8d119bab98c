"""The answer of `equisep noise` in the terminal: the sentence first, then every size of noise, then layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.advice.noise.answer import Mean, NoiseAnswer
from equisep.report.formatting import Glyphs, number, one_line
from equisep.report.tables import plain_table
from equisep.report.terminal import View, noted, prose


def render_noise(answer: NoiseAnswer, said: Callable[[str], str] = str) -> RenderableType:
    """The answer and its tables; `said` turns a sentence of the library into the caller's words."""
    return View(lambda glyphs, width: Group(*_parts(answer, said, glyphs)))


def _parts(answer: NoiseAnswer, said: Callable[[str], str], glyphs: Glyphs) -> Iterator[RenderableType]:
    yield prose(said(answer.sentence), glyphs, style="bold")
    yield Text("")
    rows = [["0", f"{100 * answer.accuracy:.1f}", "", number(answer.last, 3, missing=glyphs.missing),
             number(answer.rho, 3, missing=glyphs.missing)]]  # fmt: skip
    for level in answer.levels:
        last, rho = (_value(mean, glyphs) for mean in (level.last, level.rho))
        rows.append(
            [f"{100 * level.sigma:.3g}", f"{100 * level.accuracy.value:.1f}", _limits(level.accuracy), last, rho]
        )
    yield plain_table(("noise, %", "test %", "interval", "last D", glyphs.rho), rows, glyphs, left=("interval",))
    if answer.layers:
        yield Text("")
        ordered = sorted(answer.layers, key=lambda layer: -layer.loss.value)
        cells = [[one_line(layer.name), f"{100 * layer.loss.value:.1f}", _limits(layer.loss)] for layer in ordered]
        titles = ("noise on this tensor alone", "points lost", "interval")
        yield plain_table(titles, cells, glyphs, left=(titles[0], "interval"), fold=(titles[0],))
    yield Text("")
    words = (
        f"noise: its norm over that of each weight tensor. Means over {answer.draws} draws, the same noise at every size; "
        f"intervals at {100 * answer.level:g} %, over draws, for these {answer.n_test:,} test samples. D and {glyphs.rho}: "
        "of the training data."
    )
    yield prose(words, glyphs)
    for note in answer.notes:
        yield noted(said(str(note)), glyphs)


def _value(mean: Mean | None, glyphs: Glyphs) -> str:
    return glyphs.missing if mean is None else number(mean.value, 3)


def _limits(mean: Mean) -> str:
    return "" if mean.low is None or mean.high is None else f"[{100 * mean.low:.1f}, {100 * mean.high:.1f}]"
