"""Every public name has an example in its docstring, which runs as it stands and gives what it shows."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import equisep
from documents import DOCS, difference

SHOWN = re.compile(r"^::: (\S+)(?:\n    options:\n      heading: (\S+))?", re.MULTILINE)
REFERENCE = {
    heading or path: path
    for page in sorted((DOCS / "api").glob("*.md"))
    for path, heading in SHOWN.findall(page.read_text())
}


class Checker(doctest.OutputChecker):
    """Outputs as on pages: numbers to one unit of the last digit that is shown."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return difference(want, got) is None


def named(path: str) -> Any:
    """What a dotted name stands for."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        with contextlib.suppress(ImportError):
            value: Any = importlib.import_module(".".join(parts[:length]))
            for part in parts[length:]:
                value = getattr(value, part)
            return value
    raise AssertionError(f"{path} stands for nothing")


def test_every_public_name_is_in_the_reference() -> None:
    public = {f"equisep.{name}" for name in equisep.__all__} - {"equisep.__version__"}
    assert public <= REFERENCE.keys(), public - REFERENCE.keys()


@pytest.mark.parametrize("name", ["equisep", *REFERENCE])
def test_a_public_name_has_an_example_that_runs(name: str, tmp_path: Path) -> None:
    documented = named(REFERENCE.get(name, name))
    text = inspect.getdoc(documented) or ""
    example = doctest.DocTestParser().get_doctest(text, {"__name__": "example"}, name, None, 0)
    assert example.examples, f"{name} has no example"
    assert any(one.want for one in example.examples), f"the example of {name} shows nothing"
    found: list[str] = []
    with contextlib.chdir(tmp_path):
        doctest.DocTestRunner(checker=Checker(), verbose=False).run(example, out=found.append)
    assert not found, "".join(found)
