"""Files that appear whole or not at all: one JSON encoder, temporary siblings, locks, lines that are whole or not there."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Literal

from equisep.errors import StoreError

FULL = (errno.ENOSPC, errno.EDQUOT)
NonFinite = Literal["keep", "null", "text"]


def encode(value: Any, *, nonfinite: NonFinite = "keep") -> Any:
    """A record, an array, a tensor, a number, and all inside them, as plain JSON types; any other object as it is.

    JSON knows neither NaN nor infinity. `keep` leaves them, for `json.dumps(allow_nan=False)` to refuse; `null` says that
    such a number does not exist; `text` does so for NaN alone and writes "inf" beyond the greatest float.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _number(float(value), nonfinite)
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: encode(getattr(value, entry.name), nonfinite=nonfinite) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(entry, nonfinite=nonfinite) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [encode(entry, nonfinite=nonfinite) for entry in value]
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # of numpy or of torch, neither of which is needed here
        return encode(value.tolist(), nonfinite=nonfinite)
    return value


def _number(value: float, nonfinite: NonFinite) -> float | str | None:
    if nonfinite == "keep" or math.isfinite(value):
        return value
    return str(value) if nonfinite == "text" and not math.isnan(value) else None


def plain(value: Any) -> Any:
    """As plain JSON types, as stores and records hold them: a number that is not finite does not exist, None."""
    return encode(value, nonfinite="null")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON without NaN, in ASCII, so that every name of a file survives it."""
    return json.dumps(plain(value), indent=indent, allow_nan=False, separators=None if indent else (",", ":"))


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; a ValueError says in a clause what is wrong with it."""
    return parse_json(path.read_bytes(), name=path.name)


def parse_json(content: bytes, *, name: str) -> dict[str, Any]:
    """The object that `content` holds; a ValueError says in a clause what is wrong with it."""
    try:
        value = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # of which JSONDecodeError and UnicodeDecodeError are two
        raise ValueError(f"`{name}` is truncated or no JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` holds a {type(value).__name__}, not an object")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it holds {name}")


@contextmanager
def writing(what: str, root: Path) -> Iterator[None]:
    """Turns what a disk says while `what` is written into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            reason = "its quota is used up" if error.errno == errno.EDQUOT else f"{_free(root)} is free there"
            raise StoreError(
                f"{what} could not be stored in `{root}`: the disk is full ({reason}). What was stored before is intact; "
                "free some space and run the same command again."
            ) from error
        raise StoreError(
            f"{what} could not be stored in `{root}`: {error.strerror or error}. What was stored before is intact; "
            "make the folder writable, or give another."
        ) from error


def _free(root: Path) -> str:
    """The free space of the disk that will hold `root`, in words."""
    existing = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    amount = float(shutil.disk_usage(existing).free)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def write_whole(path: Path, content: str | Callable[[BinaryIO], None]) -> None:
    """A new or replaced file, its folder made where missing: a temporary sibling is on the disk before it takes the name.

    `content` is text, or a function that writes into the open file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(path)
    try:
        write_synced(part, content)
        part.replace(path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write_synced(path: Path, content: str | Callable[[BinaryIO], None]) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        if isinstance(content, str):
            file.write(content.encode("utf-8"))
        else:
            content(file)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def part_of(target: Path) -> Path:
    """A temporary sibling of a name that no other writer has."""
    return target.with_name(f".{target.name}.{token_hex(4)}.part")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the kernel lets go of the lock of a process that dies, so none is ever stale."""
    import fcntl  # only writers need it: a store can be read where locks are made otherwise

    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether this process alone works on what `path` stands for, until the end of the block; the folder must exist."""
    import fcntl

    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


class LineFile:
    """JSON objects, one per line, written at the end only: each is on the disk before `append` returns, or is not there.

    A process that dies while it writes leaves the beginning of a line, which no reader takes for one and the next `append`
    overwrites. The first line is written with the file itself, which appears whole. `damaged` counts lines in the middle
    that are no JSON; they are passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._end = 0  # of the last whole line
        self._torn = False  # whether what stands after it is ours: a line that could not be written whole

    def read(self) -> list[dict[str, Any]]:
        """Every whole line, in order; none where there is no file."""
        content = self.path.read_bytes() if self.path.exists() else b""
        self._end = content.rfind(b"\n") + 1
        self._torn = self._end < len(content)
        self.damaged = 0
        entries = []
        for line in content[: self._end].splitlines():
            try:
                entries.append(parse_json(line, name=self.path.name))
            except ValueError:
                self.damaged += 1
        return entries

    def create(self, first: Any) -> None:
        """A new file, or an empty one, with its first line."""
        text = json_text(first) + "\n"
        with writing(f"`{self.path.name}`", self.path.parent):
            write_whole(self.path, text)
        self._end, self._torn = len(text.encode()), False

    def append(self, entry: Any) -> None:
        """One line more; a StoreError says why it is not there, and the file is as it was."""
        line = (json_text(entry) + "\n").encode()
        with writing(f"A line of `{self.path.name}`", self.path.parent), self.path.open("r+b") as file:
            if not self._torn and file.seek(0, os.SEEK_END) != self._end:
                raise StoreError(
                    f"`{self.path}` was changed by another program while this one writes it. Give each program a file of "
                    "its own."
                )
            self._torn = True
            file.seek(self._end)
            file.truncate()
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._end, self._torn = self._end + len(line), False
