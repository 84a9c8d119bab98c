"""The answer of `equisep transfer` in the terminal: the sentence first, then one row per number of kept layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding

from equisep.advice.depth.records import Summary
from equisep.advice.transfer.answer import TransferAnswer, TransferTrial
from equisep.report.formatting import Glyphs, ascii_text, number, one_line
from equisep.report.tables import plain_table
from equisep.report.terminal import View, noted, prose

CHOSEN = ">"  # stands before the recommended number
KEY = (
    "kept: layers fixed, up to the one named; load: ln D of the layer before less ln D, on the new training data, mean over the "
    "kept layers (bottom) and over those after them (top); ± : over seeds."
)


def render_transfer(answer: TransferAnswer, sentences: Sequence[str]) -> RenderableType:
    """The first of the `sentences`, the table of all choices, and the other sentences."""
    return View(lambda glyphs, width: Group(*_blocks(answer, sentences, glyphs)))


def _blocks(answer: TransferAnswer, sentences: Sequence[str], glyphs: Glyphs) -> Iterator[RenderableType]:
    first, *others = sentences
    yield prose(first, glyphs, style="bold")
    titles = ("kept", "up to", "trained", "train %", "test %", "bottom load", "top load")
    rows = [_row(answer, index, trial, glyphs) for index, trial in enumerate(answer.trials)]
    yield Padding(plain_table(titles, rows, glyphs, left=("up to",), fold=("up to",)), (1, 0, 0, 0))
    yield Padding(prose(KEY, glyphs, style="dim"), (0, 0, 1, 0))
    for sentence in others:
        yield prose(sentence, glyphs)
    for note in answer.notes:
        yield noted(str(note), glyphs)


def _row(answer: TransferAnswer, index: int, trial: TransferTrial, glyphs: Glyphs) -> list[str]:
    mark = CHOSEN if index == answer.recommended else ""
    shares = [_shown(trial.summary(name, answer.level), 100, 1, glyphs) for name in ("accuracy", "accuracy_test")]
    loads = [_shown(trial.summary(name, answer.level), 1, 2, glyphs) for name in ("bottom", "top")]
    site = glyphs.missing if trial.site is None else one_line(trial.site)
    return [f"{mark}{trial.kept}", site, f"{trial.parameters:,}", *shares, *loads]


def _shown(own: Summary, factor: float, digits: int, glyphs: Glyphs) -> str:
    if own.mean is None:
        return glyphs.missing
    words = f"{factor * own.mean:.{digits}f}" if factor != 1 else number(own.mean, digits + 1)
    if own.interval is None or own.interval.low == own.interval.high:  # fixed layers are the same for every seed
        return words
    return ascii_text(f"{words} ± {factor * (own.interval.high - own.interval.low) / 2:.{digits}f}", glyphs)
