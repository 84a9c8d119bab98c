"""Store: one file per cell, whole or not there; and which cells belong to which figure. No torch.

    store.json                              kind and schema
    cells/3f/3ff67d9e….json                 the checksum of what follows it; the fields of the cell that differ from their
                                            defaults; what made it; its outcome
    figures/he2023/fig1.paper.json          the series and cells that runs of a figure asked for

Several processes may write to one store: all that is written is written under one lock, beside its name, and then renamed.
Stores are joined by copying one's `cells` over the other's. Version 0.1 kept a folder of three files per cell, which is read.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equisep._version import __version__
from equisep.errors import EquisepError, InputError, StoreError
from equisep.figures.cell import Cell
from equisep.figures.evidence import Entry
from equisep.figures.outcome import Outcome
from equisep.files import json_text, locked, parse_json, plain, read_json, write_whole, writing
from equisep.runs.cell_files import cell_text, key_of, read_cell

KIND, SCHEMA = "equisep store", 2  # 1: a folder per cell
KEY = re.compile(r"[0-9a-f]{32}")
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Stored:
    """One finished cell: its settings, what it gave, and what made it."""

    cell: Cell
    outcome: Outcome
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the runs of one figure at one scale asked for: (series, cell) once each, and their settings."""

    figure: str
    scale: str
    entries: tuple[tuple[str, Cell], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of finished cells. `notes` are sentences about what was found damaged."""

    root: Path
    notes: list[str] = field(default_factory=list)

    @staticmethod
    def open(path: str | Path, create: bool = True) -> Store:
        """The store in a folder, for writing; with `create=False` for reading, and it has to be there.

        Opened for writing, what processes that died left behind is removed.
        """
        store = Store(Path(path))
        schema = _schema_of(store.root, create=create)
        if create:
            with store._writing("A first file"):
                with tempfile.TemporaryFile(dir=store.root):  # asks the disk itself; permissions alone do not tell
                    pass
                # whoever writes holds the lock, so nobody is writing these
                for part in [*store.root.glob(".*.part"), *store.root.glob("*/**/.*.part")]:
                    if part.is_dir():  # of version 0.1
                        shutil.rmtree(part, ignore_errors=True)
                    else:
                        part.unlink(missing_ok=True)
            if schema < SCHEMA:
                with store._writing("`store.json`"):
                    head = {"kind": KIND, "schema": SCHEMA, "equisep": __version__}
                    write_whole(store.root / "store.json", json_text(head, indent=1) + "\n")
        return store

    def done(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys whose cells are finished and whole; one that is damaged is noted."""
        return {key for key in dict.fromkeys(keys) if self._content(key) is not None}

    def get(self, key: str) -> Stored:
        """One finished cell."""
        path = self._path(key)
        try:
            content = self._checked(path)
        except ValueError as error:
            raise StoreError(f"Cell {key} in `{self.root}` is damaged: {error}. Run its figure again.") from error
        if content is None:
            raise StoreError(f"No cell {key} in `{self.root}`. It was not run, or in another store.")
        return self._stored(key, content)

    def put(self, cell: Cell, outcome: Outcome, provenance: Mapping[str, Any]) -> bool:
        """Store a finished cell; False where it is there already, which is left as it is."""
        own = cell.own_fields()
        if key_of(plain(own)) != cell.key:
            raise InputError(f"A cell with a number that is not finite cannot be stored: {own}.")
        text = cell_text(own, outcome, provenance)
        path = self._path(cell.key)
        with self._writing(f"Cell {cell.key}"):
            if self._content(cell.key) is not None:
                return False
            if path.is_dir():
                shutil.rmtree(path)
            write_whole(path, text)
        return True

    def add_manifest(
        self, figure: str, scale: str, entries: Sequence[tuple[str, Cell]], settings: Mapping[str, Any]
    ) -> Manifest:
        """Join what a run asks for to what earlier runs of the figure asked for; later settings replace earlier ones."""
        path = self._manifest_path(figure, scale)
        with self._writing(f"The manifest of `{figure}`"):
            try:
                before = self._read_manifest(path, figure, scale)
            except ValueError as error:
                self._note(
                    f"The manifest of `{figure}` was damaged ({error}). It is made anew from this run; finished cells of "
                    "earlier runs, with more seeds say, are kept and count again once they are asked for."
                )
                before = None
            old = before or Manifest(figure, scale)
            both = tuple(dict.fromkeys((*old.entries, *entries)))
            merged = Manifest(figure, scale, both, {**old.settings, **plain(settings)})
            if merged != before:
                write_whole(path, _manifest_text(merged))
        return merged

    def manifest(self, figure: str, scale: str) -> Manifest | None:
        """What was asked for of a figure at a scale; None where it was never run in this store."""
        path = self._manifest_path(figure, scale)
        try:
            return self._read_manifest(path, figure, scale)
        except ValueError as error:
            raise StoreError(
                f"The manifest `{path}` is damaged: {error}. Run the figure again; its finished cells are kept."
            ) from error

    def entries(self, figure: str, scale: str) -> list[Entry]:
        """The finished cells of a figure at a scale, series by series."""
        manifest = self.manifest(figure, scale)
        if manifest is None:
            return []
        keys = [cell.key for _, cell in manifest.entries]
        contents = {key: self._content(key) for key in dict.fromkeys(keys)}
        read = {key: self._stored(key, content) for key, content in contents.items() if content is not None}
        return [
            Entry(series, cell, read[key].outcome, read[key].provenance)
            for (series, cell), key in zip(manifest.entries, keys, strict=True)
            if key in read
        ]

    def figures(self) -> list[tuple[str, str]]:
        """(id, scale) of every figure that has a manifest."""
        folder = self.root / "figures"
        paths = sorted(path.relative_to(folder) for path in folder.rglob("[!.]*.*.json"))
        return [(str(path.parent / path.name.split(".")[0]), path.name.split(".")[-2]) for path in paths]

    def _path(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise InputError(f"`{key}` is no key of a cell, which has 32 hexadecimal digits.")
        return self.root / "cells" / key[:2] / f"{key}.json"

    def _content(self, key: str) -> dict[str, Any] | None:
        """What is stored of a cell; None where nothing is, or what is there is damaged, which is noted."""
        path = self._path(key)
        try:
            return self._checked(path)
        except ValueError as error:
            self._note(f"Cell {key} is damaged and does not count: {error}. `equisep figures run` makes it anew.")
            return None

    def _checked(self, path: Path) -> dict[str, Any] | None:
        """What is stored of a cell, None where nothing is; a ValueError says in a clause how it is damaged."""
        try:
            content = read_cell(path)
        except OSError as error:  # says nothing about the cell: too many open files, a server that is away
            raise StoreError(f"`{path}` cannot be read: {error.strerror or error}. Try again.") from error
        if content is not None and key_of(content.get("cell")) != path.stem:
            raise ValueError(f"`{path.name}` is of another cell")
        return content

    def _stored(self, key: str, content: Mapping[str, Any]) -> Stored:
        try:
            cell, outcome = Cell.from_dict(content["cell"]), Outcome.from_dict(content["outcome"])
            return Stored(cell, outcome, dict(content["provenance"]))
        except (EquisepError, ValueError, KeyError) as error:
            raise StoreError(
                f"Cell {key} in `{self.root}` cannot be read by this version: {error} If a newer equisep wrote it, upgrade."
            ) from error

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        """One writer at a time, and a sentence where the disk refuses."""
        with writing(what, self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            with locked(self.root / ".lock"):
                yield

    def _manifest_path(self, figure: str, scale: str) -> Path:
        parts = figure.split("/")
        for name in (*parts, scale):
            if not NAME.fullmatch(name) or "." in name:
                raise InputError(
                    f"`{figure}` at scale `{scale}` cannot be stored: write ids of letters, digits, - and _."
                )
        return self.root.joinpath("figures", *parts[:-1], f"{parts[-1]}.{scale}.json")

    def _read_manifest(self, path: Path, figure: str, scale: str) -> Manifest | None:
        try:
            content = read_json(path)
        except FileNotFoundError:
            return None
        try:
            pairs = tuple((series, Cell.from_dict(own)) for series, own in content["entries"])
            return Manifest(figure, scale, pairs, dict(content["settings"]))
        except KeyError as error:
            raise ValueError(f"`{path.name}` has no {error}") from error
        except TypeError as error:
            raise ValueError(f"`{path.name}` has another layout ({error})") from error
        except EquisepError as error:
            raise StoreError(
                f"The manifest `{path}` cannot be read by this version: {error} If a newer equisep wrote it, upgrade."
            ) from error

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def _manifest_text(manifest: Manifest) -> str:
    """One line an entry."""
    head = {"kind": "equisep manifest", "schema": SCHEMA, "figure": manifest.figure, "scale": manifest.scale}
    lines = ",\n".join(json_text([series, cell.own_fields()]) for series, cell in manifest.entries)
    return f'{json_text(head)[:-1]},\n"settings":{json_text(manifest.settings)},\n"entries":[\n{lines}\n]}}\n'


def _schema_of(root: Path, *, create: bool) -> int:
    """The schema of the store in a folder; 0 where there is none yet, and may be; otherwise one sentence."""
    head = root / "store.json"
    if root.exists() and not root.is_dir():
        raise StoreError(f"A store is a folder, and `{root}` is a file. Give a folder.")
    try:
        content = parse_json(head.read_bytes(), name=head.name)
    except FileNotFoundError:
        others = [path.name for path in root.iterdir() if not path.name.startswith(".")] if root.exists() else []
        if others and not head.exists():  # it may have come while we looked
            raise StoreError(
                f"`{root}` is no store: it has no `store.json`, and {len(others)} other entries such as `{min(others)}`. "
                "Give a folder that is empty or does not exist yet."
            ) from None
        if not create:
            raise StoreError(f"No store at `{root}`. `equisep figures run` makes one.") from None
        return 0
    except ValueError as error:
        raise StoreError(
            f"`{root}` cannot be used as a store: {error}. If its cells are whole, write "
            f'{{"kind": "{KIND}", "schema": {SCHEMA}}} into `{head}`.'
        ) from error
    except OSError as error:
        raise StoreError(f"`{root}` cannot be read: {error.strerror or error}. Give another folder.") from error
    schema = content.get("schema")
    if content.get("kind") != KIND or type(schema) is not int:
        raise StoreError(
            f"`{root}` is no store: its `store.json` is of the kind {content.get('kind')!r}. Give another folder."
        )
    if schema > SCHEMA:
        raise StoreError(
            f"The store `{root}` was written by a newer equisep (schema {schema}; this version reads up to {SCHEMA}). "
            "Upgrade equisep, or give another folder."
        )
    return schema
