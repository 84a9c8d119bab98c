"""The readers of the official formats, on bytes: what they give, and what they say of damaged bytes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from official_files import cifar_records, idx, images, matlab

from equisep.data.official.sources import read_cifar, read_idx, read_stl10_images, read_stl10_labels, read_svhn
from equisep.errors import DataError, MissingExtraError


def test_idx_images_and_labels() -> None:
    x = images(5, 4, 3)
    np.testing.assert_array_equal(read_idx(idx(x), dims=3, where="f"), x)
    np.testing.assert_array_equal(read_idx(idx(np.arange(7)), dims=1, where="f"), np.arange(7))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x00\x00\x08\x01" + bytes(12), "begins with the bytes 00 00 08 03; it begins with 00 00 08 01"),
        (b"\x1f\x8b\x08\x00" + bytes(30), "begins with 1f 8b 08 00"),
        (b"", "begins with nothing"),
        (idx(images(5, 4, 3))[:9], "9 bytes do not hold its 16-byte header"),
        (idx(images(5, 4, 3))[:-1], "announces 5 × 4 × 3 = 60 bytes, 59 follow"),
        (idx(images(5, 4, 3)) + b"x", "announces 5 × 4 × 3 = 60 bytes, 61 follow"),
    ],
)
def test_idx_wrong_magic_or_truncated(content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        read_idx(content, dims=3, where="train-images")
    assert "`train-images`" in str(caught.value)
    assert "Download it again" in str(caught.value)


def test_cifar_images_are_channels_last_and_the_fine_label_is_used() -> None:
    x, fine = images(6, 32, 32, 3), np.array([9, 0, 1, 2, 3, 99])
    read_x, read_y = read_cifar(cifar_records(x, fine % 10), label_bytes=1, where="f")
    np.testing.assert_array_equal(read_x, x)
    np.testing.assert_array_equal(read_y, fine % 10)
    read_x, read_y = read_cifar(cifar_records(x, fine // 5, fine), label_bytes=2, where="f")
    np.testing.assert_array_equal(read_x, x)
    np.testing.assert_array_equal(read_y, fine)


@pytest.mark.parametrize("content", [b"", bytes(3072), bytes(3073 * 2 + 5)])
def test_cifar_truncated(content: bytes) -> None:
    with pytest.raises(DataError, match=r"`batch` is truncated or damaged: .* records of 3073 bytes.* bytes over"):
        read_cifar(content, label_bytes=1, where="batch")


def test_stl10_is_column_major_and_counts_from_one() -> None:
    x = images(2, 96, 96, 3)
    content = b"".join(image[:, :, c].tobytes(order="F") for image in x for c in range(3))
    np.testing.assert_array_equal(read_stl10_images(content, where="f"), x)
    np.testing.assert_array_equal(read_stl10_labels(bytes([1, 10, 3]), where="f"), [0, 9, 2])


def test_stl10_truncated_or_other_labels() -> None:
    with pytest.raises(DataError, match="1 images and 1 bytes over"):
        read_stl10_images(bytes(3 * 96 * 96 + 1), where="f")
    with pytest.raises(DataError, match="labels from 1 to 10; found 0 to 4"):
        read_stl10_labels(bytes([0, 4]), where="f")
    with pytest.raises(DataError, match="found none"):
        read_stl10_labels(b"", where="f")


def test_svhn_ten_is_the_digit_zero() -> None:
    pytest.importorskip("scipy")
    x, y = images(4, 32, 32, 3), np.array([0, 1, 9, 0])
    read_x, read_y = read_svhn(matlab(x, y), where="f")
    np.testing.assert_array_equal(read_x, x)
    np.testing.assert_array_equal(read_y, y)


def test_svhn_damaged() -> None:
    pytest.importorskip("scipy")
    content = matlab(images(4, 32, 32, 3), np.arange(4))
    for damaged in (content[: len(content) // 2], b"no matlab file at all", b""):
        with pytest.raises(DataError, match="`f` cannot be read as a Matlab file"):
            read_svhn(damaged, where="f")
    with pytest.raises(DataError, match="32 × 32 × 3 × n"):
        read_svhn(matlab(images(4, 30, 32, 3), np.arange(4)), where="f")
    with pytest.raises(DataError, match="one label in `y` for each"):
        read_svhn(matlab(images(4, 32, 32, 3), np.arange(3)), where="f")


def test_svhn_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=r"pip install \"equisep\[svhn\]\""):
        read_svhn(b"", where="f")
