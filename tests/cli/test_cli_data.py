"""`--data` as code of the user's: loaders, data sets, arrays, training beside test data; and what has no use there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.running import equisep

CODE = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

print("loading")
gen = torch.Generator().manual_seed(0)
Y = torch.arange(90) % 3
X = torch.randn(90, 6, generator=gen) + 2 * nn.functional.one_hot(Y, 6)

class Named(TensorDataset):
    classes = ["cat", "dog", "owl"]

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))

def loader(size=30):
    return DataLoader(Named(X, Y), batch_size=size)

ready = DataLoader(TensorDataset(X, Y), batch_size=30)

def dataset():
    return Named(X, Y)

def arrays():
    return X.numpy(), Y.numpy()

def both():
    return Named(X[:60], Y[:60]), loader()

def by_name():
    return {"train": (X[:60], Y[:60]), "test": (X[60:], Y[60:])}

def drawn():
    return torch.randn(90, 6), Y

def nothing():
    return 5

def broken():
    raise OSError("no such disk")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "own_data.py").write_text(CODE, encoding="utf-8")
    return folder


def measured(place: Path, data: str, *more: str) -> dict[str, object]:
    words = ("measure", "--model", "own_data:net", "--data", data, "--json", "-q", "--intervals", "none", *more)
    done = equisep(*words, folder=place)
    assert done.returncode == 0, done.stderr
    content: dict[str, object] = json.loads(done.stdout)
    return content


def curve(content: dict[str, object], name: str = "fuzziness") -> list[float]:
    return [site[name] for site in content["sites"]]  # type: ignore[attr-defined]


def test_loaders_data_sets_and_arrays_are_the_same_data(place: Path) -> None:
    first = measured(place, "own_data:loader")
    for data in ("own_data:ready", "own_data:dataset", "./own_data.py:arrays", f"{place}/own_data.py:loader,size=45"):
        assert curve(measured(place, data)) == pytest.approx(curve(first), rel=1e-5), data
    asked = {"name": "own_data:loader", "asked": "own_data:loader", "split": "train", "seed": 0, "batch_size": None}
    assert first["settings"]["data"] == {**asked, "flags": {}}  # type: ignore[index]


def test_the_batch_size_is_that_of_arrays_and_data_sets(place: Path) -> None:
    for data in ("own_data:dataset", "own_data:arrays"):
        settings = measured(place, data, "--batch-size", "40")["settings"]
        assert settings["batch_sizes"] == [40, 10]  # type: ignore[index]
        assert settings["data"]["batch_size"] == 40  # type: ignore[index]
        assert settings["data"]["flags"] == {"--batch-size": "40"}  # type: ignore[index]


def test_training_beside_test_data(place: Path) -> None:
    for data in ("own_data:both", "own_data:by_name"):
        content = measured(place, data)
        assert content["counts"] == [20, 20, 20]
        assert None not in curve(content, "fuzziness_test")
        assert None in curve(measured(place, data, "--split", "train"), "fuzziness_test")
    assert measured(place, "own_data:by_name", "--split", "test")["counts"] == [10, 10, 10]


def test_samples_that_code_draws_follow_the_seed(place: Path) -> None:
    runs = [curve(measured(place, "own_data:drawn", "--seed", seed)) for seed in ("0", "0", "1")]
    assert runs[0] == runs[1] != runs[2]


BAD = {
    "no such name": (("own_data:loadr",), "`own_data` has no `loadr`. Did you mean `loader`"),
    "no such file": (("./gone.py:loader",), "There is no file `gone.py`."),
    "no name": (
        ("./own_data.py",),
        "`--data ./own_data.py` is a file of code. Name what makes the data in it: `./own_data.py:loader`",
    ),
    "no data made": (
        ("own_data:nothing",),
        "`own_data:nothing()` should return a loader, a data set, a pair (x, y), or a pair",
    ),
    "raises": (("own_data:broken",), "`own_data:broken()` failed: OSError: no such disk"),
    "no test": (
        ("own_data:loader", "--split", "test"),
        "`--split test` needs test data; `own_data:loader` gives one data set.",
    ),
    "pictures": (
        ("own_data:loader", "--resize", "3"),
        "`--resize` is not for `own_data:loader`, which makes its own samples.",
    ),
    "text": (("own_data:loader", "--length", "3"), "`--length` is not for `own_data:loader`"),
    "draw": (("own_data:loader", "--per-class", "3"), "`--per-class` is not for `own_data:loader`"),
    "folder": (("own_data:loader", "--data-dir", "."), "`--data-dir` is not for `own_data:loader`"),
    "no folder": (("embedded-10x10", "--data-dir", "gone"), "'gone' does not exist"),
    "tokenizer": (
        ("embedded-10x10", "--tokenizer", "any"),
        "`--tokenizer` is for sentences, and `embedded-10x10` holds none.",
    ),
    "split": (("own_data:loader", "--split", "dev"), "`--split` takes both, train or test; found `dev`."),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_one_sentence(case: str, place: Path) -> None:
    words, sentence = BAD[case]
    done = equisep("measure", "--model", "own_data:net", "-q", "--data", *words, folder=place)
    assert done.returncode == 2, done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr and done.stdout == ""
