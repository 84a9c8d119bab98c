"""README.md and docs/ as things that run: their blocks in order, and what they show beside what comes out.

A page is run from its first block to its last in one folder and one set of names. A `python` block is executed, a `console` block
is typed line by line, and a `text` block is the output of the block before it, compared word by word, numbers to the tolerance
below. Numbers with a decimal point in the remark behind a statement that prints are among those it prints.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from cli.running import Done, equisep
from equisep.cli import console

REPO = Path(__file__).parents[1]
DOCS = REPO / "docs"
FENCE = re.compile(
    r"^(?P<varies> *<!-- varies -->\n+)?(?P<indent> *)```(?P<kind>\w+)[^\n]*\n(?P<body>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)

# How far a number may be from the one that a page shows: one unit of the last digit shown. Trainings in float32 drift with the
# processor that runs them, and their outputs stand behind a line `<!-- varies -->`: there a number may be off by a twentieth, a
# percentage by two points. Whole numbers (counts, layers) are the same everywhere; times are those of one machine, not compared.
LAST_DIGIT = 1.0
VARIES = 0.05
VARIES_POINTS = 2.0
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?: ?%)?")
TIME = re.compile(r"(?<![\w.])[\d.,]+ (?:of [\d.]+ )?(?:ms|s|seconds|minutes|% of the time)\b")
LEFT_OUT = "…"  # alone on a line: lines that the page does not show


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: `python`, `console`, or the `text` that the one before it prints."""

    page: Path
    line: int
    kind: str
    body: str
    varies: bool = False

    def __str__(self) -> str:
        return f"{self.page.name}, line {self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, part.start()) + 1,
            part["kind"],
            textwrap.dedent(part["body"]),
            bool(part["varies"]),
        )
        for part in FENCE.finditer(text)
    ]


def commands(block: Block) -> list[list[str]]:
    """The lines of a `console` block as words."""
    return [shlex.split(line, comments=True) for line in block.body.splitlines() if line.strip()]


def run_page(page: Path, folder: Path, *, command: Callable[..., Done] = equisep) -> None:
    """Run a page from top to bottom, and compare what it shows with what comes out.

    With EQUISEP_WRITE_OUTPUTS=1 an output that differs is written into the page instead.
    """
    names: dict[str, object] = {"__name__": page.stem}
    printed: str | None = None
    written: dict[int, str] = {}  # by the place of a block among the page's
    with contextlib.chdir(folder), wide():
        for number, block in enumerate(blocks(page)):
            if block.kind == "python":
                printed = run_python(block, names, folder)
            elif block.kind == "console":
                printed = run_console(block, folder, command)
            else:
                assert printed is not None, f"{block}: there is no output before it"
                problem = difference(block.body, printed, varies=block.varies)
                if (
                    problem is not None
                    and os.environ.get("EQUISEP_WRITE_OUTPUTS")
                    and LEFT_OUT not in block.body.split()
                ):
                    written[number] = unstyled(printed)
                else:
                    assert problem is None, f"{block}: {problem}\n--- came out\n{printed}"
                printed = None
    if written:
        text = page.read_text(encoding="utf-8")
        for number, part in reversed(list(enumerate(FENCE.finditer(text)))):
            if number in written:
                text = text[: part.start("body")] + written[number] + text[part.end("body") :]
        page.write_text(text, encoding="utf-8")


def unstyled(printed: str) -> str:
    """An output as a page shows it: no blanks at the end of lines, no empty lines around."""
    return "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n"


def run_python(block: Block, names: dict[str, object], folder: Path) -> str:
    """What a `python` block prints. One that begins with the name of a file is that file too: commands may use it."""
    named = re.match(r"# (\w+\.py)\n", block.body)
    if named:
        (folder / named[1]).write_text(block.body, encoding="utf-8")
    whole, lines = "", block.body.splitlines()
    for statement in ast.parse(block.body).body:
        out = io.StringIO()
        code = ast.increment_lineno(ast.Module([statement], []), block.line)
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(block.page), "exec"), names)
        remark = lines[(statement.end_lineno or 0) - block.line - 1].partition("  # ")[2]
        if out.getvalue() and remark:
            lost = [
                number for number in numbers(remark) if not any(near(number, one) for one in numbers(out.getvalue()))
            ]
            assert not lost, (
                f"{block}: the remark `{remark}` names {lost}, which is not in what came out: {out.getvalue()}"
            )
        whole += out.getvalue()
    return whole


