"""The readers on real files, where the folder EQUISEP_DATA holds some."""

from __future__ import annotations

import numpy as np
import pytest

from equisep.data import load_data, prepare_split
from real_data import real_folder


def test_mnist() -> None:
    folder = real_folder(one_of=("mnist.npz", "mnist", "train-images-idx3-ubyte.gz"))
    data = load_data("mnist", data_dir=folder, download=False)
    assert (len(data.x_train), len(data.x_test)) == (60000, 10000)
    assert data.x_train.shape[1:] == (28, 28)
    assert np.bincount(data.y_train).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    x, _ = prepare_split(data, per_class=100)
    assert abs(float(x.mean()) - 0.1307) < 0.01


def test_a_part_of_cifar10() -> None:
    folder = real_folder("cifar10_7k.npz")
    data = load_data("cifar10_7k", data_dir=folder)
    assert data.x_train.shape == (5000, 32, 32, 3)
    assert np.bincount(data.y_train).tolist() == [500] * 10
    x, _ = prepare_split(data, "he2023-32x32-cifar")
    assert x.mean(dim=(0, 2, 3)).abs().max() < 0.05
    green, _ = prepare_split(data, "he2023-10x10-cifar", per_class=100)
    assert green.shape == (1000, 1, 10, 10)


@pytest.mark.parametrize(
    ("name", "file", "shape"),
    [
        ("cifar10", "cifar-10-binary.tar.gz", (32, 32, 3)),
        ("cifar100", "cifar-100-binary.tar.gz", (32, 32, 3)),
        ("stl10", "stl10_binary.tar.gz", (96, 96, 3)),
        ("svhn", "train_32x32.mat", (32, 32, 3)),
    ],
)
def test_official_archives(name: str, file: str, shape: tuple[int, ...]) -> None:
    folder = real_folder(one_of=(file, f"{name}/{file}"))
    data = load_data(name, data_dir=folder, download=False)
    assert data.x_train.shape[1:] == shape
    assert len(np.unique(data.y_train)) == data.classes
