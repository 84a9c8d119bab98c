"""Any `.npz` file with `x_train, y_train, x_test, y_test` as a data set; nothing pickled is ever read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from equisep.data.dataset import ARRAYS, Array, Dataset, Origin, checked_dataset
from equisep.errors import DataError


def load_npz(
    path: Path,
    *,
    name: str | None = None,
    source: Origin = "file",
    classes: int | None = None,
    class_names: tuple[str, ...] = (),
) -> Dataset:
    """The data set in the `.npz` file at `path`, checked."""
    arrays = read_arrays(path, ARRAYS)
    return checked_dataset(
        arrays,
        name=name or path.stem,
        where=str(path),
        source=source,
        classes=classes,
        class_names=class_names,
    )


def read_arrays(path: Path, wanted: tuple[str, ...]) -> dict[str, Array]:
    """The arrays `wanted` of an `.npz` file, or a `DataError` saying what is wrong with it."""
    if not path.exists():
        raise DataError(f"There is no file `{path}`. Check the path; a data set is a name or the path of an .npz file.")
    if path.is_dir():
        raise DataError(
            f"`{path}` is a folder; a data set by path is one .npz file. "
            "A folder of official files goes into `--data-dir` or EQUISEP_DATA, with the data set by its name."
        )
    try:
        with path.open("rb") as stream:
            return _read_stream(stream, path, wanted)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {error}. Check the file and its permissions.") from error
    except Exception as error:  # numpy and zipfile raise whatever the damaged bytes lead to
        raise _damaged(path, error) from error


def _read_stream(stream: BinaryIO, path: Path, wanted: tuple[str, ...]) -> dict[str, Array]:
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
        return {key: _read_array(archive, key, path) for key in wanted}


def _read_array(archive: np.lib.npyio.NpzFile, key: str, path: Path) -> Array:
    try:
        values: Array = archive[key]
    except Exception as error:  # as above
        if isinstance(error, ValueError) and "allow_pickle" in str(error):
            raise DataError(
                f"`{path}`: `{key}` holds Python objects, which only unpickling could read, and pickle can run code. "
                "Save it as an array of numbers."
            ) from error
        raise _damaged(path, error, key=key) from error
    if not isinstance(values, np.ndarray):  # a member that is no .npy comes back as bytes
        raise _damaged(path, "not an array", key=key)
    # torch reads native byte order only
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _damaged(path: Path, reason: object, *, key: str | None = None) -> DataError:
    part = f": `{key}`" if key else ""
    return DataError(f"`{path}`{part} is damaged ({reason}). Save or download the file again.")
