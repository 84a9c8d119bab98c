"""Every command and snippet of README.md and docs/ is run, in order, in one folder a file."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import equisep
from equisep import Profile

REPO = Path(__file__).parents[1]
PAGES = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]
BY_SECTION = {"frameworks.md"}  # a recipe each where its framework is tested: tests/tracking/recipes.py
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(page: Path) -> list[list[str]]:
    lines = [line for body in blocks(page, "console") for line in body.splitlines() if line.strip()]
    return [shlex.split(line, comments=True) for line in lines]


def test_every_fence_is_of_a_kind_that_is_run() -> None:
    for page in [*PAGES, REPO / "CONTRIBUTING.md"]:
        kinds = {kind for kind, _ in BLOCK.findall(page.read_text(encoding="utf-8"))}
        assert kinds <= {"python", "console"}, page


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=p.name) for p in PAGES if blocks(p, "python") and p.name not in BY_SECTION]
)
def test_python_blocks_run_top_to_bottom(page: Path, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        names: dict[str, object] = {}
        for body in blocks(page, "python"):
            exec(compile(body, str(page), "exec"), names)


@pytest.mark.parametrize("page", [pytest.param(p, id=p.name) for p in PAGES[1:] if commands(p)])
def test_commands_of_the_docs_run_top_to_bottom(page: Path, tmp_path: Path) -> None:
    """A Python block that begins with the name of a file is that file: commands below may use it."""
    for body in blocks(page, "python"):
        name = re.match(r"# (\w+\.py)\n", body)
        if name:
            (tmp_path / name[1]).write_text(body, encoding="utf-8")
    for words in commands(page):
        assert words[0] == "equisep", words
        done = equisep(*words[1:], folder=tmp_path)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        assert done.stdout


def test_make_targets_of_the_readme_exist() -> None:
    targets = [words for page in (REPO / "README.md", REPO / "CONTRIBUTING.md") for words in commands(page)]
    made = [words for words in targets if words[0] == "make"]
    assert ["make", "demo"] in made
    assert ["make", "test"] in made
    for words in made:
        subprocess.run([*words, "-n", "-C", str(REPO)], check=True, capture_output=True)


@pytest.mark.slow
def test_commands_of_the_readme_run_and_the_demo_shows_the_law(tmp_path: Path) -> None:
    """The full demo included: 600 epochs at the paper's settings, r ≤ −0.99 in `eval` and as the paper reads."""
    ours = [words for words in commands(REPO / "README.md") if words[0] == "equisep"]
    assert [words[1] for words in ours] == [
        "demo",
        "explain",
        "law",
        "sites",
        "measure",
        "compare",
        "peeled",
        *["figures"] * 4,
    ]
    for words in ours:
        run = installed if words[1] in ("demo", "law") else equisep  # the others need not load torch anew
        done = run(*words[1:], folder=tmp_path)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        assert done.stdout
    profile = Profile.load(tmp_path / "equisep-demo" / "profile.json")
    assert list(profile.readings) == ["eval", "drawn"]
    for reading in profile.readings.values():
        assert reading.law.r is not None and reading.law.r <= -0.99


def installed(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command that was installed beside Python, by its name alone."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["equisep", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
