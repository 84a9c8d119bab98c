"""Arrays whose bytes are the numbers themselves, read by rows in order: .npy, tensors of .safetensors, arrays in memory."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from equisep.data.stores.location import Location, natural
from equisep.errors import DataError

HEADER_BYTES = 2**27  # a header beyond this is none
SAFETENSORS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of a file: rows of one shape, one after the other from `offset` on.

    `kind` is the type of the numbers as they lie there, in native byte order or `swapped`; `was` what they were before they were
    stored, where the format does not know that type.
    """

    name: str
    where: Location
    rows: int
    shape: tuple[int, ...]
    kind: torch.dtype
    offset: int
    swapped: np.dtype[Any] | None = None
    was: torch.dtype | None = None
    is_text: ClassVar[bool] = False
    slow: ClassVar[bool] = False  # no format of its own has to be decoded

    @property
    def row_bytes(self) -> int:
        """What a row takes on the disk."""
        return math.prod(self.shape) * self.kind.itemsize

    def open(self) -> ArrayReader:
        """Read its rows from the first on."""
        return ArrayReader(self)


class ArrayReader:
    """The rows of an array in order, into memory of their own: no more than what is asked for is ever held."""

    def __init__(self, array: StoredArray) -> None:
        self.array, self.done = array, 0
        with array.where.reading():
            self.file = array.where.open()
            self.file.seek(array.offset)

    def read(self, count: int, room: Tensor | None = None) -> Tensor:
        """The next rows, in the room where there is one."""
        array = self.array
        content = bytes_in(room, count * array.row_bytes)
        view = content.numpy().data
        with array.where.reading(f"from row {self.done:,} on"):
            while view.nbytes:
                got: int = self.file.readinto(view)
                if not got:
                    missing = view.nbytes // max(1, array.row_bytes) + bool(view.nbytes % max(1, array.row_bytes))
                    raise DataError(
                        f"`{array.where}` ends after row {self.done + count - missing:,} of {array.rows:,}: it is truncated, or "
                        "still being written. Write it again."
                    )
                view = view[got:]
        self.done += count
        if array.swapped is not None:
            swapped = np.frombuffer(content.numpy(), dtype=array.swapped)
            return torch.from_numpy(swapped.astype(array.swapped.newbyteorder("="))).view(count, *array.shape)
        rows = content.view(array.kind).view(count, *array.shape)
        return rows if array.was is None else rows.to(array.was)

    def skip(self, count: int) -> None:
        """Pass over rows."""
        self.done += count
        with self.array.where.reading():
            self.file.seek(self.array.offset + self.done * self.array.row_bytes)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


def bytes_in(room: Tensor | None, count: int) -> Tensor:
    """So many bytes of the room, or new ones where there is none or it is too small."""
    if room is None or room.numel() < count:
        return torch.empty(count, dtype=torch.uint8, device="cpu")
    return room[:count]


@dataclass(frozen=True, slots=True)
class HeldArray:
    """An array that is in memory already, such as numpy's own memory maps: n × …, one row per sample."""

    name: str
    values: Tensor
    is_text: ClassVar[bool] = False
    slow: ClassVar[bool] = False

    @property
    def where(self) -> Location:
        """What it is called, as files are."""
        return Location(self.name)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a row."""
        return tuple(self.values.shape[1:])

    @property
    def kind(self) -> torch.dtype:
        """The type of its numbers."""
        return self.values.dtype

    @property
    def row_bytes(self) -> int:
        """What a row takes."""
        return math.prod(self.shape) * self.kind.itemsize

    def open(self) -> HeldReader:
        """Read its rows from the first on."""
        return HeldReader(self.values)


class HeldReader:
    """The rows of an array in memory, in order."""

    def __init__(self, values: Tensor) -> None:
        self.values, self.done = values, 0

    def read(self, count: int, room: Tensor | None = None) -> Tensor:
        """The next rows, where they lie."""
        self.done += count
        return self.values[self.done - count : self.done]

    def skip(self, count: int) -> None:
        """Pass over rows."""
        self.done += count

    def close(self) -> None:
        """Nothing is open."""


def npy_arrays(where: Location) -> list[StoredArray]:
    """The array of an .npy file, named by the file; nothing pickled is read."""
    with where.reading(), where.open() as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = header(file)
        offset = file.tell()
    if dtype.hasobject or dtype.kind not in "fiub":
        raise DataError(f"`{where}` holds {dtype}, no numbers. Save it as an array of numbers.")
    if not shape:
        raise DataError(f"`{where}` holds a single number, no rows.")
    if by_columns and len(shape) > 1:
        raise DataError(
            f"`{where}` stores its columns one after the other (Fortran order), so that no row can be read without all others. "
            "Save `numpy.ascontiguousarray(x)`."
        )
    kind = _torch_type(dtype, where)
    swapped = None if dtype.isnative else dtype
    return [StoredArray(where.stem, where, shape[0], tuple(shape[1:]), kind, offset, swapped)]


def _torch_type(dtype: np.dtype[Any], where: Location) -> torch.dtype:
    try:
        return torch.from_numpy(np.zeros(1, dtype=dtype.newbyteorder("="))).dtype
    except TypeError as error:
        raise DataError(f"`{where}` holds {dtype}, which torch does not know. Save it as float32, say.") from error


def safetensors_arrays(where: Location) -> list[StoredArray]:
    """The tensors of a .safetensors file, `layer2` before `layer10`."""
    with where.reading(), where.open() as file:
        (length,) = struct.unpack("<Q", _exactly(file.read, 8))
        if length > HEADER_BYTES:
            raise DataError(f"`{where}` is no safetensors file: its header would have {length:,} bytes.")
        header = json.loads(_exactly(file.read, length))
    if not isinstance(header, dict):
        raise DataError(f"`{where}` is no safetensors file: its header is a {type(header).__name__}. Write it again.")
    names = sorted((key for key in header if key != "__metadata__"), key=natural)
    return [_tensor(where, name, header[name], begin=8 + length) for name in names]


def _tensor(where: Location, name: str, entry: Any, *, begin: int) -> StoredArray:
    """A tensor as the header of its file tells of it; the numbers of the file `begin` there."""
    match entry:
        case {"dtype": str(dtype), "shape": [*sizes], "data_offsets": [int(offset), int()]} if all(
            isinstance(size, int) for size in sizes
        ):
            if dtype not in SAFETENSORS:
                raise DataError(f"`{where}`: `{name}` holds {dtype}, of which no number can be made here.")
            rows, *shape = sizes or [0]
            return StoredArray(name, where, rows, tuple(shape), SAFETENSORS[dtype], begin + offset)
    raise DataError(
        f"`{where}` is damaged: its header does not tell the type, shape and place of `{name}`. Write it again."
    )


def _exactly(read: Callable[[int], bytes], count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = read(count - len(parts))
        if not part:
            raise DataError(f"its first {count} bytes are not there")
        parts += part
    return bytes(parts)
