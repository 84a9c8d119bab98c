"""`equisep measure --shard` and `equisep merge`: both rounds by files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from equisep.cli.app import app

NET = """
from torch import nn

def Net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "merge_net.py").write_text(NET)
    draw = np.random.default_rng(0)
    y, test = np.arange(90) % 3, np.arange(30) % 3
    centers = draw.normal(size=(3, 6))
    arrays = {"x_train": centers[y] + draw.normal(size=(90, 6)), "y_train": y}
    np.savez(tmp_path / "mine.npz", **arrays, x_test=centers[test] + draw.normal(size=(30, 6)), y_test=test)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def measure(*words: str) -> Result:
    return run("measure", "--model", "./merge_net.py:Net", "--data", "mine.npz", "--batch-size", "20", *words)


def test_two_rounds_of_shards_give_the_profile_of_one_command(folder: Path) -> None:
    for number in (1, 2):
        done = measure("--shard", f"{number}/2", "--out", f"a{number}.npz")
        assert done.exit_code == 0 and f"shard {number}/2, first round: a{number}.npz" in done.stdout
    assert "means of 2 shards" in run("merge", "a2.npz", "a1.npz", "--out", "means.npz").stdout
    for number in (1, 2):
        done = measure("--shard", f"{number}/2", "--means", "means.npz", "--out", f"b{number}.npz")
        assert done.exit_code == 0 and "second round" in done.stdout
    done = run("merge", "b1.npz", "b2.npz", "--out", "merged.json", "--quiet")
    assert done.exit_code == 0 and "D" in done.stdout
    assert measure("--out", "plain.json", "--quiet").exit_code == 0
    merged, plain = (json.loads((folder / f"{name}.json").read_text()) for name in ("merged", "plain"))
    assert merged["provenance"].pop("shards") == 2
    assert merged.keys() == plain.keys()
    for name in ("settings", "notes", "counts", "counts_test", "provenance", "samples", "model"):
        assert merged[name] == plain[name], name
    assert [site["fuzziness"] for site in merged["sites"]] == pytest.approx(
        [site["fuzziness"] for site in plain["sites"]], rel=1e-12
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--shard", "3/2", "--out", "a.npz"), "with I from 1 to N"),
        (("--shard", "1/2"), "found no `--out`"),
        (("--shard", "1/2", "--out", "a.json"), "should end in .npz"),
        (("--shard", "1/2", "--out", "a.npz", "--json"), "takes `--out part.npz` alone"),
        (("--means", "means.npz"), "second round of a shard"),
        (("--shard", "1/2", "--means", "none.npz", "--out", "b.npz"), "There is no file"),
        (("--shard", "1/2", "--out", "a.npz", "--intervals", "bootstrap"), "needs all features in one process"),
    ],
)
def test_what_makes_no_shard_is_refused_in_a_sentence(folder: Path, words: tuple[str, ...], sentence: str) -> None:
    done = measure(*words)
    assert done.exit_code == 2 and sentence in " ".join(done.stderr.split())


def test_merge_refuses_in_a_sentence(folder: Path) -> None:
    assert measure("--shard", "1/1", "--out", "a.npz").exit_code == 0
    for words, sentence in (
        (("a.npz", "--out", "p.json"), "make means, which `--out` names as a .npz file"),
        (("a.npz", "--out", "a.npz"), "is one of the parts"),
        (("a.npz", "a.npz", "--out", "m.npz"), "there twice"),
        (("mine.npz", "--out", "m.npz"), "no part of a measurement"),
    ):
        done = run("merge", *words)
        assert done.exit_code == 2 and sentence in " ".join(done.stderr.split()), done.stderr
