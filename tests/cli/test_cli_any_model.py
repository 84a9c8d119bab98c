"""`equisep measure` and `sites` on models of others: reductions, calls, forward passes, sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import equisep as library
from cli.running import equisep, equisep_process
from equisep.data import load_data, prepare_split
from equisep.models import build

NETWORK = """
import torch
from torch import nn

class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.relu, self.head = nn.Linear(100, 32), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.relu(self.two(self.relu(self.one(x.flatten(1))))))

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(40, 8)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3))
        self.head = nn.Linear(8, 2)

    def forward(self, input_ids, attention_mask=None):
        h = self.words(input_ids)
        for layer in self.layers:
            h = layer(h)
        return self.head(h[:, 0])
"""
MEASURE = ("measure", "--data", "embedded-10x10", "--per-class", "20", "--split", "train", "--json")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("others")
    (folder / "nets.py").write_text(NETWORK)
    lines = [
        f"{split}\t{i % 2}\t{'good fine' if i % 2 else 'bad dull'} film {i}"
        for split in ("train", "dev")
        for i in range(20)
    ]
    (folder / "reviews.tsv").write_text("split\tlabel\tsentence\n" + "\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def tokenizer(place: Path) -> Path:
    """A tokenizer of whole words, in the folder that Hugging Face reads."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    words = ["[PAD]", "[UNK]", "good", "fine", "bad", "dull", "film"]
    vocabulary = {word: number for number, word in enumerate(words)}
    folder = place / "words"
    folder.mkdir()
    content = {
        "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_reduction_by_name_is_the_library_s(place: Path) -> None:
    words = (*MEASURE, "--model", "resnet20,colors=1", "--sites", "blocks", "--reduction", "mean", "--channels", "gray")
    content = json.loads(equisep(*words, folder=place).stdout)
    assert content["settings"]["reduction"] == "mean"
    assert [site["dim"] for site in content["sites"][1:]] == [16] * 3 + [32] * 3 + [64] * 3
    network = build("resnet20", seed=0, colors=1)
    ours = library.measure(
        network, prepare_split(load_data("embedded-10x10"), per_class=20), sites="blocks", reduction="mean"
    )
    assert content["sites"][-1]["fuzziness"] == pytest.approx(ours.sites[-1].fuzziness, rel=1e-3)


@pytest.mark.parametrize(("calls", "names"), [("each", ["input", "relu", "relu:2"]), ("last", ["input", "relu"])])
def test_calls_by_name(place: Path, calls: str, names: list[str]) -> None:
    words = (*MEASURE, "--model", "nets:Twice", "--sites", "relu", "--calls", calls)
    content = json.loads(equisep(*words, folder=place).stdout)
    assert [site["name"] for site in content["sites"]] == names


def test_auto_reports_both_grains(place: Path) -> None:
    words = (*MEASURE, "--model", "resnet20,colors=1", "--channels", "gray")
    content = json.loads(equisep(*words, folder=place).stdout)
    assert set(content["grains"]["sites"]) == {"layers", "blocks"}
    assert content["settings"]["grain"] == content["grains"]["chosen"] == "blocks"
    assert content["grains"]["reason"]
    assert content["laws"]["layers"]["r"] is not None and content["laws"]["blocks"]["r"] is not None
    assert any("Layers and blocks were both measured" in note["text"] for note in content["notes"])


def test_sites_of_a_forward_pass_come_in_call_order_with_their_shapes(place: Path) -> None:
    content = json.loads(equisep("sites", "--model", "nets:Twice", "--input", "1x10x10", "--json", folder=place).stdout)
    rows = [(row["name"], row["shape"], row["site"]) for row in content["modules"]]
    assert rows == [
        ("one", [32], False), ("relu", [32], True), ("two", [16], False), ("relu:2", [16], True), ("head", [10], False),
    ]  # fmt: skip
    text = equisep("sites", "--model", "nets:Twice", "--input", "1x10x10", folder=place).stdout
    assert "5 calls of one forward pass" in text


def test_sites_of_tokens(place: Path) -> None:
    words = ("sites", "--model", "nets:Reader", "--input", "6tokens", "--json")
    content = json.loads(equisep(*words, folder=place).stdout)
    assert ("layers.2", [6, 8]) in [(row["name"], row["shape"]) for row in content["modules"]]


def test_sentences_of_a_table(place: Path, tokenizer: Path) -> None:
    words = (
        "measure", "--model", "nets:Reader", "--data", "reviews.tsv", "--tokenizer", tokenizer, "--reduction", "mean",
        "--sites", "words", "--sites", "layers.*", "--json",
    )  # fmt: skip
    done = equisep(*words, folder=place)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["counts"] == [10, 10] and content["counts_test"] == [10, 10]
    assert content["settings"]["data"]["name"] == "reviews.tsv"
    assert [site["name"] for site in content["sites"]] == ["words", "layers.0", "layers.1", "layers.2"]


WRONG = {
    "a reduction": (("--model", "nets:Twice", "--reduction", "meen"), "No reduction `meen`. Did you mean `mean`?"),
    "components": (("--model", "nets:Twice", "--reduction", "pca=0"), "`pca=m` keeps m ≥ 1 principal components"),
    "calls": (("--model", "nets:Twice", "--calls", "first"), "No calls `first`."),
    "positions of vectors": (
        ("--model", "nets:Twice", "--sites", "relu", "--reduction", "positions"), "`positions` needs features with positions",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_words_get_one_sentence(place: Path, name: str) -> None:
    words, sentence = WRONG[name]
    done = equisep(*MEASURE, *words, folder=place)
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("model", ["resnet20,classes=x", "fnn,classes=x", "vgg13,colors=none"])
def test_options_that_are_no_numbers_get_one_sentence(place: Path, model: str) -> None:
    done = equisep(*MEASURE, "--model", model, folder=place)
    assert done.returncode == 2
    assert "of at least 1; found" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_user_s_code_prints_is_no_result(place: Path) -> None:
    (place / "loud.py").write_text(
        "import nets\n\ndef model():\n    print('hello')\n    return nets.Twice()\n", encoding="utf-8"
    )
    runs = {equisep_process: (*MEASURE, "--model", "loud:model"), equisep: ("sites", "--model", "loud:model", "--json")}
    for run, words in runs.items():
        done = run(*words, folder=place)
        assert json.loads(done.stdout)
        assert "hello" in done.stderr


def test_sentences_without_a_tokenizer_get_one_sentence(place: Path) -> None:
    done = equisep("measure", "--model", "nets:Reader", "--data", "reviews.tsv", folder=place)
    assert done.returncode == 2
    assert "Sentences need a tokenizer, and `nets:Reader` brings none. Pass `--tokenizer`" in done.stderr


def test_flags_of_pictures_are_refused_for_sentences(place: Path, tokenizer: Path) -> None:
    words = ("measure", "--model", "nets:Reader", "--data", "reviews.tsv", "--tokenizer", tokenizer, "--resize", "8")
    done = equisep(*words, folder=place)
    assert done.returncode == 2
    assert "`--resize` prepares pictures, and `reviews.tsv` holds sentences. Leave it out." in done.stderr


@pytest.mark.parametrize("shape", ["3x", "tokens", "0x3", "2x3tokens"])
def test_a_wrong_input_shape_gets_one_sentence(place: Path, shape: str) -> None:
    done = equisep("sites", "--model", "nets:Twice", "--input", shape, folder=place)
    assert done.returncode == 2
    assert f"`--input` takes the shape of one sample, such as 3x32x32, or 16tokens; found `{shape}`." in done.stderr


def test_an_input_that_does_not_fit_gets_one_sentence(place: Path) -> None:
    done = equisep("sites", "--model", "nets:Twice", "--input", "3x32x32", folder=place)
    assert done.returncode == 2
    assert "`Twice` could not run a sample of `--input` (inputs of shape (2, 3, 32, 32)" in done.stderr
