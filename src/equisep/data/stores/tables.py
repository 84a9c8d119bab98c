"""Columns of tables, Arrow (feather) and Parquet: lists of one length as feature vectors, numbers and words as labels."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

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


class ColumnReader:
    """The rows of a column in order."""

    def __init__(self, column: StoredColumn) -> None:
        self.column, self.done = column, 0
        with column.where.reading():
            self.chunks = _chunks(column)
        self.rest: list[Any] = []

    def read(self, count: int) -> Any:
        """The next rows: a tensor, or an array of words."""
        column = self.column
        with column.where.reading(f"from row {self.done:,} on"):
            while sum(map(len, self.rest)) < count:
                chunk = next(self.chunks, None)
                if chunk is None:
                    raise DataError(f"`{column.where}` ends before row {self.done + count:,} of {column.rows:,}.")
                self.rest.append(_values(chunk, column))
        self.done += count
        taken, left = list[Any](), count
        while left:
            first = self.rest[0]
            taken.append(first[:left])
            self.rest[:1] = [first[left:]] if len(first) > left else []
            left -= len(taken[-1])
        if len(taken) == 1:
            return taken[0]
        return np.concatenate(taken) if column.is_text else torch.cat(taken)

    def close(self) -> None:
        """Let go of the file."""
        self.chunks.close()


def arrow_columns(where: Location) -> list[StoredColumn]:
    """The columns of an Arrow file: feather, or the stream that Hugging Face's data sets write."""
    pa = _pyarrow(where)
    with where.reading(), _arrow_reader(where) as reader:
        counted = isinstance(reader, pa.ipc.RecordBatchFileReader)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if counted else iter(reader)
        rows, first = 0, None
        for batch in batches:  # not decoded: a local file is mapped, and of each batch the length alone is looked at
            first = batch if first is None and batch.num_rows else first
            rows += batch.num_rows
        return _columns(where, reader.schema, rows, first, slow=False)


def parquet_columns(where: Location) -> list[StoredColumn]:
    """The columns of a Parquet file."""
    pa = _pyarrow(where)
    with where.reading(), where.open() as file, pa.parquet.ParquetFile(file) as table:
        first = next(table.iter_batches(batch_size=1), None)
        return _columns(where, table.schema_arrow, table.metadata.num_rows, first, slow=True)


def _columns(where: Location, schema: Any, rows: int, first: Any, *, slow: bool) -> list[StoredColumn]:
    """The columns that can be features or labels; `first` shows how long their lists are."""
    pa = _pyarrow(where)
    columns = []
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
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if text and not shape:
            columns.append(StoredColumn(field.name, where, rows, (), torch.int64, is_text=True, slow=slow))
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            with suppress(TypeError):  # a type that torch does not know is no feature
                dtype = torch.from_numpy(np.zeros(1, dtype=kind.to_pandas_dtype())).dtype
                columns.append(StoredColumn(field.name, where, rows, shape, dtype, slow=slow))
    return columns


def _chunks(column: StoredColumn) -> Generator[Any]:
    """The column in pieces as they are stored."""
    pa = _pyarrow(column.where)
    if column.slow:
        with column.where.open() as file, pa.parquet.ParquetFile(file) as table:
            for batch in table.iter_batches(batch_size=PARQUET_ROWS, columns=[column.name]):
                yield batch.column(0)
        return
    with _arrow_reader(column.where, column.name) as reader:
        if isinstance(reader, pa.ipc.RecordBatchFileReader):
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number).column(0)
        else:
            for batch in reader:
                yield batch.column(0)


def _arrow_reader(where: Location, column: str | None = None) -> Any:
    """A reader of the file or the stream, of one column or all."""
    pa = _pyarrow(where)
    # mapped to be looked at, read to be read: what is mapped counts as memory in use
    local = pa.memory_map if column is None else pa.OSFile
    source = local(where.path) if where.system is None else where.open()
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
    numbers = torch.from_numpy(np.array(chunk.to_numpy(zero_copy_only=False)))  # arrow's own memory is read-only
    return numbers.view(-1, *column.shape)


def _pyarrow(where: Location) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as _  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(needed_for=f"`{where}`", package="pyarrow", extra="stores") from error
    return pa
