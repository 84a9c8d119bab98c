"""`equisep cut`: the answer first, a file that torch reads again, one sentence for what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from advice.networks import bits, vectors
from cli.running import equisep

CODE = """
import numpy as np
import torch
from torch import nn
from advice.networks import exclusive_or


class Valued(nn.Module):
    def forward(self, x):
        return x if float(x.sum()) > -1e9 else -x


def idle(stop=False):
    parts = [part for _ in range(5) for part in (nn.Linear(6, 6), nn.ReLU())]
    for part in parts[::2]:
        part.weight.data, part.bias.data = torch.eye(6), torch.zeros(6)
    return nn.Sequential(*parts, *([Valued()] if stop else []), nn.Linear(6, 3))


def stopped():
    return idle(stop=True)


def some():
    data = np.load("idle.npz")
    return data["x_train"], data["y_train"]


def others():
    data = np.load("idle.npz")
    return data["x_test"], data["y_test"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cut")
    (place / "cut_nets.py").write_text(CODE)
    x, y = vectors(1500, seed=0)
    x = (x.abs() + 4 * torch.nn.functional.one_hot(y, 6)).numpy()
    np.savez(place / "idle.npz", x_train=x[:300], y_train=y[:300], x_test=x[300:], y_test=y[300:])
    (a, b), (c, d) = bits(200, seed=0), bits(400, seed=1)
    np.savez(place / "bits.npz", x_train=a, y_train=b, x_test=c, y_test=d)
    return place


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equisep.advice.cut.shorten.MOST_ROUNDS", 2)


def test_the_answer_comes_first_and_the_shorter_network_is_saved(folder: Path) -> None:
    done = equisep("cut", "--model", "./cut_nets.py:idle", "--data", "idle.npz", "--out", "short.pt2", folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Cut after `1` (layer 1 of 5): with nearest class means it scores")
    assert "(whole network)" in done.stdout and "shorter network: short.pt2" in done.stderr
    short = torch.export.load(folder / "short.pt2").module()
    data = np.load(folder / "idle.npz")
    right = short(torch.from_numpy(data["x_test"])).argmax(dim=1).numpy() == data["y_test"]
    assert right.mean() > 0.9


def test_no_redundancy_saves_nothing_and_a_layer_asked_for_does(folder: Path) -> None:
    words = ("cut", "--model", "./cut_nets.py:exclusive_or", "--data", "bits.npz", "--json")
    done = equisep(*words, "--out", "none.pt2", folder=folder)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["verdict"] == "no redundancy" and record["answer"].startswith("No redundancy: ")
    assert "Nothing was saved" in done.stderr and not (folder / "none.pt2").exists()
    done = equisep(*words, "--after", "3", "--out", "two.pt2", "--quiet", folder=folder)
    record = json.loads(done.stdout)
    assert not done.stderr and (folder / "two.pt2").exists()
    assert [option["site"] for option in record["options"]] == ["3"]
    assert record["options"][0]["loss"]["loss"] > 0.3 and "That is more than 1 point." in record["answer"]


def test_test_data_from_elsewhere(folder: Path) -> None:
    words = ("cut", "--model", "./cut_nets.py:idle", "--data", "./cut_nets.py:some", "--after", "3")
    done = equisep(*words, folder=folder)
    assert done.returncode == 2
    assert (
        "`cut` compares accuracy on test data, and `--data ./cut_nets.py:some` holds none. Name them: `--test`."
        in done.stderr
    )
    done = equisep(*words, "--test", "./cut_nets.py:others", "--json", folder=folder)
    assert done.returncode == 0 and json.loads(done.stdout)["options"][0]["loss"]["n"] == 1200


def test_a_model_that_cannot_be_saved_still_gets_its_answer(folder: Path) -> None:
    done = equisep("cut", "--model", "./cut_nets.py:stopped", "--data", "idle.npz", "--out", "x.pt2", folder=folder)
    assert done.returncode == 2
    assert done.stdout.startswith("Cut after `1`")
    assert "module `10` could not be made a graph by torch.export" in done.stderr


def test_bad_options(folder: Path) -> None:
    words = ("cut", "--model", "./cut_nets.py:idle", "--data", "idle.npz")
    for more, sentence in (
        (("--out", "short.pt"), "`--out short.pt` should end in .pt2"),
        (("--head", "tail"), "No head `tail`"),
        (("--after", "11"), "No module `11` in `Sequential`"),
        (("--within", "-1"), "`--within` is points of test accuracy"),
    ):
        done = equisep(*words, *more, folder=folder)
        assert done.returncode == 2 and sentence in done.stderr, done.stderr
