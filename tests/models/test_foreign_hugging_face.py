"""Hugging Face BERT, GPT-2 and ViT with small random weights: loaded from folders, tapped, measured, left as they were."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import equisep
from equisep.data import TokenBatches, load_tokenizer
from equisep.errors import DataError, InputError, MissingExtraError, ModelError
from equisep.models import load_model, loaded_model

CLASSES, SAMPLES, TOKENS, WORDS, WIDTH = 3, 48, 9, 40, 16
BLOCK = {"bert": "BertLayer", "gpt2": "GPT2Block", "vit": "ViTLayer"}


def library() -> Any:
    return pytest.importorskip("transformers", reason="transformers is not installed")


def config(name: str, **options: Any) -> Any:
    transformers = library()
    sizes = {"hidden_size": WIDTH, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2}
    if name == "bert":
        return transformers.BertConfig(vocab_size=WORDS, max_position_embeddings=TOKENS, **sizes, **options)
    if name == "gpt2":
        ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}
        small = {"n_embd": WIDTH, "n_layer": 3, "n_head": 2, "n_positions": TOKENS}
        return transformers.GPT2Config(vocab_size=WORDS, **small, **ends, **options)
    return transformers.ViTConfig(image_size=8, patch_size=4, **sizes, **options)


def classifier(name: str, seed: int = 0) -> nn.Module:
    transformers = library()
    torch.manual_seed(seed)
    kind = {
        "bert": "BertForSequenceClassification",
        "gpt2": "GPT2ForSequenceClassification",
        "vit": "ViTForImageClassification",
    }[name]
    model: nn.Module = getattr(transformers, kind)(config(name, num_labels=CLASSES))
    return model


def columns(name: str) -> dict[str, Tensor]:
    """One batch as the model takes it; sentences of unequal length, padded with 0."""
    drawn = torch.Generator().manual_seed(1)
    labels = torch.arange(SAMPLES) % CLASSES
    if name == "vit":
        pixels = torch.randn(SAMPLES, 3, 8, 8, generator=drawn) + labels[:, None, None, None]
        return {"pixel_values": pixels, "labels": labels}
    mask = (torch.arange(TOKENS) < torch.randint(2, TOKENS + 1, (SAMPLES, 1), generator=drawn)).long()
    words = torch.randint(2, 20, (SAMPLES, TOKENS), generator=drawn) + 6 * labels[:, None]
    return {"input_ids": words * mask, "attention_mask": mask, "labels": labels}


def batches(name: str, size: int = 16) -> list[dict[str, Tensor]]:
    whole = columns(name)
    return [{key: value[i : i + size] for key, value in whole.items()} for i in range(0, SAMPLES, size)]


def blocks(model: nn.Module, name: str) -> list[str]:
    """The repeated modules by their class, whatever this version of the library calls them."""
    return [key for key, module in model.named_modules() if type(module).__name__ == BLOCK[name]]


def hidden_states(model: nn.Module, name: str) -> list[Tensor]:
    """What the library itself says its blocks gave; the last one before the final normalization is not among them."""
    inputs = {key: value for key, value in columns(name).items() if key != "labels"}
    with torch.no_grad():
        return list(model.eval()(**inputs, output_hidden_states=True).hidden_states)


def reduced(h: Tensor, reduction: str, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and labels by hand, sample by sample."""
    labels = torch.arange(SAMPLES) % CLASSES
    kept = [sample[m.bool()] for sample, m in zip(h, mask, strict=True)]
    if reduction == "tokens":
        return torch.cat(kept), torch.cat([label.expand(len(k)) for label, k in zip(labels, kept, strict=True)])
    pick = {"first": lambda k: k[0], "last": lambda k: k[-1], "mean": lambda k: k.mean(dim=0)}[reduction]
    return torch.stack([pick(k) for k in kept]), labels


@pytest.mark.parametrize("reduction", ["first", "last", "mean", "tokens"])
@pytest.mark.parametrize("name", BLOCK)
def test_blocks_are_read_as_the_library_gives_them_and_padding_never_counts(name: str, reduction: str) -> None:
    model = classifier(name)
    expected = hidden_states(model, name)
    profile = equisep.measure(model, batches(name), sites="blocks", reduction=reduction, intervals="none")
    names = blocks(model, name)
    assert [site.name for site in profile.sites if site.name != "input"] == names
    mask = columns(name).get("attention_mask", torch.ones(SAMPLES, expected[0].shape[1], dtype=torch.int64))
    readings = {site.name: site for site in profile.sites}
    for block, h in list(zip(names, expected[1:], strict=True))[:-1]:
        rows, labels = reduced(h, reduction, mask)
        assert readings[block].dim == WIDTH
        assert readings[block].fuzziness == pytest.approx(equisep.fuzziness(rows, labels), rel=1e-4)


