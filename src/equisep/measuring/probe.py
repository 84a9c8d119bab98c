"""The probe: one batch through the model to learn which sites it reaches, in what order, and what its classifier is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from equisep.errors import EquisepError, FeatureError, InputError, ModelError, SiteError, did_you_mean
from equisep.measuring.options import Options
from equisep.results import Note
from equisep.taps import GRAINS, INPUT, batch_norms, first_tensor, module_names, resolve_sites, tap


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
    fed: dict[str, str | None] = {}  # linear layer, in call order → the site whose features it was given unchanged

    def consume(site: str, features: Tensor) -> None:
        check_finite(features, site=site, where="batch 0 of the training data")
        dims[site] = features.shape[1]
        latest[:] = site, features.clone()

    def watch(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
            given = first_tensor(args)
            fed.pop(name, None)  # the latest call counts, and stands last
            same = given is not None and given.ndim == 2 and latest[1] is not None and torch.equal(given, latest[1])
            fed[name] = latest[0] if same else None

        return hook

    linear = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    handles = [module.register_forward_pre_hook(watch(name)) for name, module in linear.items()]
    try:
        with tap(model, names, consume=consume, mode=options.mode):
            output = run_model(model, x, what="the first batch")
    finally:
        for handle in handles:
            handle.remove()
    names, left_out = _reached(model, names, dims, options)
    sites = tuple(dims)
    classes, owner = _classes(model, output, options)
    classifier, notes = _classifier(model, linear, fed, sites, dims[sites[-1]], classes, options)
    return Probe(names, sites, tuple(dims.values()), classes, owner, classifier, (*left_out, *notes))


def _reached(
    model: nn.Module, names: tuple[str, ...], dims: dict[str, int], options: Options
) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """The sites that the forward pass calls; one asked for by name must be among them, a proposed one need not."""
    missing = [name for name in names if name not in dims]
    if not missing:
        return names, ()
    kept = tuple(name for name in names if name in dims)
    if options.sites not in GRAINS or len(kept) < 2:
        raise SiteError(
            f"Site `{missing[0]}` was never reached: the forward pass of `{_kind(model)}` does not call it. "
            f"It calls {len(kept) - 1} of the {len(names) - 1} sites asked for; name others."
        )
    shown = ", ".join(f"`{name}`" for name in missing[:3]) + (", …" if len(missing) > 3 else "")
    text = f"{len(missing)} of {len(names) - 1} sites found in the module tree are never called and were left out: {shown}."
    return kept, (Note("unreached", text),)


def check_finite(features: Tensor, *, site: str, where: str) -> None:
    """Raise where a site gives anything but numbers."""
    if not bool(torch.isfinite(features).all()):
        bad = int((~torch.isfinite(features)).sum())
        raise FeatureError(
            f"Site `{site}` gives {bad} NaN or Inf among {features.numel()} numbers at {where}. "
            "Check the inputs and the weights."
        )


def run_model(model: nn.Module, x: Tensor, *, what: str) -> Any:
    """model(x), with a sentence around whatever goes wrong inside the model."""
    try:
        return model(x.clone())  # a model that begins in place would overwrite the user's data, and the next reading's
    except EquisepError:
        raise
    except Exception as error:  # whatever a user's model raises
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
    fed: dict[str, str | None],
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
        if fed.get(asked) != sites[-1]:
            raise InputError(
                f"The classifier `{asked}` does not read the last site `{sites[-1]}`: it is given something else. "
                "NC3 and NC4 exist only at the site it reads; add that module to `sites`, or leave `classifier=` out."
            )
        return asked, ()
    # the last of them: an earlier layer that happens to be K wide is no classifier
    last = next((name for name in reversed(fed) if linear[name].out_features == classes), None)
    if last is not None and fed[last] == sites[-1] and sites[-1] != INPUT:
        return last, ()
    text = (
        f"No linear layer with {classes} outputs reads the last site `{sites[-1]}` directly, so NC3 and NC4 do not exist; "
        "to have them, add the module whose output it reads (a pooling or flatten layer, say) to `sites`."
    )
    return None, (Note("no-classifier", text),)


def _kind(model: nn.Module) -> str:
    return type(model).__name__
