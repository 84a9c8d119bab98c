"""StoredBatches: the rows of stored features in order, with class numbers, as batches that any reading can take again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from copy import copy
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equisep.data.stores.arrays import ArrayReader, HeldArray, HeldReader
from equisep.data.stores.layout import Layer, StoredSplit
from equisep.data.stores.tables import ColumnReader
from equisep.errors import DataError, LabelError
from equisep.labels import MOST_CLASSES, class_indices
from equisep.shapes import Int

# of all layers together, what is held of them at once: memory that stays in a processor's cache is read into twice as fast
BATCH_BYTES = 2**23
LEAST_ROWS, MOST_ROWS = 64, 2**16
LABEL_ROWS = 2**20  # looked at together


class StoredBatches:
    """({layer: rows}, labels) in the order of the store; `wanted` names the layers that are read, None for all.

    Words as labels become class numbers in alphabetical order, `class_names`; those of test data as they are in the training
    data that they are `like`. No batch reaches over the end of a part, so that rows are read where they are to be and never
    copied together. Where memory is `reused`, the rows of a batch lie where those of the batch before did: who keeps any copies
    them. New memory costs as much as reading does, and the more of it a process has had, the more it seems to need.
    """

    def __init__(self, split: StoredSplit, *, like: StoredBatches | None = None, reused: bool = False) -> None:
        self.split, self.reused = split, reused
        self.wanted: frozenset[str] | None = None
        self._chosen = slice(None)
        self._rooms: dict[str, Tensor] = {}
        total = sum(layer.row_bytes for layer in split.layers)
        self.size = min(MOST_ROWS, max(LEAST_ROWS, BATCH_BYTES // max(1, total)))
        self.classes, words, self._mark = _classes(split.labels)
        self.class_names: tuple[str, ...] | None = words if like is None else like.class_names
        if like is not None and (words is None) != (like.class_names is None):
            kinds = ("numbers", "words") if like.class_names is None else ("words", "numbers")
            raise LabelError(
                f"The training labels are {kinds[0]} (`{like.split.labels.parts[0].where}`) and the test labels {kinds[1]} "
                f"(`{split.labels.parts[0].where}`): which number is which word is not known. Save both as numbers, or both "
                "as words."
            )
        if not set(words or ()) <= set(self.class_names or ()):
            strange = sorted(set(words or ()) - set(self.class_names or ()))[0]
            raise LabelError(f"The test data hold the label `{strange}`, which the training data have not.")
        self._numbers = {name: number for number, name in enumerate(self.class_names or ())}

    @property
    def facts(self) -> dict[str, Any]:
        """What is the same wherever one store is read, by name: processes that read its blocks in turn agree on it."""
        kinds = [(layer.name, layer.parts[0].shape, str(layer.parts[0].kind)) for layer in self.split.layers]
        blocks = hashlib.sha256(repr(self._spans()).encode()).hexdigest()[:16]
        return {"rows": self.split.labels.rows, "layers": kinds, "labels": self._mark, "blocks": blocks}

    def _spans(self) -> list[int]:
        """How many rows every batch has: up to the end of a part of any layer, `wanted` or not."""
        ends = {0}
        for layer in (*self.split.layers, self.split.labels):
            ends |= set(np.cumsum([part.rows for part in layer.parts]).tolist())
        edges = sorted(ends)
        return [min(self.size, end - start) for begin, end in pairwise(edges) for start in range(begin, end, self.size)]

    @property
    def starts(self) -> list[int]:
        """The number of the first sample of each batch, in the order read."""
        spans = self._spans()
        return list(accumulate(spans[:-1], initial=0))[self._chosen] if spans else []

    def only(self, batches: slice) -> StoredBatches:
        """Some of the batches, as they are; what lies between is not read."""
        part = copy(self)
        part._chosen = batches
        return part

    def __len__(self) -> int:
        return len(self._spans()[self._chosen])

    def __iter__(self) -> Iterator[tuple[dict[str, Tensor], Int[Tensor, " b"]]]:
        chosen = [layer for layer in self.split.layers if self.wanted is None or layer.name in self.wanted]
        with ExitStack() as stack:
            readers = {layer.name: _Parts(layer) for layer in chosen}
            labels = _Parts(self.split.labels)
            for reader in (*readers.values(), labels):
                stack.callback(reader.close)
            spans = self._spans()
            mine = range(len(spans))[self._chosen]
            for number, count in enumerate(spans[: mine[-1] + 1 if mine else 0]):
                if number not in mine:
                    for reader in (*readers.values(), labels):
                        reader.skip(count)
                    continue
                y = labels.read(count)
                rows = {name: reader.read(count, self._room(name)) for name, reader in readers.items()}
                yield rows, self._class_numbers(y)

    def _room(self, name: str) -> Tensor | None:
        """Memory for the rows of a layer, the same at every batch; arrays at hand need none."""
        if not self.reused:
            return None
        if name not in self._rooms:
            layer = next(each for each in self.split.layers if each.name == name)
            held = all(isinstance(part, HeldArray) for part in layer.parts)
            self._rooms[name] = torch.empty(0 if held else self.size * layer.row_bytes, dtype=torch.uint8, device="cpu")
        return self._rooms[name]

    def _class_numbers(self, labels: Any) -> Int[Tensor, " b"]:
        if not isinstance(labels, Tensor):
            return torch.tensor([self._numbers[word] for word in labels.tolist()], dtype=torch.int64, device="cpu")
        return class_indices(labels)[0]


class _Parts:
    """The parts of a layer, read one after the other."""

    def __init__(self, layer: Layer) -> None:
        self.left = list(layer.parts)
        self.reader: ArrayReader | HeldReader | ColumnReader | None = None
        self.rows = 0

    def read(self, count: int, room: Tensor | None = None) -> Any:
        """The next rows, which lie in one part; in the room where there is one."""
        return self._at(count).read(count, room)

    def skip(self, count: int) -> None:
        """Pass over the next rows, which lie in one part."""
        self._at(count).skip(count)

    def _at(self, count: int) -> ArrayReader | HeldReader | ColumnReader:
        while not self.rows:
            self.close()
            part = self.left.pop(0)
            self.reader, self.rows = part.open(), part.rows
        assert self.reader is not None and count <= self.rows
        self.rows -= count
        return self.reader

    def close(self) -> None:
        """Let go of the file that is open."""
        if self.reader is not None:
            self.reader.close()


def _classes(labels: Layer) -> tuple[int, tuple[str, ...] | None, str]:
    """K, the largest class number and one, the names of the classes where labels are words, and a digest; by pieces."""
    most, words, digest = -1, set[str](), hashlib.sha256()
    for part in labels.parts:
        reader = part.open()
        try:
            for start in range(0, part.rows, LABEL_ROWS):
                piece = reader.read(min(LABEL_ROWS, part.rows - start))
                if isinstance(piece, Tensor):
                    numbers, _ = class_indices(piece)
                    if int(numbers.min()) < 0:
                        raise LabelError(
                            f"Class labels count from 0; `{part.where}` holds {int(numbers.min())}. Leave such rows out."
                        )
                    most = max(most, int(numbers.max()))
                    digest.update(numbers.cpu().numpy().tobytes())
                else:
                    words.update(piece.tolist())
                    digest.update(repr(piece.tolist()).encode())
        finally:
            reader.close()
    if words and most >= 0:
        raise DataError(f"The labels `{labels.name}` are words in some files and numbers in others.")
    classes = len(words) if words else most + 1
    if classes > MOST_CLASSES:
        raise LabelError(
            f"Class labels lie in 0 … {MOST_CLASSES - 1:,}; `{labels.name}` holds up to {classes - 1:,}. Renumber them."
        )
    return classes, tuple(sorted(words)) if words else None, digest.hexdigest()[:16]
