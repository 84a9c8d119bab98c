"""The official binary formats, from bytes to arrays: idx, CIFAR binary, STL-10 binary, SVHN's Matlab files."""

from __future__ import annotations

import io
import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from equisep.errors import DataError, MissingExtraError
from equisep.labels import Labels

Images = npt.NDArray[np.uint8]

_IDX_UNSIGNED_BYTE = 0x08
_AGAIN = "Download it again, or remove it to have it looked for elsewhere."


def read_idx(content: bytes, *, dims: int, where: str) -> Images:
    """The array of an idx file (MNIST's format) of unsigned bytes with `dims` dimensions.

    Header: two zero bytes, the type, the number of dimensions; then each size as a big-endian 32-bit number.
    """
    magic = bytes([0, 0, _IDX_UNSIGNED_BYTE, dims])
    if content[:4] != magic:
        raise DataError(
            f"`{where}` should be an idx file that begins with the bytes {magic.hex(' ')}; it begins with "
            f"{content[:4].hex(' ') or 'nothing'}. It is another file or damaged. {_AGAIN}"
        )
    header = 4 + 4 * dims
    if len(content) < header:
        raise DataError(f"`{where}` is truncated: {len(content)} bytes do not hold its {header}-byte header. {_AGAIN}")
    sizes = struct.unpack(f">{dims}I", content[4:header])
    if math.prod(sizes) != len(content) - header:
        raise DataError(
            f"`{where}` is truncated or damaged: its header announces {' × '.join(map(str, sizes))} = "
            f"{math.prod(sizes)} bytes, {len(content) - header} follow. {_AGAIN}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(sizes).copy()


def read_cifar(content: bytes, *, label_bytes: int, where: str) -> tuple[Images, Labels]:
    """Images (n, 32, 32, 3) and labels of a CIFAR binary file.

    A record is `label_bytes` labels (CIFAR-10: the class; CIFAR-100: the coarse, then the fine class, which is used)
    and the red, green and blue planes, row by row.
    """
    size = label_bytes + 3 * 32 * 32
    count, rest = divmod(len(content), size)
    if rest or not count:
        raise DataError(
            f"`{where}` is truncated or damaged: a CIFAR file is made of records of {size} bytes, and its "
            f"{len(content)} bytes are {count} records and {rest} bytes over. {_AGAIN}"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(count, size)
    planes = records[:, label_bytes:].reshape(count, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, label_bytes - 1].astype(np.int64)


def read_stl10_images(content: bytes, *, where: str) -> Images:
    """Images (n, 96, 96, 3) of an STL-10 binary file, which stores three planes, each column by column."""
    size = 3 * 96 * 96
    count, rest = divmod(len(content), size)
    if rest or not count:
        raise DataError(
            f"`{where}` is truncated or damaged: an STL-10 image has {size} bytes, and its {len(content)} bytes are "
            f"{count} images and {rest} bytes over. {_AGAIN}"
        )
    planes = np.frombuffer(content, dtype=np.uint8).reshape(count, 3, 96, 96)
    return np.ascontiguousarray(planes.transpose(0, 3, 2, 1))


def read_stl10_labels(content: bytes, *, where: str) -> Labels:
    """Labels of an STL-10 binary file: 1 … 10 there, 0 … 9 here."""
    labels = np.frombuffer(content, dtype=np.uint8).astype(np.int64)
    if not labels.size or labels.min() < 1 or labels.max() > 10:
        seen = f"{labels.min()} to {labels.max()}" if labels.size else "none"
        raise DataError(f"`{where}` should hold STL-10 labels from 1 to 10; found {seen}. {_AGAIN}")
    return labels - 1


def read_svhn(content: bytes, *, where: str) -> tuple[Images, Labels]:
    """Images (n, 32, 32, 3) and labels of an SVHN `.mat` file; the digit 0, stored as 10 there, is 0 here."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise MissingExtraError(needed_for="Reading SVHN's .mat files", package="scipy", extra="svhn") from error
    try:
        held: dict[str, Any] = loadmat(io.BytesIO(content), variable_names=["X", "y"])
    except Exception as error:  # scipy raises whatever the damaged bytes lead to
        raise DataError(f"`{where}` cannot be read as a Matlab file ({error}). {_AGAIN}") from error
    images, labels = held.get("X"), held.get("y")
    if not isinstance(images, np.ndarray) or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        raise DataError(f"`{where}` should hold `X` of shape 32 × 32 × 3 × n; it does not. {_AGAIN}")
    if not isinstance(labels, np.ndarray) or labels.size != images.shape[3] or images.dtype != np.uint8:
        raise DataError(f"`{where}` should hold uint8 images `X` and one label in `y` for each; it does not. {_AGAIN}")
    digits = labels.reshape(-1).astype(np.int64)
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), np.where(digits == 10, 0, digits)
