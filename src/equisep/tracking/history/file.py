"""A history as a file of JSON lines: the header, then one line per reading, each whole or not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from equisep.errors import ProfileError, StoreError
from equisep.files import LineFile
from equisep.results.codec import HISTORY, decode, profile_from_dict, profile_to_dict
from equisep.tracking.history.records import Entry, Header

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A reading as it stands in the file, with the number of the one that it follows.

    The first of a training that was begun anew follows none: what stands before it in the file is of the former one.
    """

    entry: Entry
    follows: int | None


class HistoryFile:
    """One file of readings: made with its header, read whole, and written at its end only."""

    def __init__(self, path: str | Path) -> None:
        self._lines = LineFile(Path(path))
        self._unwritten: list[dict[str, Any]] = []

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._lines.path

    @property
    def damaged(self) -> int:
        """Lines that are no JSON and were passed over."""
        return self._lines.damaged

    def create(self, header: Header) -> None:
        """A new file, with its header."""
        self._lines.create({"kind": HISTORY, "schema": SCHEMA, **asdict(header)})

    def read(self) -> tuple[Header, list[Line]] | None:
        """The header and every line; None where there is no file, or an empty one."""
        path = self.path
        if not path.exists() or (path.is_file() and path.stat().st_size == 0):
            return None
        try:
            lines = self._lines.read()
        except OSError as error:
            raise StoreError(f"`{path}` cannot be read as a history: {error.strerror or error}.") from error
        if not lines or lines[0].get("kind") != HISTORY:
            raise StoreError(f"`{path}` is no equisep history: its first line does not say so. Give another file.")
        first = lines[0]
        schema = first.get("schema")
        if not isinstance(schema, int) or schema > SCHEMA:
            raise StoreError(
                f"`{path}` was written by a newer equisep (schema {schema}; this version reads up to {SCHEMA}). Upgrade equisep."
            )
        try:
            fields = {name: first[name] for name in first if name not in ("kind", "schema")}
            header = decode(Header, fields, where="header")
            return header, [_line(content, header) for content in lines[1:]]
        except (ProfileError, KeyError, TypeError) as error:
            raise StoreError(f"`{path}` cannot be read as a history: {error}") from error

    def append(self, line: Line) -> None:
        """One reading more, after those that could not be written before it; a StoreError where it cannot be."""
        self._unwritten.append({**_content(line.entry), "follows": line.follows})
        if not self.path.exists():
            raise StoreError(
                f"`{self.path}` is no longer there: it was deleted or moved while the training runs. Put it back, and "
                "the next reading is written after what it holds; without it `tracker.history` alone has the readings."
            )
        while self._unwritten:
            self._lines.append(self._unwritten[0])
            self._unwritten.pop(0)


def _content(entry: Entry) -> dict[str, Any]:
    """A reading as a line of the file: what does not exist is left out."""
    content = {name: getattr(entry, name) for name in Entry.__slots__ if getattr(entry, name) is not None}
    if entry.profile is not None:
        profile = replace(entry.profile, class_names=None)  # they stand in the header
        content["profile"] = {
            name: value if name in ("settings", "provenance") else _without_none(value)
            for name, value in profile_to_dict(profile).items()
            if value is not None
        }
    return content


def _without_none(value: Any) -> Any:
    """Records without the fields that are None, as a reader takes them for anyway; entries of lists stay."""
    if isinstance(value, dict):
        return {name: _without_none(part) for name, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list) else value


def _line(content: Mapping[str, Any], header: Header) -> Line:
    """A reading from its line."""
    follows = content.get("follows")
    profile = None
    if "profile" in content:
        profile = replace(profile_from_dict(content["profile"]), class_names=header.class_names)
    rest = {name: value for name, value in content.items() if name not in ("follows", "profile")}
    entry = decode(Entry, rest, where="reading")
    return Line(replace(entry, profile=profile), None if follows is None else int(follows))
