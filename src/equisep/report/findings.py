"""Findings in the terminal: the first sentence bold, what to do next below each, wrapped to its width."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from equisep.findings.wording import explained
from equisep.report.formatting import Glyphs, ascii_text, one_line
from equisep.report.terminal import View
from equisep.results import Finding

MOST_COLUMNS = 100  # longer lines are hard to read


def render_findings(findings: Sequence[Finding]) -> RenderableType:
    """Numbered sentences, and what to do next."""

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        columns = min(width, MOST_COLUMNS)
        first, *rest = explained(findings, width=columns).split("\n2. ", maxsplit=1)
        text = Text.assemble((_shown(first, glyphs), "bold"), *(f"\n2. {_shown(more, glyphs)}" for more in rest))
        text.no_wrap = True
        return text

    return View(build)


def _shown(text: str, glyphs: Glyphs) -> str:
    return ascii_text("\n".join(one_line(line) for line in text.split("\n")), glyphs)
