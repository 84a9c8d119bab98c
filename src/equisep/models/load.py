"""A model from one line of text: a network of ours, code of the user's, or a model of timm, torchvision or Hugging Face."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from equisep.errors import ModelError, did_you_mean
from equisep.models.checkpoints import load_weights
from equisep.models.factories import factory_model
from equisep.models.hubs import timm_model, torchvision_model
from equisep.models.hugging_face import hugging_face_model
from equisep.models.networks import MODELS, named_network

HUBS = {"timm": timm_model, "torchvision": torchvision_model, "hf": hugging_face_model}
FORMS = "a network by name, pkg.module:factory, timm:name, torchvision:name or hf:name-or-folder"

_OPTIONS = re.compile(r"(?:,[A-Za-z_]\w*=[^,/]*)+$")
_WORDS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What `--model` says: the kind of source, the name there, and options for whatever makes the model.

    `source` is `network` (one of ours), `factory` (a function of the user's), `timm`, `torchvision` or `hf`.
    """

    source: str
    name: str
    options: Mapping[str, Any]


def parse_spec(text: str) -> ModelSpec:
    """`name`, `pkg.module:factory` or `hub:name`, each followed by options as in `vgg13,colors=3,classes=100`."""
    found = _OPTIONS.search(text)
    base = text if found is None else text[: found.start()]
    pairs = [] if found is None else [part.partition("=") for part in found.group()[1:].split(",")]
    options = {key: _value(value) for key, _, value in pairs}
    source, colon, name = base.partition(":")
    if source in HUBS and name:
        return ModelSpec(source, name, options)
    if colon and source and name and source not in HUBS:
        return ModelSpec("factory", base, options)
    if base in MODELS:
        return ModelSpec("network", base, options)
    raise ModelError(
        f"`--model` takes {FORMS}; found `{text}`.{did_you_mean(base, MODELS)} Networks: {', '.join(sorted(MODELS))}."
    )


def load_model(spec: str, *, checkpoint: str | Path | None = None, **options: Any) -> nn.Module:
    """The model that one line of text names, with the weights of a checkpoint where one is given.

    resnet56                    a network of `MODELS`, random weights from torch's generator
    pkg.module:factory          what that function makes, or a model object; **this imports and runs the code named**,
                                searching the working folder as `python -m` would
    timm:name, torchvision:name that library's model, with its pretrained weights where no checkpoint is given
    hf:name-or-folder           a sequence or image classifier, or the bare encoder, as its configuration says; a folder
                                is read offline; code that comes with a model is never run

    `options` go to whatever makes the model, and may follow the name instead: `vgg13,colors=3`. Of timm, torchvision and
    hf models `pretrained=False` takes random weights. Checkpoints hold tensors, never code, and every key must fit.
    """
    asked = parse_spec(spec)
    given = {**asked.options, **options}
    if asked.source == "network":
        model = named_network(asked.name, given)
    elif asked.source == "factory":
        module_name, _, attribute = asked.name.partition(":")
        model = factory_model(module_name, attribute, given)
    else:
        pretrained = bool(given.pop("pretrained", checkpoint is None))
        model = HUBS[asked.source](asked.name, pretrained=pretrained, options=given)
    if checkpoint is not None:
        load_weights(model, checkpoint)
    return model


def loading_words(spec: str, *, checkpoint: str | Path | None = None) -> str:
    """What loading a model will do, in a sentence or two for the user: whose code is run, where weights come from."""
    asked = parse_spec(spec)
    if asked.source == "factory":
        return f"Running the code of `{asked.name}`. {_weights('that code gives', checkpoint)}"
    if asked.source == "network":
        return f"Building the network `{asked.name}`. {_weights('the seed draws', checkpoint)}"
    pretrained = bool(asked.options.get("pretrained", checkpoint is None))
    where = f"the published ones of `{asked.source}:{asked.name}`, fetched where they are not at hand"
    if checkpoint is None:
        return f"Weights: {where if pretrained else 'random ones'}."
    return _weights("", checkpoint)


def _weights(otherwise: str, checkpoint: str | Path | None) -> str:
    return f"No --checkpoint: its weights are those {otherwise}." if checkpoint is None else f"Weights: `{checkpoint}`."


def _value(text: str) -> Any:
    """A number, true, false, none, or the text itself."""
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return word
