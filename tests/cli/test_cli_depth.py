"""`equisep depth`: the answer first, a table within 80 columns, one JSON object, and one sentence for what cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from torch import Tensor

from cli.running import equisep
from equisep.advice.depth import sweep
from equisep.advice.depth.choice import Hits
from equisep.training import Ensemble

FEW = ("--depths", "2,3", "--widths", "8", "--seeds", "3", "--epochs", "4", "--samples", "60")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three classes far apart, with test data."""
    chance = np.random.default_rng(0)
    y = np.arange(120) % 3
    x = 5 * np.eye(4)[y] + chance.normal(size=(120, 4))
    path = tmp_path / "mine.npz"
    np.savez(path, x_train=x[:80].astype(np.float32), y_train=y[:80], x_test=x[80:].astype(np.float32), y_test=y[80:])
    return path


def test_the_first_line_is_the_answer_and_the_table_has_room_in_80_columns(data: Path, tmp_path: Path) -> None:
    words = ("--epochs", "40", "--rates", "0.03", "--draw", "depth.png")
    done = equisep("depth", "--data", data, *FEW, *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Depth 2: test accuracy")
    assert ">2" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "depth 3: test" in done.stderr
    assert (tmp_path / "depth.png").stat().st_size > 10_000
    kept = json.loads((tmp_path / "equisep-depth" / "depth.json").read_text(encoding="utf-8"))
    assert kept["depth"] == 2 and len(kept["trials"]) == 2


def test_json_is_one_object_that_speaks_of_options(data: Path, tmp_path: Path) -> None:
    done = equisep("depth", "--data", data, *FEW, "--json", "--quiet", "--min-ncc", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    content = json.loads(done.stdout)
    assert content["depth"] is None and content["recommended"] is None
    assert "Pass `--epochs 8`" in content["answer"] and "`--fit 0.9`" in content["answer"]
    assert content["sentences"][1].startswith("Minimal NCC depth: ")
    assert {"depth", "accuracy_test", "last", "rho", "r", "effective_depth", "ncc"} <= content["trials"][0].keys()
    assert content["settings"]["seeds"] == 3 and content["data"]["samples"] == 60


def test_the_same_command_goes_on(data: Path, tmp_path: Path) -> None:
    first = equisep("depth", "--data", data, *FEW, "--json", "--quiet", folder=tmp_path)
    chunks = {path: path.stat().st_mtime_ns for path in (tmp_path / "equisep-depth" / "networks").glob("*.npz")}
    again = equisep("depth", "--data", data, *FEW, "--json", "--quiet", folder=tmp_path)
    assert again.stdout == first.stdout
    assert len(chunks) == 2
    assert {path: path.stat().st_mtime_ns for path in chunks} == chunks


def test_without_test_data_it_says_that_it_holds_some_out(data: Path, tmp_path: Path) -> None:
    with np.load(data) as arrays:
        kept = dict(arrays)
    np.savez(tmp_path / "one.npz", **{**kept, "x_test": kept["x_test"][:0], "y_test": kept["y_test"][:0]})
    done = equisep("depth", "--data", tmp_path / "one.npz", *FEW, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "There are no test data: a part of the data is held out of training (--held-out)." in done.stderr


def test_an_interrupt_says_that_the_same_command_goes_on(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sweep._hits

    def interrupted(ensemble: Ensemble, x: Tensor, y: Tensor) -> Hits:
        if ensemble.members[0].shape.depth == 3:
            raise KeyboardInterrupt
        return whole(ensemble, x, y)

    monkeypatch.setattr(sweep, "_hits", interrupted)
    done = equisep("depth", "--data", data, *FEW, folder=tmp_path)
    assert done.returncode == 130
    assert "1 of 2 trials are finished and kept in equisep-depth; the same command goes on from there." in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--depths", "4"), "chosen among several; found 4. Pass `--depths` such as 2,4,8."),
        (("--depths", "2,four"), "`--depths` takes numbers parted by commas"),
        (("--family", "resnet"), "`--family` was `resnet`."),
        (("--seeds", "2"), "from 3 on"),
        (("--data", "sst2.tsv"), "holds sentences"),
        (("--data", "nothing.npz"), "There is no file `nothing.npz`"),
        (("--draw", "depth.doc"), "should end in .png, .svg, .pdf"),
        (("--per-class", "5000"), "asked for 5000 samples of class 0"),
    ],
)
def test_bad_input_leaves_in_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    done = equisep("depth", *words, folder=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
