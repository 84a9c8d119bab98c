"""The recipes of docs/frameworks.md, each run where its framework is tested: imports of frameworks are slow."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    """The Python of every heading that has some, the common part under the page's own."""
    parts = re.split(r"^#+ (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {heading: "\n".join(BLOCK.findall(body)) for heading, body in zip(parts[::2], parts[1::2], strict=True)}
    return {heading: body for heading, body in found.items() if body}


def recipe(heading: str, folder: Path, *before: str) -> dict[str, Any]:
    """Run a recipe after the common part and the sections `before` it; the names that it leaves."""
    common, *_ = sections()
    names: dict[str, Any] = {"__name__": "recipe"}
    with contextlib.chdir(folder):
        for part in (common, *before, heading):
            exec(compile(sections()[part], f"{PAGE}: {part}", "exec"), names)
    return names
