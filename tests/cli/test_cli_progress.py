"""Progress and remarks: bars and wrapped lines on a terminal, plain lines elsewhere, nothing when quiet or quick."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable

import pytest
import typer
from rich.console import Console

from equisep.cli import console
from equisep.progress import silent


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=text, width=100))
    return text


def test_without_a_terminal_a_line_every_ten_seconds(clock: list[float], stderr: io.StringIO) -> None:
    with console.progress_bars(quiet=False) as progress:
        for second in range(26):
            clock[0] = float(second)
            progress("training", second, 600)
    assert stderr.getvalue() == "training: 10 of 600\ntraining: 20 of 600\n"


def test_without_a_known_total_the_count_alone(clock: list[float], stderr: io.StringIO) -> None:
    with console.progress_bars(quiet=False) as progress:
        progress("reading", 1, None)
        clock[0] = 11.0
        progress("reading", 7, None)
    assert stderr.getvalue() == "reading: 7\n"


def test_quick_work_shows_nothing(clock: list[float], stderr: io.StringIO) -> None:
    with console.progress_bars(quiet=False) as progress:
        for done in range(100):
            progress("statistics", done, 100)
    assert stderr.getvalue() == ""


def test_quiet_is_silent() -> None:
    with console.progress_bars(quiet=True) as progress:
        assert progress is silent


def test_on_a_terminal_a_bar_after_two_seconds(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=text, force_terminal=True, width=100))
    with console.progress_bars(quiet=False) as progress:
        progress("training", 1, 600)
        clock[0] = 1.0
        progress("training", 100, 600)
        assert "training" not in text.getvalue()
        clock[0] = 3.0
        progress("training", 300, 600)
    assert "training" in text.getvalue()
    assert "300/600" in text.getvalue()


LONG = "`--model nets:Net` could not run the first batch of the training data, which has numbers of another shape."


@pytest.mark.parametrize("speak", [console.say, lambda text: console.fail(text, code=2)])
def test_a_terminal_breaks_lines_between_words(speak: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, width=40, no_color=True)
    monkeypatch.setattr(console, "err", terminal)
    with contextlib.suppress(typer.Exit):
        speak(LONG)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text.getvalue()).splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()).endswith(LONG)


def test_a_file_gets_whole_lines(stderr: io.StringIO) -> None:
    console.say(LONG * 2)
    assert stderr.getvalue() == LONG * 2 + "\n"
