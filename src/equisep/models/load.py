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
from equisep.models.hubs import timm_model, torchvision_model
from equisep.models.hugging_face import hugging_face_model
from equisep.models.networks import MODELS, named_network
from equisep.results import Note
from equisep.user_code import file_named, made_by, split_options

HUBS = {"timm": timm_model, "torchvision": torchvision_model, "hf": hugging_face_model}
FORMS = "a network by name, pkg.module:factory, file.py:factory, timm:name, torchvision:name or hf:name-or-folder"
NEW_HEAD = {"hf": "num_labels", "timm": "num_classes"}  # the options that ask for a head of another width

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What `--model` says: the kind of source, the name there, and options for whatever makes the model.

    `source` is `network` (one of ours), `factory` (a function of the user's), `timm`, `torchvision` or `hf`.
    """

    source: str
    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, and what is to be said of its weights."""

    model: nn.Module
    notes: tuple[Note, ...] = ()


def parse_spec(text: str) -> ModelSpec:
    """`name`, `pkg.module:factory`, `file.py:factory` or `hub:name`, each with options as in `vgg13,colors=3,classes=100`."""
    base, options = split_options(text)
    source, colon, name = base.partition(":")
    if source in HUBS and name:
        return ModelSpec(source, name, options)
    code, colon, name = base.rpartition(":")
    if colon and code and name and code not in HUBS:
        return ModelSpec("factory", base, options)
    if base in MODELS:
        return ModelSpec("network", base, options)
    hint = did_you_mean(base, MODELS) or _elsewhere(base)
    raise ModelError(f"`--model` takes {FORMS}; found `{text}`.{hint} Networks: {', '.join(sorted(MODELS))}.")


def _elsewhere(name: str) -> str:
    """Where a name that is no network of ours may come from, by the look of it."""
    file = file_named(name)
    if file is not None and file.is_file():
        return f" Name what makes the model in that file: `{name}:Net`, say."
    if Path(name).is_dir() or (HUB_NAME.fullmatch(name) and ("-" in name or "/" in name)):
        return f" Did you mean `hf:{name}`?"
    return f" Did you mean `timm:{name}`?" if HUB_NAME.fullmatch(name) and "_" in name else ""


def load_model(spec: str, *, checkpoint: str | Path | None = None, **options: Any) -> nn.Module:
    """The model that one line of text names, with the weights of a checkpoint where one is given.

    resnet56                    a network of `MODELS`, random weights from torch's generator
    pkg.module:factory          what that function makes, or a model object; **this imports and runs the code named**,
                                searching the working folder as `python -m` would
    ./file.py:factory           the same from a file
    timm:name, torchvision:name that library's model, with its pretrained weights where no checkpoint is given
    hf:name-or-folder           a sequence or image classifier, or the bare encoder, as its configuration says; a folder
                                is read offline; code that comes with a model is never run

    `options` go to whatever makes the model, and may follow the name instead: `vgg13,colors=3`. Of timm, torchvision and
    hf models `pretrained=False` takes random weights. Checkpoints hold tensors, never code, and every key must fit.

    >>> from equisep.models import load_model
    >>> type(load_model("fnn,depth=5")).__name__
    'Fnn'
    """
    return loaded_model(spec, checkpoint=checkpoint, **options).model


def loaded_model(spec: str, *, checkpoint: str | Path | None = None, **options: Any) -> LoadedModel:
    """The model of `load_model` with a Note where a part of its published weights had to be drawn at random."""
    asked = parse_spec(spec)
    given = {**asked.options, **options}
    notes: tuple[Note, ...] = ()
    if asked.source == "network":
        model = named_network(asked.name, given)
    elif asked.source == "factory":
        model = made_by(
            asked.name,
            given,
            ready=lambda value: isinstance(value, nn.Module),
            kind="model",
            returns="a torch.nn.Module",
            error=ModelError,
        )
    else:
        pretrained = bool(given.pop("pretrained", checkpoint is None))
        model, notes = HUBS[asked.source](asked.name, pretrained=pretrained, options=given)
    if checkpoint is None:
        return LoadedModel(model, notes)
    load_weights(model, checkpoint)
    return LoadedModel(model)


def loading_words(spec: str, *, checkpoint: str | Path | None = None) -> str:
    """What loading a model will do, in a sentence or two for the user: whose code is run, where weights come from."""
    asked = parse_spec(spec)
    if asked.source == "factory":
        return f"Running the code of `{asked.name}`. {_weights('the model keeps those that this code gives it', checkpoint)}"
    if asked.source == "network":
        return f"Building the network `{asked.name}`. {_weights('they are random, drawn from the seed', checkpoint)}"
    pretrained = bool(asked.options.get("pretrained", checkpoint is None))
    where = f"the published ones of `{asked.source}:{asked.name}`, fetched where they are not at hand"
    if checkpoint is None:
        head = NEW_HEAD.get(asked.source)
        new = f"; a head that `{head}` makes wider or narrower begins at random" if head in asked.options else ""
        return f"Weights: {where}{new}." if pretrained else "Weights: random ones."
    return _weights("", checkpoint)


def _weights(otherwise: str, checkpoint: str | Path | None) -> str:
    return f"No --checkpoint for its weights: {otherwise}." if checkpoint is None else f"Weights: `{checkpoint}`."
