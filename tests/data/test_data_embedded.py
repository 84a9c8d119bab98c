"""The embedded sets: what they hold, how small they are, and that the script makes them again."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch

from equisep.data import PREPARATIONS, Preparation, draw, load_data, prepare, prepare_split

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "make_embedded.py"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
EMBEDDED = Path(str(files("equisep.data") / "embedded"))
FILES = ("fashion_mnist_10x10.npz", "fashion_mnist_28x28.npz")

needs_official = pytest.mark.skipif(
    not DEBIAN.is_dir(), reason=f"the official files (Debian's dataset-fashion-mnist) are not in {DEBIAN}"
)


@pytest.mark.parametrize(
    ("name", "side", "train", "test"), [("embedded-10x10", 10, 600, 200), ("embedded-28x28", 28, 150, 50)]
)
def test_shapes_and_counts(name: str, side: int, train: int, test: int) -> None:
    data = load_data(name)
    assert data.x_train.shape == (10 * train, side, side)
    assert data.x_test.shape == (10 * test, side, side)
    assert data.x_train.dtype == data.x_test.dtype == np.uint8
    assert data.y_train.dtype == data.y_test.dtype == np.int64
    assert np.bincount(data.y_train).tolist() == [train] * 10
    assert np.bincount(data.y_test).tolist() == [test] * 10
    assert (data.name, data.source, data.classes, len(data.class_names)) == (name, "embedded", 10, 10)
    assert data.x_train.max() > 200


def test_together_under_two_mebibytes_with_the_licence() -> None:
    assert sum((EMBEDDED / name).stat().st_size for name in FILES) < 2 * 2**20
    licence = (EMBEDDED / "LICENSE").read_text(encoding="utf-8")
    assert "Copyright (c) 2017 Zalando SE, https://tech.zalando.com" in licence
    assert "Permission is hereby granted, free of charge" in licence


def test_positions_are_recorded_and_the_sets_are_nested() -> None:
    with np.load(EMBEDDED / FILES[0]) as small, np.load(EMBEDDED / FILES[1]) as large:
        for split in ("train", "test"):
            positions = small[f"idx_{split}"].tolist()
            assert len(set(positions)) == len(positions) == len(small[f"x_{split}"])
            assert set(large[f"idx_{split}"].tolist()) <= set(positions)


def test_checksums_are_stable() -> None:
    data = load_data("embedded-10x10")
    assert re.fullmatch("[0-9a-f]{64}", data.checksum)
    assert data.checksum == load_data("embedded-10x10").checksum
    assert data.checksum != load_data("embedded-28x28").checksum


def test_the_papers_samples_can_be_drawn() -> None:
    data = load_data("embedded-10x10")
    x, y = prepare_split(data, "he2023-10x10", per_class=100)
    assert x.shape == (1000, 1, 10, 10)
    assert x.dtype == torch.float32
    assert y.dtype == torch.int64
    assert y.bincount().tolist() == [100] * 10
    assert x.min() == -1.0
    assert x.max() <= 1.0
    _, y = prepare_split(data, sizes=[500] * 5 + [100] * 5)
    assert y.bincount().tolist() == [500] * 5 + [100] * 5
    assert len(prepare_split(data, per_class=500)[0]) == 5000
    assert len(prepare_split(data, split="test")[0]) == 2000


@needs_official
def test_the_script_makes_the_same_files_again(tmp_path: Path) -> None:
    for out in ("first", "second"):
        command = [sys.executable, str(SCRIPT), str(DEBIAN), "--out", str(tmp_path / out)]
        subprocess.run(command, check=True, capture_output=True)
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
        # the committed bytes may come from another zlib; the arrays must be the same
        with np.load(tmp_path / "first" / name) as made, np.load(EMBEDDED / name) as committed:
            assert made.files == committed.files
            for key in made.files:
                assert made[key].dtype == committed[key].dtype
                np.testing.assert_array_equal(made[key], committed[key])


@needs_official
def test_the_script_refuses_other_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (20, 28, 28), dtype=np.uint8), np.arange(20) % 10
    np.savez(tmp_path / "fashion-mnist.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--out", str(tmp_path / "out")]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode != 0
    assert "MD5" in result.stderr
    assert not (tmp_path / "out").exists()


@needs_official
def test_the_full_set_prepared_is_bit_identical_to_the_embedded_one() -> None:
    full = load_data("fashion-mnist", data_dir=DEBIAN, download=False)
    assert (full.source, len(full.x_train), len(full.x_test)) == ("folder", 60000, 10000)
    small = load_data("embedded-10x10")
    chosen = draw(full.y_train, per_class=600, seed=0)
    np.testing.assert_array_equal(full.y_train[chosen], small.y_train)
    for how in (Preparation(resize=10), PREPARATIONS["he2023-10x10"]):
        assert torch.equal(prepare(full.x_train, how)[chosen], prepare(small.x_train, how))
