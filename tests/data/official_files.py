"""Small data sets in the official formats, for tests to write and read back."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from equisep.data.official.sources import SOURCES, Source

TRAIN, TEST = 20, 10


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def images(count: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def tar_gz(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def cifar_records(x: np.ndarray, *labels: np.ndarray) -> bytes:
    planes = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
    return np.concatenate([*(y[:, None].astype(np.uint8) for y in labels), planes], axis=1).tobytes()


def arrays_of(name: str) -> dict[str, np.ndarray]:
    """The arrays that `contents_of` writes in the format of the data set `name`."""
    side, colors = {"stl10": (96, (3,)), "mnist": (28, ()), "fashion-mnist": (28, ())}.get(name, (32, (3,)))
    classes = SOURCES[name].classes
    return {
        "x_train": images(TRAIN, side, side, *colors),
        "y_train": np.arange(TRAIN) * 7 % classes,
        "x_test": images(TEST, side, side, *colors, seed=1),
        "y_test": np.arange(TEST) * 3 % classes,
    }


def plain_parts(name: str) -> dict[str, bytes]:
    """The unpacked parts of the small data set `name`."""
    a = arrays_of(name)
    x_train, y_train, x_test, y_test = a["x_train"], a["y_train"], a["x_test"], a["y_test"]
    if name in ("mnist", "fashion-mnist"):
        return {
            "train-images-idx3-ubyte": idx(x_train),
            "train-labels-idx1-ubyte": idx(y_train),
            "t10k-images-idx3-ubyte": idx(x_test),
            "t10k-labels-idx1-ubyte": idx(y_test),
        }
    if name == "cifar10":
        fifth = TRAIN // 5
        parts = {
            f"cifar-10-batches-bin/data_batch_{i + 1}.bin": cifar_records(
                x_train[i * fifth : (i + 1) * fifth], y_train[i * fifth : (i + 1) * fifth]
            )
            for i in range(5)
        }
        return {**parts, "cifar-10-batches-bin/test_batch.bin": cifar_records(x_test, y_test)}
    if name == "cifar100":
        return {
            "cifar-100-binary/train.bin": cifar_records(x_train, y_train // 5, y_train),
            "cifar-100-binary/test.bin": cifar_records(x_test, y_test // 5, y_test),
        }
    if name == "stl10":
        return {
            f"stl10_binary/{split}_{kind}.bin": content
            for split, x, y in (("train", x_train, y_train), ("test", x_test, y_test))
            for kind, content in (("X", x.transpose(0, 3, 2, 1).tobytes()), ("y", (y + 1).astype(np.uint8).tobytes()))
        }
    return {f"{s}_32x32.mat": matlab(x, y) for s, x, y in (("train", x_train, y_train), ("test", x_test, y_test))}


def matlab(x: np.ndarray, y: np.ndarray) -> bytes:
    from scipy.io import savemat

    stream = io.BytesIO()
    labels = np.where(y == 0, 10, y).astype(np.uint8)[:, None]
    savemat(stream, {"X": x.transpose(1, 2, 3, 0), "y": labels})
    # savemat writes the time into the header; without it the same arrays give the same bytes
    return stream.getvalue()[:20].ljust(116, b" ") + stream.getvalue()[116:]


def packed_files(name: str) -> dict[str, bytes]:
    """The small data set `name` as it would be published."""
    parts = plain_parts(name)
    files = {}
    for file in SOURCES[name].files:
        if file.name.endswith(".tar.gz"):
            extra = {f"{Path(file.parts[0]).parent}/readme.html": b"not asked for"}
            files[file.name] = tar_gz({**extra, **parts})
        else:
            content = parts[file.parts[0]]
            files[file.name] = gzip.compress(content, mtime=0) if file.name.endswith(".gz") else content
    return files


def small_source(name: str, files: dict[str, bytes]) -> Source:
    """The official source `name` with the sums and counts of the small files."""
    parts = plain_parts(name)
    source = SOURCES[name]
    official = tuple(
        replace(
            file,
            md5=md5(files[file.name]),
            plain_md5=None if file.plain_md5 is None else md5(parts[file.parts[0]]),
        )
        for file in source.files
    )
    return replace(source, files=official, samples=(TRAIN, TEST))


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
