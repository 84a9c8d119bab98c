"""A page as tests read it: elements by the parser of the standard library, the embedded numbers, tables as values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Table:
    label: str
    heads: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    texts: list[list[str]] = field(default_factory=list)

    def column(self, name: str) -> list[str]:
        return [row[self.heads.index(name)] for row in self.rows]


class Page(HTMLParser):
    """What a page holds: ids, links, attributes, scripts, tables and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.links: list[str] = []
        self.plots: list[dict[str, str]] = []
        self.attributes: set[str] = set()
        self.tags: set[str] = set()
        self.policy = ""
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.tables: list[Table] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self._label = ""
        self._cell: list[str] | None = None
        self._within: dict[str, str] = {}
        self.raw = text
        self.feed(text)
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert len(given) == len(attrs), "an attribute twice"
        self.tags.add(tag)
        self.attributes |= given.keys()
        if tag not in VOID:
            self._open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        if tag == "figure":
            self.plots.append(given)
        if given.get("role") == "region":
            self._label = given["aria-label"]
        if tag == "table":
            self.tables.append(Table(self._label))
        if tag == "tr" and self.tables and "tbody" in self._open:
            self.tables[-1].rows.append([])
            self.tables[-1].texts.append([])
        if tag in ("td", "th") and "table" in self._open:
            if "thead" in self._open:
                self.tables[-1].heads.append(given["data-name"])
            else:
                self.tables[-1].rows[-1].append(given["data-value"])
                self._cell = []
        self._within = given

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"{tag} closes {self._open[-3:]}"
        self._open.pop()
        if tag in ("td", "th") and self._cell is not None:
            self.tables[-1].texts[-1].append("".join(self._cell))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append((self._within, data))
        elif self._open and self._open[-1] != "style":
            self.text.append(data)
            if self._cell is not None:
                self._cell.append(data)

    @property
    def words(self) -> str:
        """All text, spaces joined."""
        return re.sub(r"\s+", " ", " ".join(self.text))

    @property
    def numbers(self) -> dict[str, Any]:
        """What the scripts draw from."""
        (text,) = [text for given, text in self.scripts if given.get("id") == "equisep-data"]
        content: dict[str, Any] = json.loads(text)
        return content

    def table(self, label: str) -> Table:
        """The table whose label begins so."""
        return next(table for table in self.tables if table.label.startswith(label))
