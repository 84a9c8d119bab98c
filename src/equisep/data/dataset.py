"""One data set in memory: training and test samples, their labels, and where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equisep.display import brief
from equisep.errors import DataError, InputError, LabelError
from equisep.labels import Labels, label_vector
from equisep.results import Note

Array = npt.NDArray[Any]
Origin = Literal["embedded", "download", "folder", "file"]

DEEPEST = 20  # subsets of subsets, at the most
ARRAYS = ("x_train", "y_train", "x_test", "y_test")
NAMES = "class_names"  # beside them, where a file names its classes


@brief
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples and labels of one data set.

    `x_*` are images (uint8 or float; n × height × width, or n × height × width × channels), vectors (n × d), or
    whatever a user's file holds; `y_*` are int64 labels in 0 … `classes` − 1.
    """

    name: str
    x_train: Array
    y_train: Labels
    x_test: Array
    y_test: Labels
    classes: int
    source: Origin
    class_names: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @cached_property
    def checksum(self) -> str:
        """SHA-256 (hex) of types, shapes and values: the same numbers give the same checksum, wherever they lay."""
        digest = hashlib.sha256()
        for key in ARRAYS:
            values: Array = getattr(self, key)
            # little-endian on every machine, so that a record made on one can be compared on another
            portable = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
            digest.update(f"{key} {portable.dtype.str} {portable.shape}\n".encode())
            digest.update(portable.data)
        return digest.hexdigest()

    def split(self, which: str) -> tuple[Array, Labels]:
        """Samples and labels of the `train` or the `test` part."""
        if which == "train":
            return self.x_train, self.y_train
        if which == "test":
            return self.x_test, self.y_test
        raise InputError(f"A data set has the splits `train` and `test`; {which!r} was asked for.")

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.x_train.shape[1:]))
        return (
            f"Dataset({self.name!r}: {len(self.x_train)} train + {len(self.x_test)} test of {shape} "
            f"{self.x_train.dtype}, {self.classes} classes, from {self.source})"
        )


def class_names_of(source: Any) -> tuple[str, ...] | None:
    """The names of the classes, where a data set tells them, or a loader or a subset of one that does; else None.

    They stand in `class_names` (ours), in `classes` (torchvision's) or in `features["label"].names` (Hugging Face's).
    """
    for _ in range(DEEPEST):
        for names in (getattr(source, "class_names", None), getattr(source, "classes", None), _feature_names(source)):
            if isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names):
                return tuple(names)
        parts = getattr(source, "datasets", None)  # one after the other
        if isinstance(parts, list | tuple):
            told = {class_names_of(part) for part in parts}
            return told.pop() if len(told) == 1 else None
        source = getattr(source, "dataset", None)
    return None


def _feature_names(source: Any) -> Any:
    features = getattr(source, "features", None)
    if not isinstance(features, Mapping):
        return None
    return next((getattr(features[key], "names", None) for key in ("labels", "label") if key in features), None)


def checked_dataset(
    arrays: Mapping[str, Array],
    *,
    name: str,
    where: str,
    source: Origin,
    classes: int | None = None,
    class_names: tuple[str, ...] = (),
) -> Dataset:
    """A `Dataset` of the four arrays, or a `DataError` naming the array of `where` that cannot be used."""
    x_train, x_test = (_samples(arrays[key], key=key, where=where) for key in ("x_train", "x_test"))
    if x_train.shape[1:] != x_test.shape[1:]:
        raise DataError(
            f"`{where}`: samples of `x_train` have shape {x_train.shape[1:]}, those of `x_test` {x_test.shape[1:]}. "
            "Both need the same shape."
        )
    y_train, columns, train_notes = _labels(arrays["y_train"], key="y_train", where=where)
    y_test, test_columns, test_notes = _labels(arrays["y_test"], key="y_test", where=where)
    for split, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if len(x) != len(y):
            raise DataError(
                f"`{where}`: `x_{split}` holds {len(x)} samples and `y_{split}` {len(y)} labels. "
                "Save one label for each sample."
            )
    if len(x_train) == 0:
        raise DataError(f"`{where}`: `x_train` holds no samples. Save at least one for each class.")
    highest = 1 + max(int(y.max()) for y in (y_train, y_test) if len(y))
    if classes is not None and highest > classes:
        raise DataError(
            f"`{where}` should hold labels 0 to {classes - 1}; the highest is {highest - 1}. Is it another data set?"
        )
    if class_names and highest > len(class_names):
        raise DataError(
            f"`{where}`: `{NAMES}` has {len(class_names)} names, and the highest label is {highest - 1}. Name all, 0 first."
        )
    known = classes or max(highest, columns, test_columns, len(class_names))
    notes = train_notes or test_notes
    return Dataset(name, x_train, y_train, x_test, y_test, known, source, class_names=class_names, notes=notes)


def names_in(values: Array, *, where: str) -> tuple[str, ...]:
    """The class names that a file holds, in the order of the labels."""
    if values.ndim != 1 or values.dtype.kind != "U":
        raise DataError(
            f"`{where}`: `{NAMES}` has type {values.dtype} and shape {values.shape}. Save a list of words, "
            "`np.array(names)`, in the order of the labels."
        )
    return tuple(map(str, values))


def _samples(values: Array, *, key: str, where: str) -> Array:
    if values.ndim < 1 or values.dtype.kind not in "iubf":
        raise DataError(
            f"`{where}`: `{key}` has type {values.dtype} and shape {values.shape}. "
            "Save numbers, one row or image for each sample."
        )
    return values


def _labels(values: Array, *, key: str, where: str) -> tuple[Labels, int, tuple[Note, ...]]:
    """Labels as int64, how many classes their columns announce where they are one-hot, and the note that says so."""
    if values.dtype.kind not in "iubf":
        raise DataError(f"`{where}`: `{key}` has type {values.dtype}. Class labels are whole numbers from 0 on.")
    try:
        vector, note = label_vector(values)
    except LabelError as error:
        raise DataError(f"`{where}`: `{key}` cannot be used. {error}") from error
    return (vector, 0, ()) if note is None else (vector, values.shape[1], (note,))