def numbers(text: str) -> list[str]:
    """The numbers with a decimal point of a text: in the remark behind a statement they are its output."""
    return [number for number in NUMBER.findall(text) if "." in number]


def run_console(block: Block, folder: Path, command: Callable[..., Done]) -> str:
    """What a `console` block prints. Lines of make and pip are left to other tests."""
    printed = []
    for words in commands(block):
        if words[0] in ("make", "pip", "git"):
            continue
        assert words[0] == "equisep", f"{block}: {words[0]} is not a command that is run here"
        done = command(*words[1:], folder=folder)
        assert done.returncode == 0, f"{block}: {words}: {done.stderr}"
        assert done.stdout, f"{block}: {words} prints nothing"
        printed.append(done.stdout)
    return "".join(printed)


@contextlib.contextmanager
def wide(columns: int = 80) -> Iterator[None]:
    """The width of a terminal that pages are written for."""
    before = {name: os.environ.get(name) for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    os.environ["COLUMNS"] = str(columns)
    os.environ.pop("FORCE_COLOR", None)
    os.environ.pop("NO_COLOR", None)
    try:
        # a console that was made where COLUMNS was set, as a worker of the tests sets it, keeps that width
        with patch.object(console.out, "_width", columns), patch.object(console.err, "_width", columns):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def difference(shown: str, printed: str, *, varies: bool = False) -> str | None:
    """Where a shown output differs from what came out: None where it does not."""
    words, came = plain(shown), plain(printed)
    at = 0
    while LEFT_OUT in words:
        cut = words.index(LEFT_OUT)
        problem = _begins(came[at:], words[:cut], varies=varies)
        if problem:
            return problem
        at, words = at + cut, words[cut + 1 :]
        following = words[: words.index(LEFT_OUT)] if LEFT_OUT in words else words
        if not following:
            return None
        starts = [s for s in range(at, len(came)) if not _begins(came[s:], following, varies=varies)]
        if not starts:
            return f"`{' '.join(following[:12])}` is missing"
        at = starts[0] if LEFT_OUT in words else starts[-1]
    problem = _begins(came[at:], words, varies=varies)
    more = came[at + len(words) :]
    return problem or (f"and then `{' '.join(more[:12])}` came out" if more else None)


def plain(text: str) -> list[str]:
    """Words, with times taken out: lines break where the width of numbers has them break."""
    return TIME.sub("⏱", text).split()


def _begins(came: list[str], words: list[str], *, varies: bool) -> str | None:
    """None where the output begins with these words, numbers to the tolerance; else the first difference."""
    for at, one in enumerate(words):
        if at >= len(came):
            return f"`{' '.join(words[at:][:12])}` is missing"
        percent = "%" in (*one[-1:], *words[at + 1 : at + 2])
        if not same_word(one, came[at], varies=varies, percent=percent):
            around = slice(max(0, at - 4), at + 3)
            return f"`{' '.join(words[around])}` is shown, `{' '.join(came[around])}` came out"
    return None


def same_word(one: str, other: str, *, varies: bool = False, percent: bool = False) -> bool:
    """Whether two words agree: the same letters around numbers that are near enough."""
    if one == other:
        return True
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(near(a, b, varies=varies, percent=percent) for a, b in pairs)


def near(shown: str, printed: str, *, varies: bool = False, percent: bool = False) -> bool:
    """Whether a number is the shown one to the tolerance that is stated above."""
    a, b = value(shown), value(printed)
    mantissa, _, exponent = shown.rstrip(" %").partition("e")
    digits = len(mantissa.partition(".")[2])
    percent = percent or "%" in shown
    if not digits and not exponent and not (varies and percent):
        return a == b
    allowed = LAST_DIGIT * 10.0 ** (int(exponent or 0) - digits) * (1 + 1e-9)
    if varies:
        allowed = max(allowed, VARIES_POINTS if percent else VARIES * abs(a))
    return abs(a - b) <= allowed


def value(number: str) -> float:
    """3,818 and −0.5 and 12.3 % as floats."""
    return float(number.rstrip(" %").replace(",", "").replace("−", "-"))