@pytest.mark.parametrize("name", BLOCK)
def test_a_tap_reads_blocks_in_the_midst_of_the_forward_pass(name: str) -> None:
    model = classifier(name)
    expected = hidden_states(model, name)
    seen: dict[str, Tensor] = {}
    inputs = {key: value for key, value in columns(name).items() if key != "labels"}
    with equisep.tap(model, "blocks", consume=lambda site, rows: seen.update({site: rows.clone()}), reduction="mean"):
        model(**inputs)
    mask = columns(name).get("attention_mask", torch.ones(SAMPLES, expected[0].shape[1], dtype=torch.int64))
    names = blocks(model, name)
    assert list(seen)[-3:] == names
    for block, h in list(zip(names, expected[1:], strict=True))[:-1]:
        torch.testing.assert_close(seen[block], reduced(h, "mean", mask)[0])


@pytest.mark.parametrize("name", BLOCK)
def test_layers_are_the_activations(name: str) -> None:
    model = classifier(name)
    profile = equisep.measure(model, batches(name), sites="layers", reduction="mean", intervals="none")
    kinds = {site.name: type(model.get_submodule(site.name)).__name__ for site in profile.sites if site.name != "input"}
    inside = [site for site in kinds if any(site.startswith(f"{block}.") for block in blocks(model, name))]
    assert len(inside) == 3
    assert all(any(word in kind.lower() for word in ("gelu", "activation", "tanh")) for kind in kinds.values()), kinds


@pytest.mark.parametrize("name", BLOCK)
def test_nothing_is_left_behind(name: str) -> None:
    model = classifier(name).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    flags = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    equisep.measure(model, batches(name), sites="blocks", reduction="mean")
    assert torch.equal(torch.get_rng_state(), state)
    assert [module.training for module in model.modules()] == flags
    assert all(not (m._forward_hooks or m._forward_pre_hooks) for m in model.modules())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("name", BLOCK)
def test_labels_inside_the_batch_or_beside_it_are_one(name: str) -> None:
    inside = equisep.measure(classifier(name), batches(name), sites="blocks", reduction="mean", intervals="none")
    pairs = [({k: v for k, v in batch.items() if k != "labels"}, batch["labels"]) for batch in batches(name)]
    beside = equisep.measure(classifier(name), pairs, sites="blocks", reduction="mean", intervals="none")
    assert inside.curve() == beside.curve()
    assert inside.classes == beside.classes == CLASSES
    assert inside.accuracy_train == beside.accuracy_train is not None


@pytest.mark.parametrize("name", BLOCK)
def test_a_folder_is_loaded_as_its_configuration_says(name: str, tmp_path: Path) -> None:
    model = classifier(name)
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    loaded = load_model(f"hf:{tmp_path}")
    assert type(loaded) is type(model)
    for key, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key


def test_an_encoder_is_loaded_bare_or_with_a_new_head(tmp_path: Path) -> None:
    encoder = library().BertModel(config("bert"))
    encoder.save_pretrained(tmp_path)
    assert type(load_model(f"hf:{tmp_path}")).__name__ == "BertModel"
    torch.manual_seed(0)
    headed = load_model(f"hf:{tmp_path},num_labels=5")
    assert type(headed).__name__ == "BertForSequenceClassification"
    assert headed.state_dict()["classifier.weight"].shape == (5, WIDTH)
    key = "encoder.layer.1.output.dense.weight"
    assert torch.equal(headed.state_dict()[f"bert.{key}"], encoder.state_dict()[key])


def test_a_head_that_was_never_trained_is_noted(tmp_path: Path) -> None:
    classifier("bert").save_pretrained(tmp_path)  # type: ignore[operator]
    loaded = loaded_model(f"hf:{tmp_path},num_labels=5")
    assert [note.code for note in loaded.notes] == ["random-head"]
    assert loaded.notes[0].text == (
        f"The head of `hf:{tmp_path}` is new and random (`classifier.bias`, `classifier.weight`): accuracy, NC3 and NC4 say "
        "nothing of the published model. Train it, and load it as a checkpoint."
    )
    torch.save(loaded.model.state_dict(), tmp_path / "trained.pt")
    for spec, options in (
        (f"hf:{tmp_path}", {}),
        (f"hf:{tmp_path},num_labels={CLASSES}", {}),
        (f"hf:{tmp_path},num_labels=5,pretrained=false", {}),
        (f"hf:{tmp_path},num_labels=5,pretrained=true", {"checkpoint": tmp_path / "trained.pt"}),
    ):
        assert loaded_model(spec, **options).notes == ()  # type: ignore[arg-type]


def test_a_name_without_a_network_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library()
    monkeypatch.setattr("equisep.hub.hub_answers", lambda: False)
    for load in (load_model, lambda spec: load_tokenizer(spec.removeprefix("hf:"))):
        with pytest.raises(
            (ModelError, DataError), match=r"nobody/nothing` .* a name on the hub while there is a network"
        ):
            load("hf:nobody/nothing")
    assert "Retry" not in capfd.readouterr().err


