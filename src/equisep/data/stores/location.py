"""Location: a file or a folder, on a disk or behind a URL that fsspec knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equisep.errors import DataError, EquisepError, MissingExtraError

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|[A-Za-z0-9+.-]+::")
READ_AHEAD = 2**23  # bytes that a remote file is fetched by


@dataclass(frozen=True, slots=True)
class Location:
    """A path; `system` is its fsspec file system, None for the local disk."""

    path: str
    system: Any = None

    @staticmethod
    def of(url: str | Path) -> Location:
        """Where a path or a URL leads; `file://` is the local disk."""
        text = str(url)
        if text.startswith("file://"):
            text = text.removeprefix("file://")
        if not _REMOTE.match(text):
            return Location(str(Path(text).expanduser()))
        try:
            import fsspec
        except ImportError as error:
            raise MissingExtraError(needed_for=f"`{text}`", package="fsspec", extra="stores") from error
        try:
            system, path = fsspec.core.url_to_fs(text)
        except Exception as error:  # a protocol that is unknown, or whose package is missing
            raise DataError(f"`{text}` cannot be opened: {_reason(error)}. Check the URL.") from error
        return Location(path.rstrip("/") or path, system)

    def __str__(self) -> str:
        return self.path if self.system is None else str(self.system.unstrip_protocol(self.path))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return self.name.rpartition(".")[0] or self.name

    @property
    def suffix(self) -> str:
        """The ending of the name, in small letters."""
        return f".{self.name.rpartition('.')[2].lower()}" if "." in self.name else ""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder; a sentence where there is nothing."""
        with self._asked():
            if self.system is None:
                there, folder = Path(self.path).exists(), Path(self.path).is_dir()
            else:
                there, folder = self.system.exists(self.path), self.system.isdir(self.path)
        if not there:
            raise DataError(f"There is no file or folder `{self}`. Check the path or the URL.")
        return bool(folder)

    def child(self, name: str) -> Location:
        """What lies in this folder under a name."""
        return Location(f"{self.path.rstrip('/')}/{name}", self.system)

    def exists(self) -> bool:
        """Whether there is anything."""
        with self._asked():
            return Path(self.path).exists() if self.system is None else bool(self.system.exists(self.path))

    def children(self) -> list[Location]:
        """What a folder holds, `layer2` before `layer10`; hidden files are left out."""
        with self._asked():
            if self.system is None:
                names = [entry.name for entry in Path(self.path).iterdir()]
            else:
                listed = self.system.ls(self.path, detail=False)
                names = [str(entry).rstrip("/").rpartition("/")[2] for entry in listed]
        return [self.child(name) for name in sorted(names, key=natural) if not name.startswith((".", "_"))]

    @contextmanager
    def _asked(self) -> Iterator[None]:
        try:
            yield
        except EquisepError:
            raise
        except Exception as error:  # whatever a file system of fsspec raises
            raise DataError(
                f"`{self}` cannot be looked at: {_reason(error)}. Check the path and its permissions."
            ) from error

    def open(self) -> Any:
        """The file, to be read as bytes; what goes wrong is the caller's to tell."""
        if self.system is None:
            return Path(self.path).open("rb", buffering=0)
        return self.system.open(self.path, "rb", block_size=READ_AHEAD)

    @contextmanager
    def reading(self, what: str = "") -> Iterator[None]:
        """A sentence around whatever reading raises: a store that vanished, a file that is damaged."""
        try:
            yield
        except EquisepError:
            raise
        except Exception as error:  # of the disk, of fsspec, of pyarrow
            raise DataError(
                f"`{self}` could not be read{f' {what}' if what else ''}: {_reason(error)}. Check that the store is still there "
                "and whole, then run the same again."
            ) from error


def natural(name: str) -> list[tuple[int, int | str]]:
    """The key that sorts `layer2` before `layer10`."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def _reason(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words.strip().partition("\n")[0].rstrip(".") or type(error).__name__
