"""Every example runs at small scale; what is absent is named in the skip."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from equisep import Profile
from equisep.errors import DataError, MissingExtraError
from real_data import real_folder

REPO = Path(__file__).parents[1]
SENTENCES = ["a fine film", "dull and long", "very good", "a bad , bad film", "fine fun", "long , very long"]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPO / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_has_a_test() -> None:
    tested = {"cifar_resnet", "huggingface_random", "sentence_encoder", "stop_by_the_law"}
    assert {path.stem for path in (REPO / "examples").glob("*.py")} == tested


def test_hugging_face_random(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    profiles = example("huggingface_random").main([])
    assert len(profiles) == 3 * 4
    assert all(sum(site.name != "input" for site in profile.sites) == 3 for profile in profiles.values())
    assert len(capsys.readouterr().out.splitlines()) == 12


def test_cifar_resnet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = real_folder("cifar10_7k.npz", "resnet_cifar10/resnet20-12fca82f.th")
    words = (
        f"resnet20 --per-class 20 --test-per-class 5 --reduction mean --data-dir {folder} --out {tmp_path / 'p.json'}"
    )
    profile = example("cifar_resnet").main(words.split())
    assert {grain: len(profile.laws[grain].curve) for grain in ("layers", "blocks")} == {"layers": 20, "blocks": 10}
    said = capsys.readouterr().out
    assert "% of 50 test images wrong in the reading `eval`; published: 8.27 % of 10,000" in said
    assert (
        "blocks: 10 sites, rho " in said
        and "Reported are the blocks: `BasicBlock` repeats 9 times in sequence." in said
    )
    assert Profile.load(tmp_path / "p.json").law == profile.law


def test_stop_by_the_law(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = example("stop_by_the_law").main(["--epochs", "2", "--seeds", "2", "--window", "1", "--out", str(tmp_path)])
    assert len(found) == 2 and all(0.5 < ends.accuracy_last <= ends.best for ends in found)
    said = capsys.readouterr().out
    assert "seed 0: " in said and "seed 1: " in said
    for ends in found:
        assert (
            (ends.stopped is None) == (ends.accuracy_stopped is None) == (f"seed {ends.seed}: did not settle" in said)
        )
    assert (tmp_path / "seed-1.jsonl").is_file() and (tmp_path / "seed-1.png").is_file()


def test_cifar_resnet_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EQUISEP_DATA", raising=False)
    with pytest.raises(DataError, match="Give it as --data-dir, or name it in EQUISEP_DATA"):
        example("cifar_resnet").main(["resnet20"])


def small_encoder(folder: Path) -> None:
    """A random BERT of the library with a tokenizer of whole words, as `save_pretrained` leaves them."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", *sorted({word for text in SENTENCES for word in text.split()})]
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    plain.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **special).save_pretrained(folder)
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
    }
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)


def test_sentence_encoder_of_any_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    small_encoder(tmp_path / "encoder")
    lines = [f"{split}\t{i % 2}\t{text} {i}" for split in ("train", "dev") for i, text in enumerate(SENTENCES * 4)]
    (tmp_path / "mine.tsv").write_text("\n".join(["split\tlabel\tsentence", *lines]), encoding="utf-8")
    words = f"--model {tmp_path / 'encoder'} --data {tmp_path / 'mine.tsv'} --per-class 8 --epochs 2 --batch-size 4"
    profiles = example("sentence_encoder").main([*words.split(), "--out", str(tmp_path)])
    assert list(profiles) == [(state, how) for state in ("frozen", "fine-tuned") for how in ("first", "mean")]
    names = [site.name for site in profiles["frozen", "mean"].sites if site.name != "input"]
    assert names == ["bert.embeddings", *(f"bert.encoder.layer.{i}" for i in range(3))]
    assert profiles["frozen", "mean"].curve() != profiles["fine-tuned", "mean"].curve()
    said = capsys.readouterr().out
    assert "epoch 2 of 2: loss " in said and "fine-tuned, first: " in said
    assert (tmp_path / "encoder-fine-tuned-mean.json").is_file()


def test_sentence_encoder_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    folder = real_folder("sst2.tsv")
    pytest.importorskip("transformers", reason="transformers is not installed")
    script = example("sentence_encoder")
    if importlib.util.find_spec(script.PACKAGE) is None:
        pytest.skip(f"{script.PACKAGE} is not installed (the extra `text`)")
    profiles = script.main(f"--data-dir {folder} --per-class 10 --epochs 1".split())
    said = capsys.readouterr().out
    assert said.startswith("all-MiniLM-L6-v2 stands in for the case-sensitive BERT-base of the paper")
    for (_, how), profile in profiles.items():
        widths = [site.dim for site in profile.sites if site.name != "input"]
        assert widths == [384] * (6 if how == "first" else 7)
        assert profile.counts == (10, 10)


def test_sentence_encoder_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    script = example("sentence_encoder")
    monkeypatch.setattr(script, "PACKAGE", "no_such_package_anywhere")
    with pytest.raises(MissingExtraError, match=r'^The sentence encoder needs the package .*"equisep\[text\]"$'):
        script.main([])
