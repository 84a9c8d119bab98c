"""Store: one folder a cell, whole or not there, never overwritten; and which cells belong to which figure. No torch.

    store.json                              kind and schema
    cells/3f/3ff67d9e…/cell.json            the fields that differ from their defaults, and checksums of the other two
                      /outcome.json
                      /provenance.json
    figures/he2023/fig1.paper.json          the series and cells that runs of a figure asked for
    broken/3ff67d9e…-0/                     what was found damaged

Several processes may write to one store: a cell is renamed into place, and manifests are merged under a lock.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equisep._version import __version__
from equisep.errors import EquisepError, InputError, StoreError
from equisep.figures.cell import Cell
from equisep.figures.evidence import Entry
from equisep.figures.outcome import Outcome
from equisep.files import (
    json_text,
    locked,
    parse_json,
    part_of,
    plain,
    read_json,
    remove_dead_part,
    sync_folder,
    write_synced,
    write_whole,
    writing,
)

KIND, SCHEMA = "equisep store", 1
CELL, OUTCOME, PROVENANCE = "cell.json", "outcome.json", "provenance.json"
KEY = re.compile(r"[0-9a-f]{32}")
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


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

        Opened for writing, what processes that died left behind is removed and damaged cells are moved aside.
        """
        store = Store(Path(path))
        _check_root(store.root, create=create)
        if create:
            with writing("A first file", store.root):
                store.root.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=store.root):  # asks the disk itself; permissions alone do not tell
                    pass
            with writing("`store.json`", store.root):
                if not (store.root / "store.json").exists():
                    head = {"kind": KIND, "schema": SCHEMA, "equisep": __version__}
                    write_whole(store.root / "store.json", json_text(head, indent=1) + "\n")
            store._clean()
        return store

    def done(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys whose cells are finished and whole."""
        found = set()
        for key in dict.fromkeys(keys):
            reason = self._damage(key)
            if reason is None:
                found.add(key)
            elif reason:
                self._note(f"Cell {key} is damaged and does not count: {reason}.")
        return found

    def get(self, key: str) -> Stored:
        """One finished cell."""
        reason = self._damage(key)
        if reason == "":
            raise StoreError(f"No cell {key} in `{self.root}`. It was not run, or in another store.")
        if reason:
            raise StoreError(f"Cell {key} in `{self.root}` is damaged: {reason}. Run its figure again.")
        return self._read(key)

    def put(self, cell: Cell, outcome: Outcome, provenance: Mapping[str, Any]) -> bool:
        """Store a finished cell; False where it is there already, which is left as it is."""
        target = self._folder(cell.key)
        texts = {OUTCOME: json_text(outcome), PROVENANCE: json_text(provenance, indent=1)}
        own = own_fields(cell)
        if _key_of(plain(own)) != cell.key:
            raise InputError(f"A cell with a number that is not finite cannot be stored: {own}.")
        head = {"cell": own, "sha256": {name: _sha256(text.encode()) for name, text in texts.items()}}
        part = part_of(target)
        with writing(f"Cell {cell.key}", self.root):
            try:
                part.mkdir(parents=True)
                for name, text in {**texts, CELL: json_text(head, indent=1)}.items():
                    write_synced(part / name, text)
                sync_folder(part)
                while True:
                    try:
                        part.rename(target)
                    except OSError as error:
                        if error.errno not in TAKEN:
                            raise
                        if self._damage(cell.key) is None:
                            return False
                        self._set_aside(cell.key)
                    else:
                        sync_folder(target.parent)
                        return True
            finally:
                shutil.rmtree(part, ignore_errors=True)

    def add_manifest(
        self, figure: str, scale: str, entries: Sequence[tuple[str, Cell]], settings: Mapping[str, Any]
    ) -> Manifest:
        """Join what a run asks for to what earlier runs of the figure asked for; later settings replace earlier ones."""
        path = self._manifest_path(figure, scale)
        with writing(f"The manifest of `{figure}`", self.root):
            path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.root / ".lock"):
                try:
                    before = self._read_manifest(path, figure, scale)
                except ValueError as error:
                    aside = self._free_name(path.name)
                    path.rename(aside)
                    self._note(f"The manifest of `{figure}` was damaged ({error}); it was moved to `{aside}`.")
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

    def planned(self, figure: str, scale: str) -> int:
        """How many cells were asked for, over all series."""
        manifest = self.manifest(figure, scale)
        return 0 if manifest is None else len(manifest.entries)

    def entries(self, figure: str, scale: str) -> list[Entry]:
        """The finished cells of a figure at a scale, series by series."""
        manifest = self.manifest(figure, scale)
        if manifest is None:
            return []
        keys = [cell.key for _, cell in manifest.entries]
        read = {key: self._read(key) for key in self.done(keys)}
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

    def _folder(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise InputError(f"`{key}` is no key of a cell, which has 32 hexadecimal digits.")
        return self.root / "cells" / key[:2] / key

    def _damage(self, key: str) -> str | None:
        """What is wrong with a cell's folder, in a clause; "" where there is none, None where it is whole."""
        folder = self._folder(key)
        try:
            head = read_json(folder / CELL)
            if _key_of(head.get("cell")) != key:
                return f"`{CELL}` is of another cell"
            sums = head.get("sha256")
            for name in (OUTCOME, PROVENANCE):
                if not isinstance(sums, dict) or _sha256((folder / name).read_bytes()) != sums.get(name):
                    return f"`{name}` is truncated or was changed"
        except FileNotFoundError as error:
            return f"`{Path(error.filename).name}` is missing" if folder.exists() else ""
        except (NotADirectoryError, IsADirectoryError) as error:
            return f"`{Path(error.filename).name}` is not what it should be ({error.strerror})"
        except ValueError as error:
            return str(error)
        except OSError as error:  # says nothing about the cell: too many open files, a server that is away
            raise StoreError(f"`{folder}` cannot be read: {error.strerror or error}. Try again.") from error
        return None

    def _read(self, key: str) -> Stored:
        folder = self._folder(key)
        try:
            cell = Cell.from_dict(read_json(folder / CELL)["cell"])
            return Stored(cell, Outcome.from_dict(read_json(folder / OUTCOME)), read_json(folder / PROVENANCE))
        except (EquisepError, ValueError, OSError) as error:
            raise StoreError(
                f"Cell {key} in `{self.root}` cannot be read by this version: {error} If a newer equisep wrote it, upgrade."
            ) from error

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

    def _clean(self) -> None:
        with writing("The order of the store", self.root):
            for part in [*self.root.glob(".*.part"), *self.root.glob("*/**/.*.part")]:
                remove_dead_part(part)
            for key in self._present():
                if self._damage(key):
                    self._set_aside(key)

    def _present(self) -> Iterator[str]:
        for path in sorted((self.root / "cells").glob("*/*")):
            if KEY.fullmatch(path.name) and path.parent.name == path.name[:2]:
                yield path.name

    def _set_aside(self, key: str) -> None:
        with locked(self.root / ".lock"):
            reason = self._damage(key)  # asked again: another process may have put a whole one there
            if reason:
                aside = self._free_name(key)
                self._folder(key).rename(aside)
                self._note(f"Cell {key} was damaged ({reason}); it was moved to `{aside}` and will be run again.")

    def _free_name(self, name: str) -> Path:
        broken = self.root / "broken"
        broken.mkdir(exist_ok=True)
        n = 0
        while (broken / f"{name}-{n}").exists():
            n += 1
        return broken / f"{name}-{n}"

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def own_fields(cell: Cell) -> dict[str, Any]:
    """The fields that differ from their defaults, which is what the key is made of."""
    defaults = Cell().to_dict()
    return {name: value for name, value in cell.to_dict().items() if value != defaults[name]}


def _key_of(own: Any) -> str:
    """The key of stored fields, also of those that only a newer version knows; see `Cell.key`."""
    return _sha256(json.dumps(own, sort_keys=True).encode())[:32]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _manifest_text(manifest: Manifest) -> str:
    """One line an entry."""
    head = {"kind": "equisep manifest", "schema": SCHEMA, "figure": manifest.figure, "scale": manifest.scale}
    lines = ",\n".join(json_text([series, own_fields(cell)]) for series, cell in manifest.entries)
    return f'{json_text(head)[:-1]},\n"settings":{json_text(manifest.settings)},\n"entries":[\n{lines}\n]}}\n'


def _check_root(root: Path, *, create: bool) -> None:
    """A store of this version, an empty folder, or nothing yet; otherwise one sentence."""
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
        return
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
