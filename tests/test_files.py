"""One encoder for every JSON, one writer for every file."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import torch

from equisep.files import encode, json_text, plain, write_whole


@dataclass(frozen=True)
class Record:
    name: str
    values: tuple[float, ...]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Record("a", (1.0, 2.5)), {"name": "a", "values": [1.0, 2.5]}),
        ({1: (None, True)}, {"1": [None, True]}),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.array(["a", "b"]), ["a", "b"]),
        (torch.tensor([[1.5]]), [[1.5]]),
        (torch.tensor(2), 2),
        (torch.ones(2, dtype=torch.bfloat16), [1.0, 1.0]),
        ({"deep": [Record("b", (np.float64(1),))]}, {"deep": [{"name": "b", "values": [1.0]}]}),
    ],
)
def test_records_arrays_and_tensors_become_plain_types(value: Any, wanted: Any) -> None:
    encoded = encode(value)
    assert encoded == wanted
    assert json.loads(json.dumps(encoded)) == wanted  # json refuses numpy's and torch's own


def test_numbers_that_are_not_finite_are_kept_dropped_or_written_out() -> None:
    values = [math.nan, math.inf, -math.inf, np.float32("inf"), torch.tensor(math.nan)]
    assert str(encode(values)) == "[nan, inf, -inf, inf, nan]"
    assert plain(values) == [None] * 5
    assert encode(values, nonfinite="text") == [None, "inf", "-inf", "inf", None]
    assert json_text({"a": values[:2]}) == '{"a":[null,null]}'


def test_encoding_needs_neither_numpy_nor_torch() -> None:
    code = "import sys, equisep.files as f; f.json_text([1.5, {'a': None}]); assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_appears_whole_in_a_folder_that_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write_whole(path, "ü\n")
    assert path.read_bytes() == b"\xc3\xbc\n"
    write_whole(path, lambda file: np.save(file, np.arange(3)))
    assert np.load(path).tolist() == [0, 1, 2]


def test_a_writer_that_fails_leaves_the_former_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "before")

    def fails(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fails)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"a.txt": "before"}
