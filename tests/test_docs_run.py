"""Every command and snippet of README.md and docs/ is run, page by page, and what a page shows is what comes out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.running import Done, equisep
from documents import DOCS, REPO, blocks, commands, difference, run_page
from equisep import Profile

pytestmark = pytest.mark.usefixtures("shapes_are_checked_elsewhere")
README = REPO / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
BY_SECTION = {"frameworks.md"}  # a recipe each where its framework is tested: tests/tracking/recipes.py
RUN = [page for page in PAGES if blocks(page) and page.name not in BY_SECTION]


def test_every_fence_is_of_a_kind_that_is_run() -> None:
    """A fence of another kind, or text that nothing prints, would be an output that nobody compares."""
    for page in [README, REPO / "CONTRIBUTING.md", *PAGES]:
        kinds = [block.kind for block in blocks(page)]
        assert set(kinds) <= {"python", "console", "text"}, page
        assert page.read_text(encoding="utf-8").count("```") == 2 * len(kinds), f"{page}: a fence without a kind"
        assert not re.findall(r"^ {4}(?:equisep|make|pip) .*", page.read_text(encoding="utf-8"), re.MULTILINE), page
        assert not [at for at, kind in enumerate(kinds) if kind == "text" and (at == 0 or kinds[at - 1] == "text")], (
            page
        )


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(DOCS).as_posix()) for page in RUN])
def test_a_page_runs_and_shows_what_comes_out(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.slow
def test_the_readme_runs_and_the_demo_shows_the_law(tmp_path: Path) -> None:
    """The full demo included: 600 epochs at the paper's settings, r ≤ −0.99 in `eval` and as the paper reads.

    At one of its five rates: of all of them it shows the most negative r (tests/cli/test_cli_demo.py), which is no greater.
    """
    run_page(README, tmp_path, command=installed_or_here)
    profile = Profile.load(tmp_path / "equisep-demo" / "profile.json")
    assert list(profile.readings) == ["eval", "drawn"]
    for reading in profile.readings.values():
        assert reading.law.r is not None and reading.law.r <= -0.99


def installed_or_here(*words: str, folder: Path) -> Done:
    """`demo` and `law` by the command that was installed beside Python, by its name; others need not load torch anew."""
    if words[0] not in ("demo", "law"):
        return equisep(*words, folder=folder)
    words = (*words, "--rate", "3e-3") if words[0] == "demo" else words
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["equisep", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_make_targets_exist() -> None:
    pages = (README, REPO / "CONTRIBUTING.md", *PAGES)
    typed = [words for page in pages for block in blocks(page) if block.kind == "console" for words in commands(block)]
    made = [words for words in typed if words[0] == "make"]
    assert ["make", "demo"] in made
    assert ["make", "test"] in made
    for words in made:
        subprocess.run([*words, "-n", "-C", str(REPO)], check=True, capture_output=True)


def test_extras_that_pages_name_exist() -> None:
    extras = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for page in (README, *PAGES):
        for names in re.findall(r"(?:equisep|\.)\[([\w,]+)\]", page.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= extras.keys(), page


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("r -0.9891 over 13 points", "r  -0.9892 over\n13 points"),
        ("first\n…\nlast 2 lines", "first\nsecond\nlast 3 lines\nlast 2 lines"),
        ("takes 12 ms of 20 ms", "takes 3.5 ms of 71 ms"),
    ],
)
def test_what_counts_as_the_same_output(shown: str, printed: str) -> None:
    assert difference(shown, printed) is None


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("r -0.9891", "r -0.9893"),
        ("13 points", "14 points"),
        ("12.3 %", "12.5 %"),
        ("the law holds", "the law fails"),
        ("one line", "one line\nand another"),
        ("one line\nand another", "one line"),
        ("first\n…\nlast", "first\nsecond"),
    ],
)
def test_what_counts_as_another_output(shown: str, printed: str) -> None:
    assert difference(shown, printed) is not None


def test_outputs_of_trainings_may_vary_by_what_is_stated() -> None:
    assert difference("ρ 0.480, 79 % right", "ρ 0.500, 81 % right", varies=True) is None
    assert difference("ρ 0.480", "ρ 0.510", varies=True) is not None
    assert difference("79 % right", "82 % right", varies=True) is not None
    assert difference("layer 4", "layer 5", varies=True) is not None


def test_numbers_in_remarks_are_among_those_printed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(3 * 0.1725)  # 0.517: three times\n```\n", encoding="utf-8")
    run_page(page, tmp_path)
    page.write_text("```python\nprint(3 * 0.1725)  # 0.522: three times\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"names \['0.522'\]"):
        run_page(page, tmp_path)


def test_outputs_can_be_written_into_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint('two', 2.0)\n```\n\n```text\none\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"`one` is shown, `two 2\.0` came out"):
        run_page(page, tmp_path)
    monkeypatch.setenv("EQUISEP_WRITE_OUTPUTS", "1")
    run_page(page, tmp_path)
    assert page.read_text(encoding="utf-8").endswith("```text\ntwo 2.0\n```\n")
    monkeypatch.delenv("EQUISEP_WRITE_OUTPUTS")
    run_page(page, tmp_path)
