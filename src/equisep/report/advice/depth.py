"""A search for a depth in the terminal: the answer in words, then one row per depth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from equisep.advice.depth.records import DepthAdvice, Trial
from equisep.law.seeds import seed_interval
from equisep.report.formatting import Glyphs, ascii_text, correlation, number, percent
from equisep.report.tables import plain_table, room_beside
from equisep.report.terminal import View
from equisep.results import Interval

CHOSEN = ">"  # stands before the recommended depth
KEY = (
    "train %, test %: accuracy, ± over seeds and test samples; last D: at the last layer before the classifier, with its "
    "interval over seeds; depth*: effective depth, the layer from which on nearest class means separate the training data."
)


def render_depth(advice: DepthAdvice, sentences: Sequence[str]) -> RenderableType:
    """The first of the `sentences`, the table of all trials, and the other sentences."""
    return View(lambda glyphs, width: Group(*_blocks(advice, sentences, glyphs, width)))


def _blocks(advice: DepthAdvice, sentences: Sequence[str], glyphs: Glyphs, width: int) -> Iterable[RenderableType]:
    first, *others = sentences
    yield Text(ascii_text(first, glyphs), style="bold")
    yield Padding(_table(advice, glyphs, width), (1, 0, 0, 0))
    yield Padding(Text(ascii_text(KEY, glyphs), style="dim"), (0, 0, 1, 0))
    for sentence in others:
        yield Text(ascii_text(sentence, glyphs))
    for note in advice.notes:
        yield Text.assemble(("Note  ", "yellow"), ascii_text(str(note), glyphs))


def _table(advice: DepthAdvice, glyphs: Glyphs, width: int) -> RenderableType:
    trials, missing, level = advice.trials, glyphs.missing, advice.settings.level
    columns: dict[str, list[str]] = {
        "depth": [f"{CHOSEN if index == advice.recommended else ''}{trial.depth}" for index, trial in enumerate(trials)]
    }
    if len(advice.settings.widths) > 1:
        columns["width"] = [str(trial.width) for trial in trials]
    if len(advice.settings.rates) > 1:
        columns["rate"] = [f"{trial.rate:g}" for trial in trials]
    columns["train %"] = [percent(trial.mean_accuracy, missing=missing) for trial in trials]
    columns["test %"] = [_accuracy(trial, glyphs) for trial in trials]
    columns["last D"] = [number(trial.mean_last, 2, missing=missing) for trial in trials]
    columns["interval"] = [_fuzziness_limits(trial, level) for trial in trials]
    columns[glyphs.rho] = [_mean(trial.rho, missing) for trial in trials]
    columns["r"] = [correlation(_known_mean(trial.r), missing=missing) for trial in trials]
    columns["depth*"] = [_effective(trial, missing) for trial in trials]
    if room_beside(columns, width) < 0:
        del columns["interval"]
    rows = zip(*columns.values(), strict=True)
    return plain_table(tuple(columns), rows, glyphs)


def _accuracy(trial: Trial, glyphs: Glyphs) -> str:
    words = percent(trial.mean_accuracy_test, missing=glyphs.missing)
    interval = trial.accuracy_interval
    return words if interval is None else ascii_text(f"{words} ± {50 * (interval.high - interval.low):.1f}", glyphs)


def fuzziness_interval(trial: Trial, level: float) -> Interval | None:
    """The t-interval of the mean of ln D at the last layer over seeds, transformed back."""
    if trial.mean_last is None:
        return None
    band = seed_interval([math.log(value) for value in trial.last if value], level)
    return Interval(math.exp(band.low), math.exp(band.high), level, "seeds", band.n)


def _fuzziness_limits(trial: Trial, level: float) -> str:
    band = fuzziness_interval(trial, level)
    return "" if band is None else f"[{number(band.low, 2)}, {number(band.high, 2)}]"


def _known_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _mean(values: Sequence[float | None], missing: str) -> str:
    return number(_known_mean(values), 3, missing=missing)


def _effective(trial: Trial, missing: str) -> str:
    """The mean over seeds; where some have none, of how many."""
    known = [value for value in trial.effective_depth if value is not None]
    if not known:
        return missing
    mean = f"{sum(known) / len(known):.3g}"
    return mean if len(known) == len(trial.effective_depth) else f"{mean} ({len(known)}/{len(trial.effective_depth)})"