def test_random_weights_and_checkpoints(tmp_path: Path) -> None:
    model = classifier("bert")
    model.save_pretrained(tmp_path)  # type: ignore[operator]
    torch.manual_seed(3)
    fresh = load_model(f"hf:{tmp_path},pretrained=false")
    assert not torch.equal(fresh.state_dict()["classifier.weight"], model.state_dict()["classifier.weight"])
    torch.save(fresh.state_dict(), tmp_path / "mine.pt")
    loaded = load_model(f"hf:{tmp_path}", checkpoint=tmp_path / "mine.pt")
    assert torch.equal(loaded.state_dict()["classifier.weight"], fresh.state_dict()["classifier.weight"])


def test_weights_that_do_not_fit_are_never_filled_up_in_silence(tmp_path: Path) -> None:
    library().BertModel(config("bert")).save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    settings["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"do not fit `BertForSeq.*`: 2 keys are missing \(`classifier.bias`, `classifier.we"
    ):
        load_model(f"hf:{tmp_path}")
    settings["intermediate_size"] = 32
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"9 of another shape \(`bert.encoder.layer.0.intermediate.dense.bias`, .*, …\)\.$"
    ):
        load_model(f"hf:{tmp_path},num_labels=2")


def test_code_that_comes_with_a_model_is_never_run(tmp_path: Path) -> None:
    library()
    (tmp_path / "own.py").write_text("raise SystemExit('this ran')", encoding="utf-8")
    auto = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    settings = {"model_type": "own", "auto_map": auto, "architectures": ["OwnModel"]}
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"^`hf:.*` brings code of its own, which is never run here\. Make the model in a fun"
    ):
        load_model(f"hf:{tmp_path}")


def test_pickled_weights_are_read_as_plain_tensors_only(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Runs:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return Path.touch, (marker,)

    config("bert").save_pretrained(tmp_path)
    torch.save({"embeddings.word_embeddings.weight": Runs()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"^`hf:.*` could not be made: "):
        load_model(f"hf:{tmp_path}")
    assert not marker.exists()


def test_folders_and_names_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    with pytest.raises(
        ModelError, match=r"should be a folder that `save_pretrained` wrote; `.*` holds no config.json\.$"
    ):
        load_model(f"hf:{tmp_path}")
    with pytest.raises(ModelError, match=r"a name on the Hugging Face hub or a folder; there is no folder `.*gone`\.$"):
        load_model(f"hf:{tmp_path / 'gone'}")
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"has no configuration that could be read: .* Give a folder that"):
        load_model(f"hf:{tmp_path}")


def test_options_that_the_configuration_does_not_know(tmp_path: Path) -> None:
    classifier("bert").save_pretrained(tmp_path)  # type: ignore[operator]
    with pytest.raises(ModelError, match=r"\(BertConfig\) takes no `num_labls`\. Did you mean `num_labels`"):
        load_model(f"hf:{tmp_path},num_labls=2")


def test_a_model_without_a_classifier_form(tmp_path: Path) -> None:
    settings = library().BlenderbotSmallConfig(vocab_size=20, d_model=8, encoder_layers=1, decoder_layers=1)
    settings.save_pretrained(tmp_path)
    with pytest.raises(
        ModelError, match=r"asked for a new head \(`num_labels`\), but a BlenderbotSmallConfig has no classifier"
    ):
        load_model(f"hf:{tmp_path},num_labels=2")


def test_loading_is_silent_and_gives_the_librarys_settings_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library().BertModel(config("bert")).save_pretrained(tmp_path)
    logging = library().utils.logging
    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    capfd.readouterr()
    load_model(f"hf:{tmp_path},num_labels=2")
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        MissingExtraError, match=r'`hf:name` needs the package `transformers`.*"equisep\[transformers\]"$'
    ):
        load_model("hf:name")


def word_tokenizer(folder: Path, **special: str) -> Any:
    """A real tokenizer of the library: whole words, split at spaces."""
    library()
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    words = ["[PAD]", "[UNK]", "good", "bad", "very", "film"]
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    library().PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]", **special).save_pretrained(folder)
    return load_tokenizer(str(folder))


def test_sentences_through_a_real_tokenizer_into_a_measurement(tmp_path: Path) -> None:
    tokenizer = word_tokenizer(tmp_path, pad_token="[PAD]")
    texts = ["very good film", "bad film", "good", "very very bad film"] * 10
    data = TokenBatches(texts, [1, 0, 1, 0] * 10, tokenizer, batch_size=8)
    inputs, _ = next(iter(data))
    assert set(inputs) >= {"input_ids", "attention_mask"}
    assert torch.equal(inputs["attention_mask"] == 0, inputs["input_ids"] == 0)
    torch.manual_seed(0)
    model = library().BertForSequenceClassification(config("bert", num_labels=2))
    profile = equisep.measure(model, data, sites="blocks", reduction="mean")
    assert profile.counts == (20, 20)
    assert all(site.fuzziness is not None for site in profile.sites if site.name != "input")


def test_a_real_tokenizer_without_a_pad_token(tmp_path: Path) -> None:
    tokenizer = word_tokenizer(tmp_path)
    with pytest.raises(
        InputError, match=r"^The tokenizer `\w+` has no pad token, .* `tokenizer.pad_token = tokenizer.eos"
    ):
        TokenBatches(["good", "very bad"], [1, 0], tokenizer)
