"""Where a published file lies on disk, packed or unpacked, and what it holds; archives are read in memory only."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from equisep.data.official.sources import SOURCES, OfficialFile, Part, Source
from equisep.errors import DataError

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Contents:
    """What one published file holds, part by part, and the checksum that did not fit, if one did not."""

    parts: dict[str, Part]
    doubt: DataError | None = None


def folders_of(source: Source, folder: Path) -> Iterator[Path]:
    """The folders under `folder` where files of `source` may lie; its own subfolder first.

    MNIST and Fashion-MNIST use the same file names, so the more specific folder must win.
    """
    for inner in (source.name, *source.folders, "."):
        if (folder / inner).is_dir():
            yield folder / inner


def find_contents(source: Source, file: OfficialFile, folders: Iterable[Path]) -> Contents | None:
    """The content of `file` from the first of `folders` that has it, packed or unpacked; `None` where none has it."""
    for folder in folders:
        for inside in folders_of(source, folder):
            packed = inside / file.name
            if packed.is_file():
                return packed_contents(file, packed)
            loose = _loose_paths(file, inside)
            if loose is not None:
                return _loose_contents(file, loose)
    return None


def packed_contents(file: OfficialFile, path: Path) -> Contents:
    """The parts of the published file at `path`, checked against its published MD5."""
    actual = md5_of_file(path)
    if file.name.endswith(".tar.gz"):
        parts = _tar_parts(file, path)
    elif file.name.endswith(".gz"):
        parts = {file.parts[0]: _gz_part(path)}
    else:
        parts = {file.parts[0]: Part(_read_bytes(path), str(path))}
    if actual == file.md5:
        return Contents(parts)
    # another gzip header (Debian's copies carry one) is no other data
    if file.plain_md5 is not None and _md5(parts[file.parts[0]].content) == file.plain_md5:
        return Contents(parts)
    return Contents(parts, doubt=wrong_checksum(file, path, expected=file.md5, actual=actual))


def md5_of_file(path: Path) -> str:
    """The MD5 sum of a file, read in blocks."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {error}. Check the file and its permissions.") from error
    return digest.hexdigest()


def wrong_checksum(file: OfficialFile, path: Path | str, *, expected: str, actual: str) -> DataError:
    """The error for a file that is not the published one; says whose it is where that is known."""
    owners = [s.name for s in SOURCES.values() if any(actual in (f.md5, f.plain_md5) for f in s.files)]
    if owners:
        advice = f"It is the file of `{owners[0]}`: keep each data set in a subfolder of its own name."
    else:
        advice = f"It is incomplete or altered: remove it and download it again from {file.url}."
    return DataError(f"`{path}` should have the MD5 {expected}; it has {actual}. {advice}")


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _loose_paths(file: OfficialFile, folder: Path) -> dict[str, Path] | None:
    """The unpacked parts of `file` in `folder`, in their folder or without it, where all are there."""
    for candidates in (
        {part: folder / part for part in file.parts},
        {part: folder / Path(part).name for part in file.parts},
    ):
        if all(path.is_file() for path in candidates.values()):
            return candidates
    return None


def _loose_contents(file: OfficialFile, paths: dict[str, Path]) -> Contents:
    parts = {name: Part(_read_bytes(path), str(path)) for name, path in paths.items()}
    if file.plain_md5 is None:  # no published sum of the members: the reader's structure checks must do
        return Contents(parts)
    part = parts[file.parts[0]]
    actual = _md5(part.content)
    if actual == file.plain_md5:
        return Contents(parts)
    return Contents(parts, doubt=wrong_checksum(file, part.where, expected=file.plain_md5, actual=actual))


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {error}. Check the file and its permissions.") from error


def _gz_part(path: Path) -> Part:
    try:
        return Part(gzip.decompress(_read_bytes(path)), str(path))
    except (EOFError, OSError, zlib.error) as error:
        raise _broken_archive(path, error) from error


def _tar_parts(file: OfficialFile, path: Path) -> dict[str, Part]:
    """The named members of a .tar.gz, in memory: nothing is written where a member's path points."""
    parts: dict[str, Part] = {}
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                stream = archive.extractfile(member) if name in file.parts and member.isreg() else None
                if stream is not None:
                    content = stream.read()
                    if len(content) != member.size:
                        raise EOFError(f"`{name}` ends after {len(content)} of {member.size} bytes")
                    parts[name] = Part(content, f"{path}:{name}")
                if len(parts) == len(file.parts):
                    return parts
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise _broken_archive(path, error) from error
    missing = ", ".join(f"`{name}`" for name in file.parts if name not in parts)
    raise DataError(f"`{path}` should hold {missing}; it does not. Download it again from {file.url}.")


def _broken_archive(path: Path, error: Exception) -> DataError:
    return DataError(
        f"`{path}` cannot be decompressed ({error}): its {path.stat().st_size} bytes are truncated or damaged. "
        "Remove it and download it again."
    )
