"""A data set by its name or path: embedded, any `.npz` file, in a folder of the user's, in the cache, or downloaded."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import BinaryIO

import numpy as np

from equisep.data.dataset import ARRAYS, NAMES, Array, Dataset, Origin, checked_dataset, names_in
from equisep.data.official.archives import Contents, find_contents, folders_of
from equisep.data.official.download import UnfetchedError, cache_folder, cached_contents, fetched_contents
from equisep.data.official.sources import FASHION_NAMES, SOURCES, OfficialFile, Source
from equisep.errors import DataError, did_you_mean
from equisep.progress import Progress

FOLDER_VARIABLE = "EQUISEP_DATA"
_EMBEDDED = {"embedded-10x10": "fashion_mnist_10x10.npz", "embedded-28x28": "fashion_mnist_28x28.npz"}

DATA_NAMES: tuple[str, ...] = (*_EMBEDDED, *SOURCES)


def load_data(
    name: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """The data set called `name` (see `DATA_NAMES`), or the `.npz` file at the path `name`.

    Official data sets are looked for in `data_dir`, in the folder EQUISEP_DATA names, in the user's cache, and then,
    with `download`, on the network. In a folder they may lie as published, unpacked, or as `<name>.npz`, there or in a
    subfolder `<name>`. Any other name is looked for as `<name>.npz` in those folders. A path needs `x_train, y_train,
    x_test, y_test`. `progress(file, done, total)` hears of downloads; without it a bar is drawn on stderr.

    >>> import equisep
    >>> data = equisep.load_data("embedded-10x10")
    >>> data.x_train.shape, data.class_names[:3]
    ((6000, 10, 10), ('T-shirt/top', 'Trouser', 'Pullover'))
    """
    text = os.fspath(name)
    if text in _EMBEDDED:
        return _load_embedded(text)
    if text.endswith(".npz") or os.sep in text or "/" in text:
        return load_npz(Path(text).expanduser())
    folders = user_folders(data_dir)
    if text in SOURCES:
        return _load_official(SOURCES[text], folders, download=download, progress=progress)
    for folder in folders:
        if (folder / f"{text}.npz").is_file():
            return load_npz(folder / f"{text}.npz", name=text, source="folder")
    raise _unknown(text, folders)


def _load_embedded(name: str) -> Dataset:
    with as_file(files("equisep.data") / "embedded" / _EMBEDDED[name]) as path:
        return load_npz(path, name=name, source="embedded", classes=10, class_names=FASHION_NAMES)


def full_per_class(dataset: Dataset) -> int | None:
    """How many training samples per class the official set holds of which `dataset` is a part; None where it is no part.

    The size of the pool that a walk goes through (`equisep.data.draw`), for the embedded parts of Fashion-MNIST and parts
    of official sets that a user's folder holds under their names.
    """
    source = SOURCES["fashion-mnist"] if dataset.name in _EMBEDDED else SOURCES.get(dataset.name)
    if source is None or len(dataset.y_train) >= source.samples[0]:
        return None
    return source.samples[0] // source.classes


def user_folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    """The folders the user named, in the order they are searched; one that does not exist is an error."""
    named = [("data_dir", data_dir), (FOLDER_VARIABLE, os.environ.get(FOLDER_VARIABLE))]
    folders: list[Path] = []
    for origin, value in named:
        if not value:
            continue
        folder = Path(value).expanduser()
        if not folder.is_dir():
            raise DataError(
                f"`{origin}` should name a folder of data files; there is no folder `{folder}`. Correct it."
            )
        folders.append(folder)
    return folders


def _load_official(source: Source, folders: Sequence[Path], *, download: bool, progress: Progress | None) -> Dataset:
    for folder in folders:
        contents = [find_contents(source, file, [folder]) for file in source.files]
        whole = [c for c in contents if c is not None]
        if len(whole) == len(contents):
            return _dataset(source, whole, where=str(folder), downloaded=False)
        for inside in folders_of(source, folder):
            packed = inside / f"{source.name}.npz"
            if packed.is_file():
                return load_npz(
                    packed, name=source.name, source="folder", classes=source.classes, class_names=source.class_names
                )
    gathered = [_gather(source, file, folders, download=download, progress=progress) for file in source.files]
    return _dataset(source, gathered, where=source.name, downloaded=True)


def _gather(
    source: Source, file: OfficialFile, folders: Sequence[Path], *, download: bool, progress: Progress | None
) -> Contents:
    """One file from wherever it is first found; files of one data set may lie in several places."""
    contents = find_contents(source, file, folders) or cached_contents(source, file)
    if contents is not None:
        return contents
    reason = "downloading is switched off"
    if download:
        try:
            return fetched_contents(source, file, progress)
        except UnfetchedError as error:
            reason = f"it could not be downloaded from {file.url} ({error})"
    cache = cache_folder(source)
    looked = ", ".join(f"`{folder}`" for folder in (*folders, cache) if folder is not None) or "no folder"
    raise DataError(
        f"`{source.name}` needs the file `{file.name}`; it was looked for in {looked}, and {reason}. Get it with "
        f"`curl -LO {file.url}`, put it into a folder and give that folder as `--data-dir` or {FOLDER_VARIABLE}."
    )


def _dataset(source: Source, contents: Sequence[Contents], *, where: str, downloaded: bool) -> Dataset:
    parts = {name: part for content in contents for name, part in content.parts.items()}
    doubt = next((content.doubt for content in contents if content.doubt is not None), None)
    if doubt is not None and source.fragile:
        raise doubt
    # elsewhere the structure is read first: "truncated after 12 images" helps more than two unequal sums
    arrays = source.read(parts)
    if doubt is not None:
        raise doubt
    counts = (len(arrays["x_train"]), len(arrays["x_test"]))
    if counts != source.samples:
        raise DataError(
            f"`{source.name}` has {source.samples[0]} training and {source.samples[1]} test samples; the files in "
            f"`{where}` hold {counts[0]} and {counts[1]}. Replace them; a part of it goes into an .npz file of your own."
        )
    return checked_dataset(
        arrays,
        name=source.name,
        where=where,
        source="download" if downloaded else "folder",
        classes=source.classes,
        class_names=source.class_names,
    )


def _unknown(name: str, folders: Sequence[Path]) -> DataError:
    held = [path.stem for folder in folders for path in sorted(folder.glob("*.npz"))]
    looked = f", and no `{name}.npz` lies in {', '.join(f'`{f}`' for f in folders)}" if folders else ""
    return DataError(
        f"There is no data set `{name}`{looked}.{did_you_mean(name, [*DATA_NAMES, *held])} "
        f"Known names: {', '.join(DATA_NAMES)}; a path to any .npz file with {', '.join(ARRAYS)} works too."
    )


def load_npz(
    path: Path,
    *,
    name: str | None = None,
    source: Origin = "file",
    classes: int | None = None,
    class_names: tuple[str, ...] = (),
) -> Dataset:
    """The data set in the `.npz` file at `path`, checked; an array `class_names` in it names the classes."""
    arrays = read_arrays(path, ARRAYS, also=(NAMES,))
    if not class_names and NAMES in arrays:
        class_names = names_in(arrays[NAMES], where=str(path))
    return checked_dataset(
        arrays,
        name=name or path.stem,
        where=str(path),
        source=source,
        classes=classes,
        class_names=class_names,
    )


def read_arrays(path: Path, wanted: tuple[str, ...], *, also: tuple[str, ...] = ()) -> dict[str, Array]:
    """The arrays `wanted` of an `.npz` file, and those of `also` that it holds, or a `DataError` saying what is wrong with it."""
    if not path.exists():
        raise DataError(f"There is no file `{path}`. Check the path; a data set is a name or the path of an .npz file.")
    if path.is_dir():
        raise DataError(
            f"`{path}` is a folder; a data set by path is one .npz file. "
            "A folder of official files goes into `--data-dir` or EQUISEP_DATA, with the data set by its name."
        )
    try:
        with path.open("rb") as stream:
            return _read_stream(stream, path, wanted, also)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {error}. Check the file and its permissions.") from error
    except Exception as error:  # numpy and zipfile raise whatever the damaged bytes lead to
        raise _damaged(path, error) from error


def _read_stream(stream: BinaryIO, path: Path, wanted: tuple[str, ...], also: tuple[str, ...]) -> dict[str, Array]:
    if not zipfile.is_zipfile(stream):
        raise DataError(
            f"`{path}` cannot be read as .npz: its {path.stat().st_size} bytes are no complete zip archive. "
            f"It is truncated, damaged or something else; save it again with {', '.join(ARRAYS)}."
        )
    stream.seek(0)
    with np.load(stream, allow_pickle=False) as archive:
        missing = [key for key in wanted if key not in archive.files]
        if missing:
            held = ", ".join(f"`{key}`" for key in archive.files) or "nothing"
            raise DataError(
                f"`{path}` needs the arrays {', '.join(f'`{key}`' for key in wanted)}; "
                f"{', '.join(f'`{key}`' for key in missing)} missing, it holds {held}. Save it with all of them."
            )
        there = (*wanted, *(key for key in also if key in archive.files))
        return {key: _read_array(archive, key, path) for key in there}


def _read_array(archive: np.lib.npyio.NpzFile, key: str, path: Path) -> Array:
    try:
        values: Array = archive[key]
    except Exception as error:  # as above
        if isinstance(error, ValueError) and "allow_pickle" in str(error):
            raise DataError(
                f"`{path}`: `{key}` holds Python objects, which only unpickling could read, and pickle can run code. "
                f"Save it as an array of {'words, `np.array(names)`' if key == NAMES else 'numbers'}."
            ) from error
        raise _damaged(path, error, key=key) from error
    if not isinstance(values, np.ndarray):  # a member that is no .npy comes back as bytes
        raise _damaged(path, "not an array", key=key)
    # torch reads native byte order only
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _damaged(path: Path, reason: object, *, key: str | None = None) -> DataError:
    part = f": `{key}`" if key else ""
    return DataError(f"`{path}`{part} is damaged ({reason}). Save or download the file again.")
