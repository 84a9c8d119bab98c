"""Progress and remarks: bars and wrapped lines on a terminal, plain lines elsewhere, nothing when quiet or quick."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest
import typer
from rich.console import Console

import equisep.progress as progress_module
from equisep.cli import console
from equisep.errors import InputError
from equisep.progress import Watched, callback, silent, watched


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
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


class Screen(io.StringIO):
    """Standard error of a terminal."""

    def isatty(self) -> bool:
        return True


@watched
def work(steps: int, *, progress: Watched = None) -> str:
    for step in range(steps):
        callback(progress)("working", step, steps)
    if steps > 5:
        raise InputError("too many")
    return "done"


def test_from_python_bars_show_where_someone_watches(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: clock.append(clock[-1] + 1.5) or clock[-1])
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    assert work(4) == "done" and "working" in screen.getvalue()
    with pytest.raises(InputError):
        work(9)
    assert screen.getvalue().count("\x1b[?25h") == screen.getvalue().count("\x1b[?25l") == 2  # the cursor is back
    quiet = Screen()
    monkeypatch.setattr(sys, "stderr", quiet)
    assert work(4, progress=False) == "done" and quiet.getvalue() == ""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    assert work(4) == "done" and log.getvalue() == ""
    monkeypatch.setattr(progress_module, "LINE_SECONDS", 1.0)
    assert work(4, progress=True) == "done" and log.getvalue().startswith("working: 1 of 4\n")
    assert capsys.readouterr().out == ""


def test_a_callback_is_called_as_it_is() -> None:
    calls: list[tuple[str, int, int | None]] = []
    work(2, progress=lambda *call: calls.append(call))
    assert calls == [("working", 0, 2), ("working", 1, 2)]


def test_a_notebook_shows_one_line_that_is_gone_in_the_end(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """As IPython's kernel has it: `get_ipython().kernel`, `display(…, display_id=True)` and its `update`."""
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)

    def display(html: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(html)
        return handle

    ipython = ModuleType("IPython")
    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(kernel=None), raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    assert work(4) == "done" and shown == []  # no time has passed
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: clock.append(clock[-1] + 1.5) or clock[-1])
    work(4)
    assert shown[-1] == "" and len(shown) >= 3
    assert shown[0].startswith('<div role="status">working <progress value="1" max="4"></progress> 1 of 4')


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = ModuleType("IPython")
    monkeypatch.setattr(ipython, "get_ipython", SimpleNamespace, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    with progress_module.shown() as progress:
        assert progress is silent


def test_what_is_worked_on_is_text_in_a_notebook() -> None:
    assert "<script>" not in progress_module.bar_html("<script>", 1, None)
