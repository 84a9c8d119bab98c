"""The answer of `equisep cut` in the terminal: the sentence first, then every cut beside the whole network."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.advice.cut.answer import CutAnswer, CutOption
from equisep.report.formatting import Glyphs, number, one_line, shortened_names
from equisep.report.tables import plain_table, room_beside
from equisep.report.terminal import View, noted, prose

_LEAST_NAME = 12
_STYLES = {"cut": "bold green", "not shown": "bold yellow", "no redundancy": "bold"}


def render_cut(answer: CutAnswer, said: Callable[[str], str] = str) -> RenderableType:
    """The answer, the table, and what the columns mean; `said` turns a sentence of the library into the caller's words."""
    return View(lambda glyphs, width: Group(*_parts(answer, said, glyphs, width)))


def _parts(answer: CutAnswer, said: Callable[[str], str], glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    yield prose(said(answer.sentence), glyphs, style=_STYLES[answer.verdict])
    yield Text("")
    yield _table(answer, glyphs, width)
    yield Text("")
    yield prose(_legend(answer), glyphs)
    for note in answer.notes:
        yield noted(said(str(note)), glyphs)
    if answer.stopped is not None:
        yield noted(answer.stopped, glyphs)


def _table(answer: CutAnswer, glyphs: Glyphs, width: int) -> RenderableType:
    whole, missing = answer.whole, glyphs.missing
    columns: dict[str, list[str]] = {
        "layer": [missing if o.index is None else str(o.index) for o in answer.options] + [""],
        "test %": [*(_percent(o.accuracy, answer) for o in answer.options), _percent(whole.accuracy, answer)],
        "loss,\npoints": [*(f"{100 * o.loss.loss:.2f}" for o in answer.options), ""],
        "at most": [*(f"{100 * o.loss.most:.2f}" for o in answer.options), ""],
        "parameters": [
            *(missing if o.parameters is None else f"{o.parameters:,}" for o in answer.options),
            f"{whole.parameters:,}",
        ],
        "ms": [*(number(o.milliseconds, 3, missing=missing) for o in answer.options), number(whole.milliseconds, 3)],
        "time %": [
            *(missing if o.time_share is None else f"{100 * o.time_share:.0f}" for o in answer.options), "100"
        ],
        "": [*(_mark(o, answer) for o in answer.options), ""],
    }  # fmt: skip
    names = [one_line(option.site) for option in answer.options]
    room = max(_LEAST_NAME, room_beside(columns, width))
    columns["cut after"] = [*shortened_names(names, room, glyphs.ellipsis), "(whole network)"]
    titles = ["layer", "cut after", *(title for title in columns if title not in ("layer", "cut after"))]
    rows = list(zip(*(columns[title] for title in titles), strict=True))
    return plain_table(titles, rows, glyphs, left=("cut after", ""))


def _mark(option: CutOption, answer: CutAnswer) -> str:
    return "*" if option.site == answer.chosen else "?" if option.site == answer.perhaps else ""


def _legend(answer: CutAnswer) -> str:
    same = "the network" if answer.baseline == "network" else "the last layer's head"
    how = "as exported graphs" if answer.mode == "graph" else "eagerly"
    device = (
        f"{answer.device}, {answer.threads} thread{'s' if answer.threads != 1 else ''}"
        if answer.device == "cpu"
        else answer.device
    )
    words = (
        f"loss: of test accuracy against {same} on the same samples; at most: with {100 * answer.level:g} % confidence. "
        f"ms: median of {answer.rounds} rounds over a batch of {answer.batch}, all in turns, {how}, on {device}; time %: median "
        "of the ratios within a round."
    )
    marks = [
        text
        for text, known in (("*: recommended.", answer.chosen), ("?: to be tested on other samples.", answer.perhaps))
        if known and answer.asked is None
    ]
    return " ".join([words, *marks])


def _percent(share: float, answer: CutAnswer) -> str:
    return f"{100 * share:.{2 if answer.n >= 1000 else 1}f}"
