"""Columns of tables, Arrow (feather) and Parquet: lists of one length as feature vectors, numbers and words as labels."""

from __future__ import annotations

import mmap
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.utils.dlpack

from equisep.data.stores.arrays import bytes_in
from equisep.data.stores.location import Location
from equisep.errors import DataError, MissingExtraError

PARQUET_ROWS = 8192  # decoded at once


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One column of a table: vectors of one length, numbers, or words."""

    name: str
    where: Location
    rows: int
    shape: tuple[int, ...]
    kind: torch.dtype
    is_text: bool = False
    slow: bool = False  # Parquet is decoded number by number

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory."""
        return (self.shape[0] if self.shape else 1) * self.kind.itemsize

    def open(self) -> ColumnReader:
        """Read its rows from the first on."""
        return ColumnReader(self)


@dataclass(frozen=True, slots=True)
class UnreadColumn:
    """A column of numbers that is no layer, lists of lists say; `kind` is its type in Arrow's words."""

    name: str
    where: Location
    kind: str
    shape: ClassVar[tuple[int, ...]] = ()
    is_text: ClassVar[bool] = False


class ColumnReader:
    """The rows of a column in order.

    A local Arrow file is mapped to find where its rows lie, and read from there: no more of it is held than what is asked for,
    however large the pieces are that it was written in.
    """

    def __init__(self, column: StoredColumn) -> None:
        self.column, self.done = column, 0
        with column.where.reading():
            self.pages = None if column.slow or column.where.system is not None else _Pages(column.where.path)
            self.chunks = _chunks(column, self.pages)
        self.rest: list[Any] = []
        self.ahead = 0  # rows of these

    def read(self, count: int, room: torch.Tensor | None = None) -> Any:
        """The next rows: a tensor, in the room where there is one, or an array of words."""
        taken = self._next(count)
        if self.column.is_text:
            return taken[0] if len(taken) == 1 else np.concatenate(taken)
        if len(taken) == 1 and self.pages is None:
            return taken[0]
        rows = bytes_in(room, count * self.column.row_bytes).view(taken[0].dtype).view(count, *self.column.shape)
        begin = 0
        with self.column.where.reading(f"from row {self.done - count:,} on"):
            for piece in taken:
                here = rows[begin : begin + piece.shape[0]]
                if self.pages is None or not self.pages.read(piece, here):
                    here.copy_(piece)
                begin += piece.shape[0]
        return rows

    def skip(self, count: int) -> None:
        """Pass over rows."""
        self._next(count)

    def _next(self, count: int) -> list[Any]:
        """The next rows in the pieces that they lie in."""
        column = self.column
        with column.where.reading(f"from row {self.done:,} on"):
            while self.ahead < count:
                chunk = next(self.chunks, None)
                if chunk is None:
                    raise DataError(f"`{column.where}` ends before row {self.done + count:,} of {column.rows:,}.")
                if len(chunk):  # a piece without rows has no lists, of whatever length
                    self.rest.append(_values(chunk, column))
                    self.ahead += self.rest[-1].shape[0]
        self.done, self.ahead = self.done + count, self.ahead - count
        taken, left = list[Any](), count
        while left:
            first = self.rest[0]
            taken.append(first[:left])
            self.rest[:1] = [first[left:]] if first.shape[0] > left else []
            left -= taken[-1].shape[0]
        return taken

    def close(self) -> None:
        """Let go of the file."""
        self.chunks.close()
        if self.pages is not None:
            self.pages.file.close()


class _Pages:
    """A local file, mapped and open: what lies in its pages is read from the file, since pages looked at count as memory."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("rb", buffering=0)  # noqa: SIM115
        self.mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        self.buffer = np.frombuffer(self.mapped, dtype=np.uint8)

    def read(self, piece: torch.Tensor, target: torch.Tensor) -> bool:
        """Read what lies in the pages into a target of the same shape; False where it lies elsewhere (decoded, say)."""
        at = piece.data_ptr() - self.buffer.ctypes.data
        if not (0 <= at <= len(self.buffer) - piece.nbytes and piece.is_contiguous()):
            return False
        self.file.seek(at)
        view = target.view(-1).view(torch.uint8).numpy().data
        while view.nbytes:
            got = self.file.readinto(view)
            if not got:
                raise DataError(f"`{self.file.name}` became shorter while it was read. Write it again.")
            view = view[got:]
        return True


def arrow_columns(where: Location) -> list[StoredColumn | UnreadColumn]:
    """The columns of an Arrow file: feather, or the stream that Hugging Face's data sets write."""
    with where.reading(), _arrow_reader(where) as reader:
        rows, first = 0, None
        for batch in _batches(
            reader
        ):  # not decoded: a local file is mapped, and of each batch the length alone is looked at
            first = batch if first is None and batch.num_rows else first
            rows += batch.num_rows
        return _columns(where, reader.schema, rows, first, slow=False)


def parquet_columns(where: Location) -> list[StoredColumn | UnreadColumn]:
    """The columns of a Parquet file."""
    pa = _pyarrow(where)
    with where.reading(), where.open() as file, pa.parquet.ParquetFile(file) as table:
        first = next(table.iter_batches(batch_size=1), None)
        return _columns(where, table.schema_arrow, table.metadata.num_rows, first, slow=True)


