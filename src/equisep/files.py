"""Files that appear whole or not at all: plain JSON, temporary siblings, locks, and a sentence for a full disk."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from equisep.errors import StoreError
from equisep.results.codec import encode

FULL = (errno.ENOSPC, errno.EDQUOT)
PART = re.compile(r"\..+\.(?P<pid>\d+)-\d+@(?P<host>.*)\.part")
_turns = count()


def plain(value: Any) -> Any:
    """Records and numbers as plain JSON types; a number that is not finite does not exist: None."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return plain(encoded) if (encoded := encode(value)) is not value else value


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON without NaN, in ASCII, so that every name of a file survives it."""
    return json.dumps(plain(value), indent=indent, allow_nan=False, separators=None if indent else (",", ":"))


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; a ValueError says in a clause what is wrong with it."""
    return parse_json(path.read_bytes(), name=path.name)


def parse_json(content: bytes, *, name: str) -> dict[str, Any]:
    """The object that `content` holds; a ValueError says in a clause what is wrong with it."""
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # of which JSONDecodeError and UnicodeDecodeError are two
        raise ValueError(f"`{name}` is truncated or no JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"`{name}` holds a {type(found).__name__}, not an object")
    return found


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
    place = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    amount = float(shutil.disk_usage(place).free)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def write_whole(path: Path, text: str) -> None:
    """A new or replaced file: its temporary sibling is on the disk before it takes the name."""
    part = part_of(path)
    try:
        write_synced(part, text)
        part.replace(path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write_synced(path: Path, text: str) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(text.encode("ascii"))
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
    """A temporary sibling, named by the process that writes it."""
    return target.with_name(f".{target.name}.{os.getpid()}-{next(_turns)}@{_host()}.part")


def remove_dead_part(path: Path) -> None:
    """Remove a temporary sibling if its process was one of this machine and has ended."""
    named = PART.fullmatch(path.name)
    if named is None or named["host"] != _host() or _alive(int(named["pid"])):
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _host() -> str:
    return socket.gethostname().replace("/", "-")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:  # no process has such a number
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the kernel lets go of the lock of a process that dies, so none is ever stale."""
    import fcntl  # only writers need it: a store can be read where locks are made otherwise

    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
