"""Models of timm and torchvision by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from equisep.errors import MissingExtraError, ModelError, did_you_mean
from equisep.results import Note

Made = tuple[nn.Module, tuple[Note, ...]]


def timm_model(name: str, *, pretrained: bool, options: Mapping[str, Any]) -> Made:
    """`timm.create_model(name, pretrained, …)`; pretrained weights are downloaded where timm has none in its cache."""
    timm = package("timm", spec=f"timm:{name}", extra="timm")
    if ":" not in name:  # hf-hub:… and local-dir:… are timm's to look up; after a dot stands which weights
        _check_known("timm", name.partition(".")[0], timm.list_models())
    spec = f"timm:{name}"
    model = made(lambda: timm.create_model(name, pretrained=pretrained, **options), spec, fetches=pretrained)
    published = (getattr(model, "pretrained_cfg", None) or {}).get("num_classes")
    asked = options.get("num_classes", published)
    if not pretrained or not asked or asked == published:
        return model, ()
    return model, (random_head(spec, f"{asked} classes instead of {published}"),)


def torchvision_model(name: str, *, pretrained: bool, options: Mapping[str, Any]) -> Made:
    """`torchvision.models.get_model(name, …)` with its default weights, which torchvision downloads, or random ones."""
    models = package("torchvision.models", spec=f"torchvision:{name}", extra="torchvision")
    _check_known("torchvision", name, models.list_models())
    weights = "DEFAULT" if pretrained else None
    return made(
        lambda: models.get_model(name, weights=weights, **options), f"torchvision:{name}", fetches=pretrained
    ), ()


def random_head(spec: str, what: str) -> Note:
    """The Note of a published model with a classifier that was never trained."""
    text = (
        f"The head of `{spec}` is new and random ({what}): accuracy, NC3 and NC4 say nothing of the published "
        "model. Train it, and load it as a checkpoint."
    )
    return Note("random-head", text)


def package(name: str, *, spec: str, extra: str) -> Any:
    """An optional package, imported; a missing one names its extra."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            needed_for=f"`{spec}`", package=(error.name or name).partition(".")[0], extra=extra
        ) from error
    except Exception as error:  # a torchvision built for another torch fails with a RuntimeError, for one
        raise ModelError(
            f"`{spec}` needs the package `{name.partition('.')[0]}`, which is installed but cannot be imported "
            f"({type(error).__name__}: {first_line(error)}). Install builds that belong to this torch."
        ) from error


def made(make: Any, spec: str, *, fetches: bool) -> nn.Module:
    """The model that `make()` gives, with a sentence around whatever goes wrong in the package."""
    try:
        model = make()
    except Exception as error:  # no network, options the constructor does not take, sizes that do not fit
        advice = " Without a network give `pretrained=false`, and your own weights as a checkpoint." if fetches else ""
        raise ModelError(f"`{spec}` could not be made: {type(error).__name__}: {first_line(error)}{advice}") from error
    assert isinstance(model, nn.Module)
    return model


def first_line(error: Exception) -> str:
    """The first line of an error's message, ending in a stop."""
    text = str(error).strip().split("\n")[0].rstrip(".:") or "no reason given"
    return f"{text}."


def _check_known(hub: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        raise ModelError(f"No model `{name}` in {hub}.{did_you_mean(name, names)} It has {len(names)}.")
