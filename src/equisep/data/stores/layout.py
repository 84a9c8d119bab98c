"""Which files and columns are layers, which are labels, and which belong to the training and the test data.

A column is an .npy file, a tensor of a .safetensors file, or a column of a table. Columns of one name are parts of one layer, in
the order of their files; a folder of .npy files is one layer of its name. So are the embeddings `img_emb_*.npy` of LAION's
layout, whose labels stand in a column of its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from equisep.data.stores.arrays import HeldArray, StoredArray, npy_arrays, safetensors_arrays
from equisep.data.stores.location import Location
from equisep.data.stores.tables import StoredColumn, UnreadColumn, arrow_columns, parquet_columns
from equisep.errors import DataError, InputError, did_you_mean
from equisep.files import parse_json
from equisep.labels import as_tensor, class_indices
from equisep.results import Note

Part = StoredArray | HeldArray | StoredColumn
READERS: dict[str, Callable[[Location], Sequence[Part | UnreadColumn]]] = {
    ".npy": npy_arrays, ".safetensors": safetensors_arrays, ".arrow": arrow_columns, ".feather": arrow_columns,
    ".parquet": parquet_columns,
}  # fmt: skip
LABELS = ("labels", "label", "y", "targets", "target", "classes", "class")  # what labels are called, the first there is
HELD_OUT = ("test", "validation", "valid", "val")  # folders of test data, the first there is
MANIFEST = "features.json"  # what `equisep features` writes beside the arrays
METADATA = "metadata"  # of LAION's layout: what is no feature
_EMBEDDINGS = re.compile(r"((?:img|text)_emb)_\d+")  # of LAION's layout: parts of one layer


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, or the labels: its parts in order."""

    name: str
    parts: tuple[Part, ...]

    @staticmethod
    def of(name: str, parts: Sequence[Part]) -> Layer:
        """The parts that hold rows, where any does: a shard without rows does not say how long its lists would be."""
        return Layer(name, tuple(part for part in parts if part.rows) or tuple(parts))

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def row_bytes(self) -> int:
        """What a row takes."""
        return self.parts[0].row_bytes


