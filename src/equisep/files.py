"""Files that appear whole or not at all: one JSON encoder, temporary siblings, locks, and a sentence for a full disk."""

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
        value = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
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
