"""Labelled sentences from a table, and tokenized batches of them, without any optional package."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from equisep.data import TokenBatches, load_sentences, load_tokenizer
from equisep.errors import DataError, InputError, LabelError, MissingExtraError
from real_data import real_folder

TABLE = "split\tlabel\tsentence\n" + "".join(
    f"{split}\t{i % 2}\t{split} sentence {'very ' * (i % 3)}{i}\n"
    for split, n in (("train", 10), ("dev", 4))
    for i in range(n)
)


class Letters:
    """A tokenizer of Hugging Face's shape: one token a letter, 0 for padding, 1 in front."""

    pad_token_id: int | None = 0
    model_max_length = 10**30

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, texts: Sequence[str], **asked: Any) -> dict[str, torch.Tensor]:
        self.asked.append(asked)
        rows = [[1, *map(ord, text)][: asked["max_length"] if asked["truncation"] else None] for text in texts]
        width = asked["max_length"] if asked["padding"] == "max_length" else max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sst2.tsv").write_text(TABLE, encoding="utf-8")
    return tmp_path


def test_a_table_by_path_by_folder_and_through_the_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EQUISEP_DATA", raising=False)
    by_path = load_sentences(folder / "sst2.tsv")
    by_name = load_sentences("sst2", split="dev", data_dir=folder)
    assert (len(by_path), by_path.classes, by_path.name, by_path.texts[1]) == (10, 2, "sst2", "train sentence very 1")
    assert by_path.labels.tolist() == [0, 1] * 5 and by_path.labels.dtype == np.int64
    assert by_name.texts[0] == "dev sentence 0"
    monkeypatch.setenv("EQUISEP_DATA", str(folder))
    assert load_sentences("sst2").texts == by_path.texts
    assert repr(by_name) == "Sentences('sst2': 4 sentences, 2 classes)"


def test_quotes_tabs_and_windows_line_ends_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "odd.tsv").write_bytes(b'split\tlabel\tsentence\r\ntrain\t0\ta "good" one\r\ntrain\t1\twith\ta tab\r\n')
    assert load_sentences(tmp_path / "odd.tsv").texts == ('a "good" one', "with\ta tab")


def test_draws_are_balanced_nested_and_seeded(folder: Path) -> None:
    whole = load_sentences("sst2", data_dir=folder)
    small, large, other = whole.draw(2, seed=3), whole.draw(4, seed=3), whole.draw(4, seed=4)
    assert np.bincount(large.labels).tolist() == [4, 4]
    assert set(small.texts) < set(large.texts)
    assert large.texts != other.texts
    lookup = dict(zip(whole.texts, whole.labels, strict=True))
    assert [lookup[text] for text in large.texts] == large.labels.tolist()
    with pytest.raises(InputError, match="asked for 6 samples of class 0; there are 5"):
        whole.draw(6)


def test_token_batches_hold_every_sentence_once_in_a_fixed_order(folder: Path) -> None:
    whole = load_sentences("sst2", data_dir=folder)
    batches = TokenBatches(whole.texts, whole.labels, Letters(), batch_size=4)
    first, second = list(batches), list(batches)
    assert len(batches) == len(first) == 3
    assert repr(batches) == "TokenBatches(10 sentences in 3 batches, Letters)"
    read = {}
    for (inputs, y), (again, _) in zip(first, second, strict=True):
        assert torch.equal(inputs["input_ids"], again["input_ids"])
        assert inputs["attention_mask"].sum(dim=1).max() == inputs["input_ids"].shape[1]  # no wider than the longest
        for row, mask, label in zip(inputs["input_ids"], inputs["attention_mask"], y, strict=True):
            read["".join(map(chr, row[mask.bool()][1:]))] = int(label)
    assert read == dict(zip(whole.texts, whole.labels.tolist(), strict=True))


