"""Any .npz as a data set: what is accepted, and a sentence for each thing that is not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equisep.data import load_data
from equisep.errors import DataError, InputError


def arrays(**changed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    kept = {
        "x_train": rng.integers(0, 256, (12, 4, 4), dtype=np.uint8),
        "y_train": np.arange(12) % 3,
        "x_test": rng.integers(0, 256, (6, 4, 4), dtype=np.uint8),
        "y_test": np.arange(6) % 3,
    }
    return {key: value for key, value in {**kept, **changed}.items() if value is not None}


def saved(folder: Path, **changed: Any) -> Path:
    np.savez(folder / "mine.npz", **arrays(**changed))
    return folder / "mine.npz"


def test_any_npz_by_path(tmp_path: Path) -> None:
    for path in (saved(tmp_path), str(saved(tmp_path))):
        data = load_data(path)
        assert (data.name, data.source, data.classes, data.notes) == ("mine", "file", 3, ())
        assert data.y_train.dtype == np.int64
        np.testing.assert_array_equal(data.x_train, arrays()["x_train"])
    assert repr(data) == "Dataset('mine': 12 train + 6 test of 4×4 uint8, 3 classes, from file)"


def test_a_relative_path_and_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_data("mine.npz").checksum == load_data("~/mine.npz").checksum


@pytest.mark.parametrize("dtype", ["float32", "float64", ">f4", "int16", "bool"])
def test_vectors_of_any_number_type(tmp_path: Path, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(12, 5)).astype(dtype)
    data = load_data(saved(tmp_path, x_train=x, x_test=x[:6]))
    np.testing.assert_array_equal(data.x_train, x)
    assert data.x_train.dtype.isnative


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64", "bool"])
def test_labels_of_any_whole_type_become_int64(tmp_path: Path, dtype: str) -> None:
    labels = (np.arange(12) % 2).astype(dtype)
    data = load_data(saved(tmp_path, y_train=labels, y_test=labels[:6]))
    assert data.y_train.dtype == np.int64
    assert data.y_train.tolist() == [0, 1] * 6


def test_a_column_of_labels_is_a_vector(tmp_path: Path) -> None:
    data = load_data(saved(tmp_path, y_train=(np.arange(12) % 3)[:, None]))
    assert data.y_train.shape == (12,)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_one_hot_labels_are_turned_into_classes_with_a_note(tmp_path: Path, dtype: str) -> None:
    data = load_data(saved(tmp_path, y_train=np.eye(4, dtype=dtype)[np.arange(12) % 3]))
    assert data.y_train.tolist() == [0, 1, 2] * 4
    assert data.classes == 4
    assert [note.code for note in data.notes] == ["one-hot"]


def test_class_names_are_read_and_announce_the_classes(tmp_path: Path) -> None:
    data = load_data(saved(tmp_path, class_names=np.array(["ant", "bee", "cow", "dog"])))
    assert data.class_names == ("ant", "bee", "cow", "dog") and data.classes == 4
    assert data.checksum == load_data(saved(tmp_path)).checksum


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (np.array(["ant", "bee"]), "`class_names` has 2 names, and the highest label is 2"),
        (np.arange(3), "`class_names` has type int64 and shape (3,). Save a list of words"),
        (np.array(["a", "b", "c"], dtype=object), "Save it as an array of words, `np.array(names)`."),
    ],
)
def test_class_names_that_cannot_be_used(tmp_path: Path, names: Any, words: str) -> None:
    with pytest.raises(DataError) as caught:
        load_data(saved(tmp_path, class_names=names))
    assert words in str(caught.value)


def test_the_checksum_is_of_the_contents(tmp_path: Path) -> None:
    first = load_data(saved(tmp_path))
    (tmp_path / "again").mkdir()
    np.savez_compressed(tmp_path / "again" / "other.npz", **arrays(y_train=(np.arange(12) % 3).astype(np.uint8)))
    assert load_data(tmp_path / "again" / "other.npz").checksum == first.checksum
    assert load_data(saved(tmp_path, y_test=np.arange(6) % 2)).checksum != first.checksum


def test_an_empty_test_set_is_allowed(tmp_path: Path) -> None:
    data = load_data(saved(tmp_path, x_test=np.empty((0, 4, 4)), y_test=np.empty(0, dtype=int)))
    assert data.classes == 3


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"y_train": None, "x_test": None}, "`y_train`, `x_test` missing, it holds `x_train`, `y_test`"),
        ({"y_train": np.arange(11) % 3}, "`x_train` holds 12 samples and `y_train` 11 labels"),
        ({"y_test": np.arange(7) % 3}, "`x_test` holds 6 samples and `y_test` 7 labels"),
        (
            {"y_train": np.linspace(0, 1, 12)},
            "`y_train` cannot be used. Class labels are integers; found float64 values",
        ),
        (
            {"y_test": np.arange(6) - 2},
            "`y_test` cannot be used. Class labels run from 0 on; found 2 negative ones, the least -2",
        ),
        ({"y_train": np.full(12, 2**40)}, "the highest found is 1099511627776"),
        ({"y_train": np.ones((12, 3))}, r"shape \(12, 3\) are neither class indices nor one-hot rows"),
        ({"y_train": np.array(["cat"] * 12)}, "`y_train` has type <U3"),
        ({"x_train": np.array([{}] * 12, dtype=object)}, "`x_train` holds Python objects"),
        ({"y_train": np.array([[]] * 11 + [[1]], dtype=object)}, "`y_train` holds Python objects"),
        ({"x_train": np.array(["a"] * 12)}, "`x_train` has type <U1"),
        ({"x_train": np.float32(1)}, "`x_train` has type float32 and shape"),
        ({"x_test": np.zeros((6, 5, 4))}, r"`x_train` have shape \(4, 4\), those of `x_test` \(5, 4\)"),
        ({"x_train": np.zeros((0, 4, 4)), "y_train": np.zeros(0, dtype=int)}, "`x_train` holds no samples"),
    ],
)
def test_contents_that_cannot_be_used(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    path = saved(tmp_path, **changed)
    with pytest.raises(DataError, match=words) as caught:
        load_data(path)
    assert str(path) in str(caught.value)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file `.*nothing\.npz`\. Check the path"):
        load_data(tmp_path / "nothing.npz")


def test_a_folder_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a folder; .*`--data-dir` or EQUISEP_DATA"):
        load_data(tmp_path)


def test_truncated_and_foreign_files(tmp_path: Path) -> None:
    content = saved(tmp_path).read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"hello", content[:-1]):
        (tmp_path / "bad.npz").write_bytes(damaged)
        with pytest.raises(DataError, match=f"its {len(damaged)} bytes are no complete zip archive"):
            load_data(tmp_path / "bad.npz")
    np.save(tmp_path / "bare.npy", np.arange(3))
    (tmp_path / "bare.npy").rename(tmp_path / "bare.npz")
    with pytest.raises(DataError, match="no complete zip archive"):
        load_data(tmp_path / "bare.npz")


def test_damage_inside_the_archive(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "mine.npz", **arrays())
    content = bytearray((tmp_path / "mine.npz").read_bytes())
    content[80:120] = bytes(40)
    (tmp_path / "mine.npz").write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"mine\.npz`: `x_train` is damaged \(.+\)\. Save or download the file again"):
        load_data(tmp_path / "mine.npz")


def test_whatever_the_damage_it_is_a_data_error(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    content = np.frombuffer(saved(tmp_path).read_bytes(), dtype=np.uint8)
    for _ in range(200):
        damaged = content.copy()
        damaged[rng.integers(0, len(content), 8)] = rng.integers(0, 256, 8)
        (tmp_path / "bad.npz").write_bytes(damaged.tobytes())
        with suppress(DataError):  # a byte nobody reads may have been hit: then it loads
            load_data(tmp_path / "bad.npz")


def test_a_split_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`train` and `test`; 'dev' was asked for"):
        load_data(saved(tmp_path)).split("dev")