def _columns(where: Location, schema: Any, rows: int, first: Any, *, slow: bool) -> list[StoredColumn | UnreadColumn]:
    """The columns that can be features or labels, and those that hold numbers otherwise; `first` shows how long lists are."""
    pa = _pyarrow(where)
    columns = list[StoredColumn | UnreadColumn]()
    for field in schema:
        shape: tuple[int, ...] = ()
        kind = field.type
        if pa.types.is_fixed_size_list(kind):
            shape, kind = (kind.list_size,), kind.value_type
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            entry = None if first is None else first.column(field.name)[0]
            shape, kind = (0 if entry is None or not entry.is_valid else len(entry),), kind.value_type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"
        if text and not shape:
            columns.append(StoredColumn(field.name, where, rows, (), torch.int64, is_text=True, slow=slow))
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            with suppress(TypeError):  # a type that torch does not know is no feature
                dtype = torch.from_numpy(np.zeros(1, dtype=kind.to_pandas_dtype())).dtype
                columns.append(StoredColumn(field.name, where, rows, shape, dtype, slow=slow))
        elif _number_inside(kind, pa):
            columns.append(UnreadColumn(field.name, where, str(field.type)))
    return columns


def _number_inside(kind: Any, pa: Any) -> bool:
    """Whether lists of lists, or a type of somebody's own, hold numbers in the end."""
    listed = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    while isinstance(kind, pa.BaseExtensionType) or any(each(kind) for each in listed):
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind.value_type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _chunks(column: StoredColumn, pages: _Pages | None) -> Generator[Any]:
    """The column in pieces as they are stored; of a local file in its `pages`."""
    pa = _pyarrow(column.where)
    if column.slow:
        with column.where.open() as file, pa.parquet.ParquetFile(file) as table:
            for batch in table.iter_batches(batch_size=PARQUET_ROWS, columns=[column.name]):
                yield batch.column(0)
        return
    if pages is not None:
        with _arrow_reader(column.where, pages=pages) as reader:  # all columns: where they lie, none of them is touched
            if _in_pages(reader, column.name, pages):
                yield from (batch.column(column.name) for batch in _batches(reader))
                return
    with _arrow_reader(column.where, column.name, pages) as reader:
        yield from (batch.column(0) for batch in _batches(reader))


def _batches(reader: Any) -> Iterator[Any]:
    """The pieces of a file or a stream."""
    if hasattr(reader, "get_batch"):
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    return iter(reader)


def _in_pages(reader: Any, name: str, pages: _Pages) -> bool:
    """Whether a file holds its columns as they are, not compressed; a stream is asked for one column instead."""
    if not hasattr(reader, "get_batch") or not reader.num_record_batches:
        return False
    at = reader.get_batch(0).column(name).buffers()[-1].address - pages.buffer.ctypes.data
    return bool(0 <= at <= len(pages.buffer))


def _arrow_reader(where: Location, column: str | None = None, pages: _Pages | None = None) -> Any:
    """A reader of the file or the stream, of one column or all."""
    pa = _pyarrow(where)
    if pages is not None:
        source = pa.BufferReader(pa.py_buffer(pages.buffer))
    else:
        source = pa.memory_map(where.path) if where.system is None else where.open()
    try:
        whole = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        whole = pa.ipc.open_stream(source)
        if column is None:
            return whole
        index = whole.schema.get_field_index(column)
        source.seek(0)
        return pa.ipc.open_stream(source, options=pa.ipc.IpcReadOptions(included_fields=[index]))
    if column is None:
        return whole
    index = whole.schema.get_field_index(column)
    return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=[index]))


def _values(chunk: Any, column: StoredColumn) -> Any:
    """A piece of a column as a tensor, or as an array of words."""
    pa = _pyarrow(column.where)
    if chunk.null_count:
        raise DataError(
            f"`{column.where}`: {chunk.null_count} rows of the column `{column.name}` are empty. Fill them, or leave them out."
        )
    if isinstance(chunk, pa.DictionaryArray):
        chunk = chunk.dictionary_decode()
    if column.is_text:
        return chunk.to_numpy(zero_copy_only=False)
    if column.shape:
        width = column.shape[0]
        lengths = [width] if pa.types.is_fixed_size_list(chunk.type) else chunk.value_lengths().unique().to_pylist()
        chunk = chunk.flatten()
        if lengths != [width] or not width or chunk.null_count:
            raise DataError(
                f"`{column.where}`: the lists of the column `{column.name}` differ in length, or have gaps (lengths "
                f"{', '.join(map(str, sorted(lengths)[:5]))}; {width} in the first row). Features of one layer have one width."
            )
    if pa.types.is_boolean(chunk.type) or chunk.null_count:
        numbers = torch.from_numpy(np.array(chunk.to_numpy(zero_copy_only=False)))
    else:
        # where it lies: what is read-only is copied before it is handed on
        numbers = torch.utils.dlpack.from_dlpack(chunk)
    return numbers.view(-1, *column.shape)


def _pyarrow(where: Location) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as _  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(needed_for=f"`{where}`", package="pyarrow", extra="stores") from error
    return pa
