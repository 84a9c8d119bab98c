"""The probe: one batch through the model to learn which sites it reaches, in what order, and what its classifier is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from equisep.errors import EquisepError, InputError, ModelError, SiteError, did_you_mean
from equisep.measuring.options import Options
from equisep.results import Note
from equisep.taps import INPUT, batch_norms, first_tensor, module_names, resolve_sites, tap


@dataclass(frozen=True, slots=True)
class Probe:
    """What one batch told: `sites` in call order with their widths, K, and the linear layer that reads the last site."""

    names: tuple[str, ...]
    sites: tuple[str, ...]
    dims: tuple[int, ...]
    classes: int
    owner: str
    classifier: str | None
    notes: tuple[Note, ...]


def probe(model: nn.Module, x: Tensor, options: Options) -> Probe:
    """Run one batch and look."""
    names = resolve_sites(model, options.sites)
    dims: dict[str, int] = {}
    latest: list[Any] = [None, None]  # the site consumed last, and its features
    fed: dict[str, str] = {}  # linear layer → the site whose features it was given unchanged

    def consume(site: str, features: Tensor) -> None:
        dims[site] = features.shape[1]
        latest[:] = site, features.clone()

    def watch(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
            given = first_tensor(args)
            if given is not None and latest[1] is not None and given.ndim == 2 and torch.equal(given, latest[1]):
                fed.pop(name, None)
                fed[name] = latest[0]

        return hook

    linear = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    handles = [module.register_forward_pre_hook(watch(name)) for name, module in linear.items()]
    try:
        with tap(model, names, consume=consume, mode=options.mode):
            output = run_model(model, x, what="the first batch")
    finally:
        for handle in handles:
            handle.remove()
    for name in names:
        if name not in dims:
            raise SiteError(f"Site `{name}` was never reached: the forward pass of `{_kind(model)}` does not call it.")
    sites = tuple(dims)
    classes, owner = _classes(model, output, options)
    classifier, notes = _classifier(model, linear, fed, sites, dims[sites[-1]], classes, options)
    return Probe(names, sites, tuple(dims.values()), classes, owner, classifier, notes)


def run_model(model: nn.Module, x: Tensor, *, what: str) -> Any:
    """model(x), with a sentence around whatever goes wrong inside the model."""
    try:
        return model(x)
    except EquisepError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise ModelError(
            f"`{_kind(model)}` could not run {what} (inputs of shape {tuple(x.shape)}, {x.dtype}, on {x.device}): {error}"
        ) from error


def check_batch(model: nn.Module, size: int, options: Options, *, index: int, what: str) -> None:
    """In `batch` mode a batch of one sample has no spread for BatchNorm to normalize by."""
    if options.mode == "batch" and size == 1 and batch_norms(model):
        raise InputError(
            f"`batch` mode needs at least 2 samples a batch; batch {index} of the {what} data holds 1. "
            "Use another batch size, or `drop_last=True`."
        )


def _classes(model: nn.Module, output: Any, options: Options) -> tuple[int, str]:
    if options.classes is not None:
        return options.classes, f"`classes={options.classes}`"
    if isinstance(output, Tensor) and output.ndim == 2 and output.shape[1] >= 2:
        return output.shape[1], f"`{_kind(model)}` has {output.shape[1]} outputs"
    found = f"shape {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
    raise InputError(
        f"`measure` could not tell the number of classes: `{_kind(model)}` returns {found}, not b × K. Pass `classes=K`."
    )


def _classifier(
    model: nn.Module,
    linear: dict[str, nn.Linear],
    fed: dict[str, str],
    sites: tuple[str, ...],
    width: int,
    classes: int,
    options: Options,
) -> tuple[str | None, tuple[Note, ...]]:
    asked = options.classifier
    if asked is not None:
        if asked not in linear:
            known = module_names(model)
            found = (
                f"it is a {type(model.get_submodule(asked)).__name__}" if asked in known else "there is no such module"
            )
            raise SiteError(f"The classifier `{asked}` should be an nn.Linear; {found}.{did_you_mean(asked, linear)}")
        layer = linear[asked]
        if (layer.in_features, layer.out_features) != (width, classes):
            raise InputError(
                f"The classifier `{asked}` maps {layer.in_features} → {layer.out_features}, but the last site "
                f"`{sites[-1]}` has {width} features and there are {classes} classes."
            )
        return asked, ()
    for name in reversed(fed):
        if fed[name] == sites[-1] and linear[name].out_features == classes and sites[-1] != INPUT:
            return name, ()
    text = (
        f"No linear layer with {classes} outputs reads the last site `{sites[-1]}` directly, so NC3 and NC4 do not exist; "
        "name one with `classifier=` if it does."
    )
    return None, (Note("no-classifier", text),)


def _kind(model: nn.Module) -> str:
    return type(model).__name__
