"""A search for a depth in the terminal: the answer in words, then one row per depth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding

from equisep.advice.depth.records import DepthAdvice, Summary, Trial
from equisep.report.formatting import Glyphs, ascii_text, correlation, limits, number, percent
from equisep.report.tables import plain_table, room_beside
from equisep.report.terminal import View, prose

NOTHING = Summary(None, None, 0)
CHOSEN = ">"  # stands before the recommended depth
KEY = (
    "train %, test %: accuracy, ± over seeds and test samples; last D: at the last layer before the classifier; depth*: "
    "effective depth, the layer from which on nearest class means separate the training data; intervals: over seeds."
)


def render_depth(advice: DepthAdvice, sentences: Sequence[str]) -> RenderableType:
    """The first of the `sentences`, the table of all trials, and the other sentences."""
    return View(lambda glyphs, width: Group(*_blocks(advice, sentences, glyphs, width)))


def _blocks(advice: DepthAdvice, sentences: Sequence[str], glyphs: Glyphs, width: int) -> Iterable[RenderableType]:
    first, *others = sentences
    yield prose(first, glyphs, style="bold")
    yield Padding(_table(advice, glyphs, width), (1, 0, 0, 0))
    yield Padding(prose(KEY, glyphs, style="dim"), (0, 0, 1, 0))
    for sentence in others:
        yield prose(sentence, glyphs)


def _table(advice: DepthAdvice, glyphs: Glyphs, width: int) -> RenderableType:
    """One row per trial. Intervals that a narrow terminal has no room for are left out."""
    trials, missing = advice.trials, glyphs.missing
    columns: dict[str, list[str]] = {
        "depth": [f"{CHOSEN if index == advice.recommended else ''}{trial.depth}" for index, trial in enumerate(trials)]
    }
    if len(advice.settings.widths) > 1:
        columns["width"] = [str(trial.width) if trial.depth > 1 else missing for trial in trials]
    if len(advice.settings.rates) > 1:
        columns["rate"] = [f"{trial.rate:g}" for trial in trials]
    columns["train %"] = [percent(trial.mean_accuracy, missing=missing) for trial in trials]
    columns["test %"] = [_accuracy(trial, glyphs) for trial in trials]
    for title, name, digits in (
        ("last D", "last", 2),
        (glyphs.rho, "rho", 3),
        ("r", "r", 4),
        ("depth*", "effective_depth", 2),
    ):
        own = [trial.summaries.get(name, NOTHING) for trial in trials]
        columns[title] = [
            _mean(each, name, digits, len(trial.last), missing) for each, trial in zip(own, trials, strict=True)
        ]
        columns[f"interval\n{title}"] = [limits(each.interval, digits).strip() for each in own]
    for title in ("r", "depth*", glyphs.rho, "last D"):  # the first to go
        if room_beside(columns, width) < 0:
            del columns[f"interval\n{title}"]
    return plain_table(tuple(columns), zip(*columns.values(), strict=True), glyphs)


def _accuracy(trial: Trial, glyphs: Glyphs) -> str:
    words, interval = percent(trial.mean_accuracy_test, missing=glyphs.missing), None
    if "accuracy_test" in trial.summaries:
        interval = trial.summaries["accuracy_test"].interval
    return words if interval is None else ascii_text(f"{words} ± {50 * (interval.high - interval.low):.1f}", glyphs)


def _mean(own: Summary, name: str, digits: int, seeds: int, missing: str) -> str:
    """The mean over seeds; where only some have the number, of how many."""
    if own.mean is None:
        return missing
    if name == "r":
        return correlation(own.mean)
    words = f"{own.mean:.3g}" if name == "effective_depth" else number(own.mean, digits)
    return words if own.n == seeds else f"{words} ({own.n}/{seeds})"