def test_lengths_cut_and_pad(folder: Path) -> None:
    texts, labels = ["a", "bcdefgh"], [0, 1]
    widths = {}
    for padding, length in (("longest", None), ("longest", 4), ("max_length", 4), ("max_length", 20)):
        batch, _ = next(iter(TokenBatches(texts, labels, Letters(), length=length, padding=padding)))
        widths[padding, length] = batch["input_ids"].shape[1]
    assert widths == {
        ("longest", None): 8,
        ("longest", 4): 4,
        ("max_length", 4): 4,
        ("max_length", 20): 20,
    }


@pytest.mark.parametrize(("limit", "cut"), [(512, True), (10**30, False)])
def test_the_tokenizers_own_limit_is_kept(limit: int, cut: bool) -> None:
    tokenizer = Letters()
    tokenizer.model_max_length = limit
    batches = TokenBatches(["a"], [0], tokenizer)
    assert batches.truncation is cut


def test_a_tokenizer_without_a_pad_token() -> None:
    tokenizer = Letters()
    tokenizer.pad_token_id = None
    sentence = r"^The tokenizer `Letters` has no pad token, .*\. Set one, such as `tokenizer.pad_token = tokenizer.eos_token`\.$"
    with pytest.raises(InputError, match=sentence):
        TokenBatches(["a", "b"], [0, 1], tokenizer)


def test_bad_batches() -> None:
    with pytest.raises(InputError, match="got 2 sentences and 1 labels"):
        TokenBatches(["a", "b"], [0], Letters())
    with pytest.raises(
        InputError, match=r"`padding` is longest, or max_length with a `length`; found 'max_length' and length=N"
    ):
        TokenBatches(["a"], [0], Letters(), padding="max_length")
    with pytest.raises(LabelError):
        TokenBatches(["a", "b"], [0.5, 1.0], Letters())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "label\tsentence\n0\tgood\n",
            r"should begin with the header split, label, sentence, separated by tabs; found 'label",
        ),
        (
            "split\tlabel\tsentence\ntrain\tpositive\tgood\n",
            r"^Line 2 of .* should be a split, a label from 0 on and a sent",
        ),
        ("split\tlabel\tsentence\ntrain\t1\n", r"^Line 2 of .*; found 'train\\t1'\.$"),
        ("split\tlabel\tsentence\ntest\t1\tx\n", r"holds no split `train`; it has test\."),
        ("split\tlabel\tsentence\n", r"holds no split `train`; it has none\."),
    ],
)
def test_tables_that_are_none(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=sentence):
        load_sentences(tmp_path / "t.tsv")


def test_tables_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EQUISEP_DATA", raising=False)
    with pytest.raises(DataError, match=r"^There is no table `.*gone.tsv`\."):
        load_sentences(tmp_path / "gone.tsv")
    with pytest.raises(
        DataError, match=r"^`sst2` is the table `sst2.tsv` .*looked for in no folder\. Put it into a folder"
    ):
        load_sentences("sst2")
    (tmp_path / "bytes.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"cannot be read as a table of sentences"):
        load_sentences(tmp_path / "bytes.tsv")


def test_a_tokenizer_without_transformers_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r'needs the package `transformers`.*"equisep\[transformers\]"'):
        load_tokenizer("anything")


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    with pytest.raises(
        DataError, match=r"^No tokenizer could be read from `.*` \(.*\)\. Give a folder that holds tokenizer"
    ):
        load_tokenizer(str(tmp_path))


def test_the_whole_of_sst2() -> None:
    """Sizes of the public set: 67,349 training, 872 dev and 1,821 test sentences."""
    folder = real_folder("sst2.tsv")
    parts = {split: load_sentences("sst2", split=split, data_dir=folder) for split in ("train", "dev", "test")}
    assert {split: len(part) for split, part in parts.items()} == {"train": 67_349, "dev": 872, "test": 1_821}
    assert np.bincount(parts["train"].labels).tolist() == [29_780, 37_569]
