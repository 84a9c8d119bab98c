"""Activations of `torch.nn` by name, with options in one line of text, in the place of a network's ReLUs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from torch import nn
from torch.nn.modules import activation as torch_activations

from equisep.errors import InputError, ModelError, did_you_mean
from equisep.user_code import split_options

# those that change shapes or look at several units at once, and one that draws chance in training
OTHERS = ("GLU", "LogSoftmax", "MultiheadAttention", "RReLU", "Softmax", "Softmax2d", "Softmin")


@cache
def activation_names() -> Mapping[str, type[nn.Module]]:
    """The activations of torch that act unit by unit, by their names in small letters."""
    names = [*(name for name in torch_activations.__all__ if name not in OTHERS), "Identity"]
    return {name.lower(): getattr(nn, name) for name in names}


def activation_named(text: str) -> nn.Module:
    """`gelu`, `Tanh` or `leakyrelu,negative_slope=0.1`: case does not matter; an unknown name is refused with its near matches.

    >>> from equisep.models.activations import activation_named
    >>> activation_named("leakyrelu,negative_slope=0.1")
    LeakyReLU(negative_slope=0.1)
    """
    name, options = split_options(text)
    known = activation_names()
    if name.lower() not in known:
        raise InputError(
            f"No activation `{name}`.{did_you_mean(name.lower(), known)} Known: {', '.join(sorted(known))}."
        )
    kind = known[name.lower()]
    return _made(kind, options, text)


def _made(kind: type[nn.Module], options: Mapping[str, Any], text: str) -> nn.Module:
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:  # an option that it has not, or lacks
        takes = ", ".join(inspect.signature(kind).parameters) or "none"
        reason = str(error).partition(".__init__() ")[2] or str(error)
        raise InputError(
            f"`{text}` is no activation: {reason.rstrip('.')}. Options of `{kind.__name__}`: {takes}."
        ) from error


def replace_relus(network: nn.Module, text: str, *, name: str) -> None:
    """Put an activation, each with its own parameters, in the place of every `nn.ReLU` of a network called `name`."""
    activation_named(text)
    places = [
        (owner, child)
        for owner in network.modules()
        for child, module in owner.named_children()
        if isinstance(module, nn.ReLU)
    ]
    if not places:
        raise ModelError(f"`{name}` has no `nn.ReLU` that `{text}` could take the place of. Leave `activation` out.")
    for owner, child in places:
        setattr(owner, child, activation_named(text))
