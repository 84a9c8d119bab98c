"""Downloading published files into the user's cache with pooch, checked by MD5, with a progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equisep.data.official.archives import Contents, md5_of_file, packed_contents
from equisep.data.official.sources import OfficialFile, Source
from equisep.errors import DataError
from equisep.progress import Progress


class UnfetchedError(Exception):
    """Why a file could not be had from the network; its text is the clause that goes into the final error."""


class Meter:
    """What pooch asks of a progress bar, handed on as `progress(file name, bytes done, bytes in all or None)`."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.name = name
        self.total = 0
        self._done = 0
        self._progress = progress

    def update(self, count: int) -> None:
        """Add `count` bytes; pooch counts whole blocks, so the last one is cut to what is there."""
        self._done += count
        self._progress(self.name, min(self._done, self.total) if self.total else self._done, self.total or None)

    def reset(self) -> None:
        """Start again at zero, as pooch does before it reports the end."""
        self._done = 0

    def close(self) -> None:
        """Nothing is held open."""


class StderrBar:
    """A line on stderr, redrawn in place on a terminal; elsewhere one line for each tenth."""

    def __init__(self) -> None:
        self._next = 0.0
        self._shown = ""

    def __call__(self, name: str, done: int, total: int | None) -> None:
        """Draw the state of one file."""
        finished = total is not None and done >= total
        terminal = sys.stderr.isatty()
        state = done / total if total else done / 1e9
        now = time.monotonic() if terminal else state
        if (not finished and now < self._next) or (finished and self._shown == name):
            return
        self._next = now + 0.1
        filled = int(30 * min(state, 1.0))
        size = f"{done / 1e6:7.1f} of {total / 1e6:.1f} MB" if total else f"{done / 1e6:7.1f} MB"
        line = f"{name:32} {'█' * filled}{'░' * (30 - filled)} {size}"
        sys.stderr.write(f"\r{line}{chr(10) if finished else ''}" if terminal else f"{line}\n")
        sys.stderr.flush()
        if finished:
            self._shown, self._next = name, 0.0


def cache_folder(source: Source) -> Path | None:
    """The user's cache for one data set, or `None` where pooch is not installed; nothing is created."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("equisep")) / source.name


def cached_contents(source: Source, file: OfficialFile) -> Contents | None:
    """The content of `file` from the cache where it lies there whole."""
    folder = cache_folder(source)
    if folder is None or not (folder / file.name).is_file() or md5_of_file(folder / file.name) != file.md5:
        return None
    return packed_contents(file, folder / file.name)


def fetched_contents(source: Source, file: OfficialFile, progress: Progress | None) -> Contents:
    """The content of `file`, downloaded into the cache; `UnfetchedError` where the network does not give it."""
    folder = cache_folder(source)
    if folder is None:
        raise UnfetchedError("the package `pooch`, which downloads, is not installed")
    return packed_contents(file, _retrieve(file, folder, Meter(file.name, progress or StderrBar())))


def _retrieve(file: OfficialFile, folder: Path, meter: Meter) -> Path:
    import pooch

    downloader = pooch.HTTPDownloader(progressbar=meter)
    with _quiet_pooch():
        try:
            return Path(
                pooch.retrieve(file.url, f"md5:{file.md5}", fname=file.name, path=folder, downloader=downloader)
            )
        except ValueError as error:  # pooch's word for a sum that does not fit; it has removed the file
            raise DataError(
                f"`{file.name}` downloaded from {file.url} should have the MD5 {file.md5}; it has another ({error}). "
                "A proxy or a page to log in may stand between: try again, or put the file into a folder "
                "and give that folder as `--data-dir` or EQUISEP_DATA."
            ) from error
        except OSError as error:  # requests' errors are OSErrors too
            raise UnfetchedError(f"{type(error).__name__}: {error}") from error


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Our bar stands for pooch's own messages while it works; its logger is left as found."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)
