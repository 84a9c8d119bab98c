"""The elements that the page is made of: escaped text, tables, figures with the same numbers beside them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from equisep.report.formatting import UNICODE, minus_signs, one_line

MISSING = UNICODE.missing
_LONGEST_WORD = 30  # characters of code that are kept on one line
TABLE_SUMMARY = "The same numbers as a table"


@dataclass(frozen=True, slots=True)
class Cell:
    """One number (or name) of a table: what it is, and how it is shown; `value` None is a missing one."""

    value: float | int | str | None
    text: str


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: its `name` in a CSV file, its `title` above the table, and what it means in `words`."""

    name: str
    title: str
    words: str = ""
    kind: Literal["number", "text"] = "number"


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page: its anchor, its title, its HTML, and a shorter title for the contents where that is long."""

    id: str
    title: str
    body: str
    short: str = ""


def plain(text: Any) -> str:
    """Any text, of whoever, as text in HTML: never markup, on one line."""
    return escape(one_line(str(text)), quote=True)


def marked(text: str) -> str:
    """Escaped text in which `backticks` have become code."""
    return re.sub(r"`([^`]+)`", _code, plain(text))


def typeset(html: str) -> str:
    """Escaped text with numbers in it as print has it: a minus sign before them, not a hyphen, and no line break before %."""
    return minus_signs(html).replace(" %", "&nbsp;%")


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of escaped text, `kind` its class."""
    return f"<p{_class(kind)}>{typeset(marked(text))}</p>"


def absent(text: str) -> str:
    """A sentence that says what is missing here, and what would bring it."""
    return paragraph(text, "absent")


def bullets(items: Iterable[str], kind: str = "") -> str:
    """A list whose items are HTML already; nothing where there are none."""
    inner = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul{_class(kind)}>{inner}</ul>" if inner else ""


def definitions(rows: Iterable[tuple[str, str]], kind: str = "", *, exact: bool = False) -> str:
    """Terms and what they are, both as text; `exact` leaves every sign as it stands."""
    shown = ((marked(term), marked(words) if exact else typeset(marked(words))) for term, words in rows)
    inner = "".join(f"<div><dt>{term}</dt><dd>{words}</dd></div>" for term, words in shown)
    return f"<dl{_class(kind)}>{inner}</dl>" if inner else ""


def table(
    heads: Sequence[Head], rows: Iterable[Sequence[Cell]], *, label: str, csv: str | None = None, sortable: bool = False
) -> str:
    """A table that scrolls on its own where it is wide; `data-value` holds every number in full, empty where there is none.

    The first column names the row.
    """
    titles = "".join(_head(head) for head in heads)
    body = "".join(f"<tr>{_row(row, heads)}</tr>" for row in rows)
    kind = ' class="sortable"' if sortable else ""
    controls = '<div class="controls"></div>' if csv else ""
    file = f' data-csv="{escape(csv, quote=True)}"' if csv else ""
    return (
        f'{controls}<div class="scroll" tabindex="0" role="region" aria-label="{plain(label)}">'
        f"<table{kind}{file}><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(content: str, summary: str = TABLE_SUMMARY) -> str:
    """What stands behind a drawing, opened by whoever wants it (and by a page without script)."""
    return f'<details class="numbers"><summary>{plain(summary)}</summary>{content}</details>'


def figure(plot: str, caption: str, *, label: str, profile: int | str = "all", more: str = "") -> str:
    """The frame of one drawing, which the page's script fills; without script its caption stands above its table.

    `label` says what it shows to those who do not see it; `more` are further attributes.
    """
    return (
        f'<figure class="plot" data-plot="{plot}" data-profile="{profile}" data-label="{plain(label)}"{more}>'
        f'<figcaption>{typeset(marked(caption))}</figcaption><div class="controls"></div><div class="drawing"></div>'
        f'<div class="key"></div></figure>'
    )


def link(target: str, text: str) -> str:
    """A link within the page."""
    return f'<a href="#{target}">{plain(text)}</a>'


def command(text: str) -> str:
    """A command or call to copy: lines break between words, not at the hyphens of an option."""
    words = (f"<span>{plain(word)}</span>" if len(word) <= _LONGEST_WORD else plain(word) for word in text.split(" "))
    return f'<pre class="command"><code>{" ".join(words)}</code></pre>'


def data_value(value: float | int | str | None) -> str:
    """A value in full, as CSV has it; empty where there is none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return repr(value) if isinstance(value, float) else one_line(str(value))


def _code(match: re.Match[str]) -> str:
    """Short code stands on one line: a browser would break it at its hyphens."""
    kind = ' class="whole"' if len(match[1]) <= _LONGEST_WORD else ""
    return f"<code{kind}>{match[1]}</code>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _head(head: Head) -> str:
    title = plain(head.title.replace("\n", " "))
    words = f' title="{plain(head.words)}"' if head.words else ""
    side = ' class="text"' if head.kind == "text" else ""
    return f'<th scope="col" data-name="{plain(head.name)}" data-sort="{head.kind}"{side}{words}>{title}</th>'


def _row(row: Sequence[Cell], heads: Sequence[Head]) -> str:
    cells = []
    for position, (cell, head) in enumerate(zip(row, heads, strict=True)):
        value = escape(data_value(cell.value), quote=True)  # empty where there is no number, or none that is finite
        side = ' class="text"' if head.kind == "text" else ""
        named = head.kind == "text"
        shown = plain(cell.text) if named else typeset(plain(cell.text if value else MISSING))
        if position == 0:
            cells.append(f'<th scope="row"{side} data-value="{value}">{shown}</th>')
        else:
            cells.append(f'<td{side} data-value="{value}">{shown}</td>')
    return "".join(cells)
