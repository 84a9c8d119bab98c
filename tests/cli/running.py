"""The command line as a user runs it: in another folder, in this process or in one of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


@contextlib.contextmanager
def own_modules() -> Iterator[None]:
    """What a command imports from the folder that it runs in is forgotten: another test has a module of the same name."""
    folder, before = Path.cwd().resolve(), set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).resolve().is_relative_to(folder):
                del sys.modules[name]


def equisep(*words: str | Path, folder: Path, charset: str = "utf-8") -> Done:
    """Run `equisep …` in a folder, in this process (quick: torch is loaded already), for a terminal of these characters."""
    from equisep.cli.app import app

    with contextlib.chdir(folder), own_modules():
        done = CliRunner(charset=charset).invoke(app, list(map(str, words)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def equisep_process(*words: str | Path, folder: Path, **environment: str) -> Done:
    """Run `python -m equisep …` in a folder, as a process of its own."""
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "equisep", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**kept, "PYTHONIOENCODING": "utf-8", **environment},
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)
