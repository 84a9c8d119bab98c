"""What the commands share: where they print, how they show progress, and how an error leaves."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar, final, get_type_hints

import typer
from rich.console import Console
from rich.text import Text
from typer.models import OptionInfo

from equisep.errors import EquisepError, InputError
from equisep.progress import Progress, plain_lines, silent, terminal_bars
from equisep.report.formatting import ASCII, UNICODE, Glyphs
from equisep.results import Note

P = ParamSpec("P")
R = TypeVar("R")


@final
class Screen(Console):
    """Rich's console; where the reader of a pipe has gone, rich would exit with 1, which says here that a claim failed."""

    def on_broken_pipe(self) -> None:
        """End as other programs do."""
        _hang_up()


out = Screen(emoji=False)  # `./net.py:factory:` is a path, and a class may be called `:dog:`
err = Screen(stderr=True, emoji=False)


def glyphs() -> Glyphs:
    """The characters that standard output can show."""
    return UNICODE if out.encoding.startswith("utf") else ASCII


def reported(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors leave as one sentence and the exit code of their kind."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except EquisepError as error:
            fail(in_options(str(error), options_of(command)), code=error.exit_code)
        except BrokenPipeError:  # who read the output has seen enough, as `head` does: nothing went wrong
            _hang_up()
        except OSError as error:
            fail(f"{error.filename or 'A file'}: {error.strerror or error}.", code=2)
        except KeyboardInterrupt:
            fail("Stopped. What was saved stays.", code=130)

    return run


def _hang_up() -> NoReturn:
    """End as a program does whose reader has gone, without a word; Python would complain when it flushes its output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else 1)


def options_of(command: Callable[..., Any]) -> dict[str, str]:
    """The options of a command by the name of the argument that each is in the library: `per_class` → `--per-class`."""
    hints = get_type_hints(command, include_extras=True)
    infos = {name: entry for name, hint in hints.items() for entry in getattr(hint, "__metadata__", ())}
    # inside Annotated the first name of an option stands where its default would
    return {name: str(info.default) for name, info in infos.items() if isinstance(info, OptionInfo)}


def in_options(text: str, options: Mapping[str, str]) -> str:
    """A sentence of the library, which speaks of arguments, as the command line says it.

    >>> in_options("Pass `classes=K`. A larger `epsilon` accepts less.", {"classes": "--classes", "epsilon": "--epsilon"})
    'Pass `--classes K`. A larger `--epsilon` accepts less.'
    """
    names = "|".join(map(re.escape, options))
    if not names:
        return text
    text = re.sub(r"`memory=(\d+)` bytes", lambda match: f"`memory={int(match[1]) / 2**30:.3g}` GiB", text)

    def given(match: re.Match[str]) -> str:
        value = match[2].strip("'\"")
        return f"{options[match[1]]} {value}".strip()

    text = re.sub(rf"(?<![\w-])({names})=('[^']*'|\"[^\"]*\"|[^\s`,;)]*[^\s`,;.)]|)", given, text)
    named = rf"(^|[.:] |\b(?:larger|smaller|[Pp]ass|Set|[Ww]ith|[Ww]ithout|to) )`({names})`"
    return re.sub(named, lambda match: f"{match[1]}`{options[match[2]]}`", text)


def notes_in_options(notes: Iterable[Note], options: Mapping[str, str]) -> tuple[Note, ...]:
    """Notes of the library, as the command line says them."""
    return tuple(replace(note, text=in_options(note.text, options)) for note in notes)


def fail(message: str, *, code: int) -> NoReturn:
    """One sentence on standard error, and an exit code."""
    _print_whole(Text.assemble(("equisep:", "bold red"), " ", message))
    raise typer.Exit(code)


def say(message: str = "", *, quiet: bool = False) -> None:
    """A line for people, on standard error, so that standard output holds results alone."""
    if not quiet:
        _print_whole(Text(message))


def _print_whole(message: Text) -> None:
    """On a terminal wrapped between words, elsewhere (in a file, say) one line."""
    err.print(message, soft_wrap=not err.is_terminal)


def print_json(value: Any) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()  # a reader that has gone is noticed here, not when Python ends


def say_saved(path: Path, what: str, *, quiet: bool) -> None:
    """Say where something was written."""
    say(f"{what}: {path}", quiet=quiet)


def command_record() -> dict[str, str]:
    """How this process was called, to stand beside what it made; nothing where it was no command, but a program in Python."""
    program = Path(sys.argv[0])
    ours = program.stem == "equisep" or (program.name == "__main__.py" and program.parent.name == "equisep")
    return {"command": shlex.join(["equisep", *sys.argv[1:]])} if ours else {}


def usable_folder(path: Path, *, flag: str) -> Path:
    """A folder that can be written to, made where it is missing: asked before the work, not after."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise InputError(
            f"`{flag} {path}` cannot be written to: {error.strerror or error}. Name another folder."
        ) from error


def usable_file(path: Path | None, *, flag: str, endings: Sequence[str]) -> Path | None:
    """A file that can be written, with an ending that says what it will hold."""
    if path is None:
        return None
    if path.suffix.lower() not in endings:
        raise InputError(f"`{flag} {path}` should end in {', '.join(endings)}.")
    if path.is_dir():
        raise InputError(f"`{flag} {path}` is a folder. Name a file.")
    usable_folder(path.parent, flag=flag)
    return path


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Progress]:
    """Bars on a terminal, a plain line now and then elsewhere, nothing when quiet or quick."""
    if quiet:
        yield silent
    elif err.is_terminal:
        with terminal_bars(err) as bars:
            yield bars
    else:
        yield plain_lines(say)
