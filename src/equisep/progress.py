"""How long work says how far it is: a callback, and bars for whoever watches, in a terminal or a notebook.

Functions that may take longer than two seconds have `progress=`: a callback of yours; None, the default, for bars where someone
watches (standard error is a terminal, or a notebook shows it), and nothing elsewhere; False for none; True for bars or, without a
terminal, a plain line on standard error now and then. Standard output is never written to.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")
R = TypeVar("R")
Progress = Callable[[str, int, int | None], None]
"""Called as `progress(what, done, total)`; `total` is None where it is not known."""
Watched = Progress | bool | None
"""What `progress=` takes: a callback, or whether to show bars (None: where someone watches)."""

QUIET_SECONDS = 2.0  # work shorter than this shows no progress
LINE_SECONDS = 10.0  # without a terminal, a plain line this often
REFRESH_SECONDS = 0.2  # of a notebook


def silent(what: str, done: int, total: int | None) -> None:
    """The progress callback of code that nobody watches."""


def watched(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose `progress=` may be left out or be True or False: it is called with a callback, see `callback`."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with shown(kwargs.get("progress")) as progress:  # type: ignore[arg-type]
            kwargs["progress"] = progress
            return function(*args, **kwargs)

    return run


def callback(progress: Watched) -> Progress:
    """The callback that `watched` made of what was asked for."""
    return progress if callable(progress) else silent


@contextmanager
def shown(progress: Watched = None) -> Iterator[Progress]:
    """A callback: the given one, or bars where someone watches, which are gone when the work is done."""
    if callable(progress):
        yield progress
    elif progress is False:
        yield silent
    elif _in_notebook():
        with notebook_bars() as bars:
            yield bars
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        with terminal_bars(Console(stderr=True, emoji=False)) as bars:
            yield bars
    else:
        yield plain_lines(_on_stderr) if progress else silent


def _in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook: IPython's shell has one there, and none in a terminal."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and hasattr(get_ipython(), "kernel")


def _on_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")


def _worth_showing() -> Callable[[str], bool]:
    """Whether work of that name has gone on for long enough to be shown."""
    began: dict[str, float] = {}
    return lambda what: time.monotonic() - began.setdefault(what, time.monotonic()) >= QUIET_SECONDS


@contextmanager
def terminal_bars(console: Console) -> Iterator[Progress]:
    """A bar per piece of work that takes longer than two seconds, gone in the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    bars = Bars(*columns, console=console, transient=True)
    tasks: dict[str, TaskID] = {}
    long = _worth_showing()

    def show(what: str, done: int, total: int | None) -> None:
        if long(what):
            if what not in tasks:
                bars.start()  # only now: quick work leaves the terminal alone
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

    try:
        yield show
    finally:
        if tasks:
            bars.stop()


@contextmanager
def notebook_bars() -> Iterator[Progress]:
    """One line of output below the cell, redrawn as the work goes on, empty in the end; needs no widgets."""
    ipython: Any = importlib.import_module("IPython.display")  # there in every notebook, and no dependency of ours
    handle: list[Any] = []
    long, last = _worth_showing(), [0.0]

    def show(what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if not long(what) or now - last[0] < REFRESH_SECONDS:
            return
        last[0] = now
        bar = ipython.HTML(bar_html(what, done, total))
        if handle:
            handle[0].update(bar)
        else:
            handle.append(ipython.display(bar, display_id=True))

    try:
        yield show
    finally:
        if handle:
            handle[0].update(ipython.HTML(""))


def bar_html(what: str, done: int, total: int | None) -> str:
    """A bar of the browser's own, with what is done in words."""
    share = "" if total is None else f' value="{done}" max="{total}"'
    count = f"{done}" if total is None else f"{done} of {total}"
    return f'<div role="status">{escape(what)} <progress{share}></progress> {count}</div>'


def plain_lines(say: Callable[[str], None]) -> Progress:
    """A line now and then, for logs."""
    spoke: dict[str, float] = {}

    def show(what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        last = spoke.setdefault(what, now)
        if now - last >= LINE_SECONDS:
            spoke[what] = now
            say(f"{what}: {done}{f' of {total}' if total else ''}")

    return show
