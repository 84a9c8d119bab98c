"""Official data sets in folders: every layout that is accepted, the order of places, and damaged files."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from official_files import TEST, TRAIN, arrays_of, idx, md5, plain_parts, tar_gz, write

from equisep.data import DATA_NAMES, load_data
from equisep.data.official.sources import SOURCES
from equisep.errors import DataError

Small = Callable[[str], dict[str, bytes]]
NAMES = tuple(SOURCES)


def check(name: str, folder: Path) -> None:
    data = load_data(name, data_dir=folder, download=False)
    for key, expected in arrays_of(name).items():
        np.testing.assert_array_equal(getattr(data, key), expected)
    assert (data.name, data.source, data.classes) == (name, "folder", SOURCES[name].classes)
    assert data.y_train.dtype == np.int64
    assert len(data.class_names) in (0, data.classes)


def needs(name: str) -> None:
    if name == "svhn":
        pytest.importorskip("scipy")


def test_names() -> None:
    official = ["fashion-mnist", "mnist", "cifar10", "cifar100", "svhn", "stl10"]
    assert list(DATA_NAMES) == ["embedded-10x10", "embedded-28x28", *official]
    for name, source in SOURCES.items():
        assert name == source.name
        for file in source.files:
            assert file.url.endswith(file.name)
            assert len(file.md5) == 32


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inner", [".", "own"])
def test_as_published(name: str, inner: str, small: Small, tmp_path: Path) -> None:
    needs(name)
    write(tmp_path / (name if inner == "own" else "."), small(name))
    check(name, tmp_path)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "svhn"])
@pytest.mark.parametrize("flat", [False, True])
def test_unpacked(name: str, flat: bool, small: Small, tmp_path: Path) -> None:
    small(name)
    parts = plain_parts(name)
    write(tmp_path, {Path(part).name if flat else part: content for part, content in parts.items()})
    check(name, tmp_path)


def test_torchvision_folders(small: Small, tmp_path: Path) -> None:
    write(tmp_path / "MNIST" / "raw", small("mnist"))
    check("mnist", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_as_npz(name: str, small: Small, tmp_path: Path) -> None:
    small(name)
    np.savez(tmp_path / f"{name}.npz", **arrays_of(name))
    check(name, tmp_path)


def test_the_folder_of_the_environment_and_the_order_of_places(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = small("mnist")
    write(tmp_path / "variable", files)
    monkeypatch.setenv("EQUISEP_DATA", str(tmp_path / "variable"))
    assert load_data("mnist", download=False).source == "folder"
    (tmp_path / "argument").mkdir()
    changed = {**arrays_of("mnist"), "y_test": np.zeros(TEST, dtype=int)}
    np.savez(tmp_path / "argument" / "mnist.npz", **changed)
    assert load_data("mnist", data_dir=tmp_path / "argument", download=False).y_test.sum() == 0


def test_files_may_lie_in_two_places(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = small("mnist")
    names = list(files)
    write(tmp_path / "a", {n: files[n] for n in names[:2]})
    write(tmp_path / "b", {n: files[n] for n in names[2:]})
    monkeypatch.setenv("EQUISEP_DATA", str(tmp_path / "b"))
    assert len(load_data("mnist", data_dir=tmp_path / "a", download=False).x_train) == TRAIN


def test_another_name_is_an_npz_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "cifar10_7k.npz", **arrays_of("cifar10"))
    monkeypatch.setenv("EQUISEP_DATA", str(tmp_path))
    data = load_data("cifar10_7k")
    assert (data.name, data.source, data.classes) == ("cifar10_7k", "folder", 10)
    with pytest.raises(DataError, match="Did you mean `cifar10_7k`"):
        load_data("cifar10_7")


def test_a_gz_with_another_header_is_the_same_data(small: Small, tmp_path: Path) -> None:
    files = small("fashion-mnist")
    write(tmp_path, {n: gzip.compress(gzip.decompress(c), 1, mtime=77) for n, c in files.items()})
    check("fashion-mnist", tmp_path)


def test_an_unknown_name() -> None:
    with pytest.raises(DataError, match=r"no data set `fashon-mnist`\. Did you mean `fashion-mnist`") as caught:
        load_data("fashon-mnist")
    assert "a path to any .npz file with x_train, y_train, x_test, y_test works too" in str(caught.value)


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_data_folder_that_does_not_exist(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "nowhere"
    if by == "variable":
        monkeypatch.setenv("EQUISEP_DATA", str(missing))
    origin = {"argument": "data_dir", "variable": "EQUISEP_DATA"}[by]
    with pytest.raises(DataError, match=f"`{origin}` should name a folder .* there is no folder `.*nowhere`"):
        load_data("mnist", data_dir=missing if by == "argument" else None)
    assert load_data("embedded-10x10").source == "embedded"


@pytest.mark.parametrize("name", ["mnist", "cifar10", "stl10"])
def test_a_wrong_checksum(name: str, small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = small(name)
    first = SOURCES[name].files[0]
    altered = replace(first, md5="0" * 32, plain_md5=first.plain_md5 and "1" * 32)
    monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], files=(altered, *SOURCES[name].files[1:])))
    write(tmp_path, files)
    with pytest.raises(DataError) as caught:
        load_data(name, data_dir=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / first.name) in message
    assert f"should have the MD5 {'0' * 32}; it has {md5(files[first.name])}" in message
    assert f"download it again from {first.url}" in message


def test_a_wrong_checksum_of_an_unpacked_file(small: Small, tmp_path: Path) -> None:
    small("mnist")
    parts = plain_parts("mnist")
    other = idx(arrays_of("mnist")["x_train"] // 2)
    write(tmp_path, {**parts, "train-images-idx3-ubyte": other})
    with pytest.raises(DataError, match=f"should have the MD5 [0-9a-f]{{32}}; it has {md5(other)}"):
        load_data("mnist", data_dir=tmp_path)


def test_the_file_of_another_data_set(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small("mnist")
    fashion = small("fashion-mnist")
    images = gzip.compress(idx(arrays_of("mnist")["x_train"] // 3), mtime=0)
    official = replace(SOURCES["fashion-mnist"].files[0], md5=md5(images))
    monkeypatch.setitem(SOURCES, "fashion-mnist", replace(SOURCES["fashion-mnist"], files=(official,)))
    write(tmp_path, {**fashion, official.name: images})
    with pytest.raises(DataError, match="It is the file of `fashion-mnist`: keep each data set in a subfolder"):
        load_data("mnist", data_dir=tmp_path)


def test_a_damaged_matlab_file_never_reaches_scipy(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    io = pytest.importorskip("scipy.io")
    files = small("svhn")
    monkeypatch.setattr(io, "loadmat", lambda *args, **kwargs: pytest.fail("damaged bytes can crash scipy"))
    write(tmp_path, {**files, "test_32x32.mat": files["test_32x32.mat"][:-50]})
    with pytest.raises(DataError, match=r"test_32x32\.mat` should have the MD5 .* download it again"):
        load_data("svhn", data_dir=tmp_path)


@pytest.mark.parametrize("name", ["fashion-mnist", "cifar10", "cifar100", "stl10"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.999])
def test_a_truncated_archive(name: str, share: float, small: Small, tmp_path: Path) -> None:
    files = small(name)
    first = next(iter(files))
    write(tmp_path, {**files, first: files[first][: int(share * len(files[first]))]})
    with pytest.raises(DataError) as caught:
        load_data(name, data_dir=tmp_path)
    assert str(tmp_path / first) in str(caught.value)
    assert "ownload it again" in str(caught.value)


def test_a_truncated_gz_says_so(small: Small, tmp_path: Path) -> None:
    files = small("mnist")
    first = next(iter(files))
    write(tmp_path, {**files, first: files[first][:-20]})
    with pytest.raises(DataError, match=r"cannot be decompressed .* bytes are truncated or damaged"):
        load_data("mnist", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"no idx file", "begins with the bytes 00 00 08 03"), (idx(arrays_of("mnist")["x_train"])[:-9], "announces")],
)
def test_the_structure_is_named_before_the_checksum(content: bytes, words: str, small: Small, tmp_path: Path) -> None:
    small("mnist")
    write(tmp_path, {**plain_parts("mnist"), "train-images-idx3-ubyte": content})
    with pytest.raises(DataError, match=words):
        load_data("mnist", data_dir=tmp_path)


def test_a_truncated_unpacked_cifar_file(small: Small, tmp_path: Path) -> None:
    small("cifar10")
    parts = plain_parts("cifar10")
    batch = "cifar-10-batches-bin/data_batch_3.bin"
    write(tmp_path, {**parts, batch: parts[batch][:-100]})
    with pytest.raises(DataError, match=r"data_batch_3\.bin` is truncated or damaged"):
        load_data("cifar10", data_dir=tmp_path)
    write(tmp_path, {**parts, batch: parts[batch][:3073]})
    with pytest.raises(
        DataError, match=f"has {TRAIN} training and {TEST} test samples; .* hold {TRAIN - 3} and {TEST}"
    ):
        load_data("cifar10", data_dir=tmp_path)


def test_labels_of_another_data_set(small: Small, tmp_path: Path) -> None:
    small("cifar10")
    parts = plain_parts("cifar10")
    batch = "cifar-10-batches-bin/data_batch_1.bin"
    write(tmp_path, {**parts, batch: b"\x63" + parts[batch][1:]})
    with pytest.raises(DataError, match="labels 0 to 9; the highest is 99"):
        load_data("cifar10", data_dir=tmp_path)


def test_a_tar_without_its_members(small: Small, tmp_path: Path) -> None:
    small("cifar100")
    write(tmp_path, {"cifar-100-binary.tar.gz": tar_gz({"cifar-100-binary/train.bin": b"x"})})
    with pytest.raises(DataError, match=r"should hold `cifar-100-binary/test\.bin`; it does not"):
        load_data("cifar100", data_dir=tmp_path)


def test_nothing_is_extracted_and_links_are_not_followed(small: Small, tmp_path: Path) -> None:
    small("cifar100")
    outside = tmp_path / "secret"
    outside.write_bytes(b"secret")
    folder = tmp_path / "data"
    folder.mkdir()
    with tarfile.open(folder / "cifar-100-binary.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("cifar-100-binary/train.bin")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("../escaped"))
    before = sorted(os.walk(tmp_path))
    with pytest.raises(DataError, match="should hold"):
        load_data("cifar100", data_dir=folder)
    assert sorted(os.walk(tmp_path)) == before