@dataclass(frozen=True, slots=True)
class StoredSplit:
    """The layers of one split, first to last, the labels of their rows, and columns that are neither."""

    layers: tuple[Layer, ...]
    labels: Layer
    unread: tuple[UnreadColumn, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the layers."""
        return tuple(layer.name for layer in self.layers)


@dataclass(frozen=True, slots=True)
class StoredFeatures:
    """What lies under a URL: training data, test data where there are any, and what their writer said of them."""

    where: str
    train: StoredSplit
    test: StoredSplit | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def open_features(url: str | Path, *, labels: str | Path | None = None) -> StoredFeatures:
    """What a file or a folder holds; nothing but headers is read.

    `labels` is a file with the labels, or the column or array that holds them, where that is not called `labels`.
    """
    root = Location.of(url)
    manifest = _manifest(root)
    if manifest:
        if labels is not None:
            raise InputError(f"`{root}` was written with its labels; leave `labels={labels}` out.")
        first, second = (_written(root, manifest, split) for split in ("train", "test"))
        assert first is not None
        return _checked(StoredFeatures(str(root), first, second, manifest))
    if not root.is_folder:
        return _checked(StoredFeatures(str(root), _split([root], labels, where=root)))
    folders = {child.name.lower(): child for child in root.children() if child.suffix not in READERS}
    if "train" in folders and folders["train"].is_folder:
        held_out = next((folders[name] for name in HELD_OUT if name in folders), None)
        test = None if held_out is None else _split(held_out.children(), labels, where=held_out)
        train = _split(folders["train"].children(), labels, where=folders["train"])
        if test is not None and held_out is not None and train.labels.parts[0].where == test.labels.parts[0].where:
            raise InputError(
                f"`labels={labels}` is one file, and `{root}` holds training and test data. Keep the labels of each in its own "
                f"folder and pass their name, `labels={Location.of(labels or '').stem}`; or pass `{folders['train']}`, with "
                f"`test={held_out}` and `test_labels=` of its own."
            )
        return _checked(StoredFeatures(str(root), train, test))
    return _checked(StoredFeatures(str(root), _split(root.children(), labels, where=root)))


def held_features(arrays: Mapping[str, Any], labels: Any, *, what: str = "training") -> StoredFeatures:
    """Features in memory, by the names of their layers."""
    if not arrays:
        raise InputError("The features hold no layer. Pass a mapping from the names of layers to arrays of n × d.")
    layers = []
    for name, values in arrays.items():
        tensor = as_tensor(values, what=f"The features of `{name}`")
        if tensor.ndim < 2 or tensor.is_complex():
            raise InputError(
                f"Features are real numbers of shape n × d; `{name}` has shape {tuple(tensor.shape)}, {tensor.dtype}."
            )
        layers.append(Layer(str(name), (HeldArray(str(name), tensor),)))
    numbers, _ = class_indices(labels)
    return _checked(StoredFeatures(what, StoredSplit(tuple(layers), Layer("labels", (HeldArray("labels", numbers),)))))


def _manifest(root: Location) -> dict[str, Any]:
    if not root.is_folder or not root.child(MANIFEST).exists():
        return {}
    file = root.child(MANIFEST)
    with file.reading(), file.open() as content:
        manifest = parse_json(content.read(), name=MANIFEST)
    layers, splits, classes = manifest.get("layers"), manifest.get("splits"), manifest.get("classes")
    wrong = None
    if not isinstance(splits, list) or "train" not in splits:
        wrong = "lists no training data under `splits`"
    elif not isinstance(layers, list) or not layers:
        wrong = "lists no layers"
    elif not all(isinstance(entry, dict) and _is_named(entry) for entry in layers):
        wrong = "holds a layer without a name or a file"
    elif classes is not None and (not isinstance(classes, int) or classes < 1):
        wrong = f"tells of {classes!r} classes"
    if wrong is not None:
        raise DataError(f"`{file}` {wrong}. Write the features again with `equisep features`.")
    return manifest


def _is_named(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("name"), str) and isinstance(entry.get("file"), str)


def _written(root: Location, manifest: dict[str, Any], split: str) -> StoredSplit | None:
    """A split as `equisep features` wrote it."""
    if split not in manifest["splits"]:
        return None
    folder = root.child(split)
    layers = tuple(Layer(entry["name"], _written_parts(folder, entry)) for entry in manifest["layers"])
    return StoredSplit(layers, Layer("labels", tuple(npy_arrays(folder.child("labels.npy")))))


def _written_parts(folder: Location, entry: dict[str, Any]) -> tuple[StoredArray, ...]:
    """The file of a layer; bfloat16, which .npy does not know, lies there as float32 and is itself again when read."""
    was = torch.bfloat16 if entry.get("dtype") == "bfloat16" else None
    return tuple(replace(part, was=was) for part in npy_arrays(folder.child(entry["file"])))


def _split(entries: Sequence[Location], labels: str | Path | None, *, where: Location) -> StoredSplit:
    """The layers among some files and folders, and their labels."""
    columns: dict[str, list[Part]] = {}
    known: dict[str, list[Part]] = {}  # what can be labels, but is no layer
    unread = list[UnreadColumn]()
    for entry in entries:
        for part in _parts(entry):
            if isinstance(part, UnreadColumn):
                unread.append(part)
                continue
            single = not part.shape or part.is_text
            (known if single else columns).setdefault(part.name, []).append(part)
    found, own = _labels(columns, known, labels, where=where)
    layers = tuple(Layer.of(name, parts) for name, parts in columns.items() if name != own)
    if not layers:
        held = ", ".join(f"`{name}`" for name in [*known, *_kinds(unread)][:5]) or "nothing that can be read"
        raise DataError(
            f"`{where}` holds no features: they are arrays of n × d (.npy, .safetensors) or columns of lists (.arrow, .feather, "
            f".parquet); found {held}."
        )
    return StoredSplit(layers, found, tuple(unread))


def _parts(entry: Location) -> list[Part | UnreadColumn]:
    """The columns of a file, or of the files of a folder."""
    if entry.suffix in READERS:
        parts: list[Part | UnreadColumn] = list(READERS[entry.suffix](entry))
        embeddings = _EMBEDDINGS.fullmatch(entry.stem)
        return [replace(part, name=embeddings[1]) for part in parts] if embeddings else parts
    if not entry.is_folder:
        return []
    inside = [part for child in entry.children() if child.suffix in READERS for part in _parts(child)]
    if entry.name.lower() == METADATA:
        return inside
    features = {part.name for part in inside if part.shape and not part.is_text}
    arrays = all(part.where.suffix == ".npy" for part in inside)
    if arrays or len(features) == 1:
        return [replace(part, name=entry.name) if part.shape else part for part in inside]
    return [replace(part, name=f"{entry.name}/{part.name}") if part.shape else part for part in inside]


def _labels(
    columns: dict[str, list[Part]], known: dict[str, list[Part]], asked: str | Path | None, *, where: Location
) -> tuple[Layer, str | None]:
    """The labels: a file of their own, the column asked for, or the first that is called so; and that column's name."""
    single = {**{name: parts for name, parts in columns.items() if name.lower() in LABELS}, **known}
    if asked is not None and str(asked) not in single and str(asked) not in columns:
        path = Location.of(asked)
        if path.suffix not in READERS and path.exists() and not path.is_folder:
            raise InputError(
                f"`labels={asked}` is not read: labels lie in {', '.join(READERS)}. Save numbers with `numpy.save`, and words as "
                "a column of a .parquet file."
            )
        if path.suffix not in READERS:
            raise InputError(
                f"No labels `{asked}` in `{where}`: no file, and no column.{did_you_mean(str(asked), single)} It holds "
                f"{', '.join(f'`{name}`' for name in single) or 'none'}."
            )
        held = [part for part in READERS[path.suffix](path) if not isinstance(part, UnreadColumn)]
        parts: list[Part] = [part for part in held if part.shape in ((), (1,))]
        if len(parts) != 1:
            raise InputError(f"`{path}` should hold one column of labels; found {len(parts)}.")
        own = (name for name, mine in columns.items() for part in mine if _is_same(part, parts[0]))
        return Layer.of(parts[0].name, parts), next(own, None)
    name = str(asked) if asked is not None else next((name for name in LABELS if name in single), None)
    if name is None:
        others = ", ".join(f"`{name}`" for name in single)
        raise DataError(
            f"`{where}` holds no labels: no file and no column is called {', '.join(LABELS[:3])} or the like. Pass `labels=`, "
            f"a file or the name of a column{f' ({others})' if others else ''}."
        )
    return Layer.of(name, single.get(name) or columns[name]), name


def _is_same(one: Part, two: Part) -> bool:
    """Whether they are one column of one file, whatever way leads there."""
    ways = [Path(part.where.path).resolve() if part.where.system is None else part.where.path for part in (one, two)]
    return ways[0] == ways[1] and one.shape == two.shape


def _checked(stored: StoredFeatures) -> StoredFeatures:
    """The same, once layers and labels fit together; a Note where a format slows the reading."""
    splits = [("training", stored.train), *([("test", stored.test)] if stored.test is not None else [])]
    slow = set[str]()
    for what, split in splits:
        for layer in split.layers:
            _check_layer(layer, split.labels, what=what)
            slow |= {part.where.suffix for part in layer.parts if part.slow}
    if stored.test is not None and stored.test.names != stored.train.names:
        odd = sorted(set(stored.test.names) ^ set(stored.train.names)) or list(stored.test.names)
        raise DataError(
            f"The training and the test data of `{stored.where}` need the same layers in one order; `{odd[0]}` is in one only, "
            "or stands elsewhere."
        )
    unread = [column for _, split in splits for column in split.unread]
    notes = (*((_SLOW,) if slow else ()), *((_unread(unread),) if unread else ()))
    return replace(stored, notes=notes)


_SLOW = Note(
    "slow-store",
    "The features lie in Parquet, which is decoded number by number: reading takes several times as long as from .npy, Arrow "
    "or safetensors, whose bytes are the numbers themselves.",
)


def _unread(columns: Sequence[UnreadColumn]) -> Note:
    kinds = _kinds(columns)
    named = ", ".join(f"`{name}`" for name in kinds[:3]) + (", …" if len(kinds) > 3 else "")
    return Note(
        "unread-columns",
        f"Columns that are no layers were passed over: {named}. A layer is a column of lists of numbers, all of one length; "
        "flatten each row to have such a column measured.",
    )


def _kinds(columns: Sequence[UnreadColumn]) -> list[str]:
    """Names with types, each once."""
    return list(dict.fromkeys(f"{column.name} ({column.kind})" for column in columns))


def _check_layer(layer: Layer, labels: Layer, *, what: str) -> None:
    first = layer.parts[0]
    for part in layer.parts:
        if part.shape != first.shape or part.kind != first.kind:
            raise DataError(
                f"The parts of `{layer.name}` differ: `{first.where}` holds rows of {_words(first)}, `{part.where}` of "
                f"{_words(part)}. Parts of one layer hold rows of one kind."
            )
    if 0 in first.shape:
        raise DataError(f"`{layer.name}` holds rows without a number ({first.where}).")
    if layer.rows != labels.rows:
        raise DataError(
            f"The {what} data need one label per row; `{layer.name}` has {layer.rows:,} rows and the labels are "
            f"{labels.rows:,}. Pass features and labels of the same samples."
        )
    if not labels.rows:
        raise DataError(f"The {what} data hold no rows: `{layer.name}` is empty.")


def _words(part: Part) -> str:
    return f"{' × '.join(map(str, part.shape))} {str(part.kind).removeprefix('torch.')}"
