"""Docstrings of this house as Markdown: columns of options become lists, examples become code."""

from __future__ import annotations

import re
from typing import Any

import griffe

OPTION = re.compile(r"^(?P<names>\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*) {2,}(?P<text>\S.*)$")
MORE = re.compile(r"^ {4,}\S")


class HouseDocstrings(griffe.Extension):
    """Rewrites what Markdown would run together: `name    what it means` columns, and `>>>` lines."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Every docstring that was read, before it is parsed into sections."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The docstring with its columns of options as a list and its examples as code, and nothing else changed."""
    lines: list[str] = []
    inside = ""  # an option, an example, or neither
    for line in text.splitlines():
        option = OPTION.match(line)
        if inside == "example":
            if line:
                lines.append(line)
                continue
            lines.append("```")
        if line.startswith(">>>"):
            lines += [*([""] if lines and lines[-1] else []), "```pycon", line]
            inside = "example"
        elif option:
            names = ", ".join(f"`{name}`" for name in option["names"].split(", "))
            lines += [*([""] if inside != "option" and lines and lines[-1] else []), f"- {names}: {option['text']}"]
            inside = "option"
        elif inside == "option" and MORE.match(line):
            lines.append("    " + line.strip())
        else:
            lines += [*([""] if inside == "option" and line else []), line]
            inside = ""
    return "\n".join([*lines, "```"] if inside == "example" else lines)
