"""FeatureWriter: the features of every layer as .npy files of one folder, whole or not at all."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import torch
from torch import Tensor

from equisep.data.stores.layout import MANIFEST
from equisep.errors import StoreError
from equisep.files import json_text, part_of, write_whole, writing
from equisep.shapes import Int, Shaped

HEADER = 256  # bytes before the numbers: a multiple of 64, with room for any number of rows
FORMAT = 1


class FeatureWriter:
    """A folder of `train/NUMBER-LAYER.npy`, `train/labels.npy`, the same of `test`, and `features.json`.

    It is written beside and takes its name when all of it is there. Numbers of half precision that .npy does not know
    (bfloat16) are written as float32, which holds them exactly; `features.json` says what they were.
    """

    def __init__(self, folder: Path, layers: tuple[str, ...]) -> None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            found = "is not empty" if folder.is_dir() else "is a file"
            raise StoreError(f"`{folder}` {found}. Name a folder that is new or empty.")
        self.folder, self.layers = folder, layers
        self.part = part_of(folder)
        self.splits: list[str] = []
        self.kinds: dict[str, torch.dtype] = {}
        self._files: dict[str, _Npy] = {}

    def __enter__(self) -> FeatureWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.file.close()
        shutil.rmtree(self.part, ignore_errors=True)

    def begin(self, split: str) -> None:
        """A split begins."""
        self._finish()
        with writing("The features", self.folder):
            (self.part / split).mkdir(parents=True)
        self.splits.append(split)

    def add(self, layer: str, rows: Shaped[Tensor, "b d"]) -> None:
        """More rows of a layer."""
        self.kinds[layer] = rows.dtype
        self._to(file_of(layer, self.layers.index(layer)), rows.float() if rows.dtype == torch.bfloat16 else rows)

    def labels(self, labels: Int[Tensor, " b"]) -> None:
        """More labels."""
        self._to("labels.npy", labels)

    def _to(self, name: str, rows: Tensor) -> None:
        with writing("The features", self.folder):
            if name not in self._files:
                self._files[name] = _Npy((self.part / self.splits[-1] / name).open("wb"), rows)
            self._files[name].add(rows)

    def _finish(self) -> None:
        with writing("The features", self.folder):
            for file in self._files.values():
                file.finish()
        self._files.clear()

    def done(self, said: dict[str, Any]) -> Path:
        """Everything is there: `features.json` with what is said of it, and the folder takes its name."""
        self._finish()
        layers = [
            {"name": name, "file": file_of(name, number), "dtype": str(self.kinds[name]).removeprefix("torch.")}
            for number, name in enumerate(self.layers)
        ]
        manifest = {"format": FORMAT, **said, "layers": layers, "splits": self.splits}
        with writing("The features", self.folder):
            write_whole(self.part / MANIFEST, json_text(manifest, indent=1) + "\n")
            if self.folder.exists():
                self.folder.rmdir()  # it is empty
            self.part.rename(self.folder)
        return self.folder


def file_of(layer: str, number: int) -> str:
    """The file of a layer: its number, so that files sort as layers do, and its name in plain letters."""
    return f"{number:03d}-{re.sub(r'[^A-Za-z0-9.]+', '-', layer)}.npy"


class _Npy:
    """An .npy file whose number of rows is known when all of them are there."""

    def __init__(self, file: BinaryIO, first: Tensor) -> None:
        self.file, self.rows, self.shape = file, 0, tuple(first.shape[1:])
        self.kind = first.cpu().numpy().dtype.str
        self.file.write(b"\0" * HEADER)

    def add(self, rows: Tensor) -> None:
        self.file.write(rows.detach().cpu().contiguous().numpy().data.cast("B"))
        self.rows += len(rows)

    def finish(self) -> None:
        """The header of the format, version 1.0: magic, its own length, the description of the array."""
        shape = (self.rows, *self.shape)
        words = f"{{'descr': '{self.kind}', 'fortran_order': False, 'shape': {shape}, }}"
        length = HEADER - 10
        self.file.seek(0)
        self.file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + f"{words:<{length - 1}}\n".encode())
        self.file.close()
