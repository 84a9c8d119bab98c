"""The literal table of networks by name, how one is built from a seed, and activations of `torch.nn` by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules import activation as torch_activations

from equisep.errors import EquisepError, InputError, ModelError, did_you_mean
from equisep.models.families.alexnet import AlexNet, alexnet_wide
from equisep.models.families.convnet import ConvNet, PureCnn
from equisep.models.families.densenet import DenseNet161
from equisep.models.families.fnn import Fnn, fnn_linear, fnn_no_batchnorm, mlp
from equisep.models.families.resnet import ResNet
from equisep.models.families.resnet_cifar import ResNet18, resnet20, resnet32, resnet44, resnet56
from equisep.models.families.vgg import Vgg, vgg_wide
from equisep.user_code import split_options

MODELS: dict[str, Callable[..., nn.Module]] = {
    "fnn": Fnn,
    "fnn-linear": fnn_linear,
    "fnn-no-batchnorm": fnn_no_batchnorm,
    "mlp": mlp,
    "convnet": ConvNet,
    "alexnet": AlexNet,
    "alexnet-wide": alexnet_wide,
    "vgg11": partial(Vgg, 11),
    "vgg13": partial(Vgg, 13),
    "vgg16": partial(Vgg, 16),
    "vgg19": partial(Vgg, 19),
    "vgg11-wide": partial(vgg_wide, 11),
    "vgg13-wide": partial(vgg_wide, 13),
    "vgg16-wide": partial(vgg_wide, 16),
    "vgg19-wide": partial(vgg_wide, 19),
    "pure-cnn": PureCnn,
    "resnet-2-layer": partial(ResNet, (2, 2, 2, 2)),
    "resnet-3-layer": partial(ResNet, (3, 3, 3, 3)),
    "resnet-mixed": partial(ResNet, (3, 3, 2, 2)),
    "resnet18": ResNet18,
    "resnet20": resnet20,
    "resnet32": resnet32,
    "resnet44": resnet44,
    "resnet56": resnet56,
    "densenet161": DenseNet161,
}
# those that change shapes or look at several units at once, and one that draws chance in training
OTHERS = ("GLU", "LogSoftmax", "MultiheadAttention", "RReLU", "Softmax", "Softmax2d", "Softmin")


def build(name: str, *, seed: int, **options: Any) -> nn.Module:
    """The named network with the weights it gets after `torch.manual_seed(seed)`; the global generator stays as it was.

    >>> import torch
    >>> from equisep.models import build
    >>> one, other = build("fnn", seed=1, depth=2), build("fnn", seed=1, depth=2)
    >>> all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters()))
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the same weights; `torch.manual_seed` would reseed the GPUs too
        return named_network(name, options)


def named_network(name: str, options: Mapping[str, Any]) -> nn.Module:
    """The named network, its weights drawn from torch's global generator; unknown names and options are refused."""
    known = option_names(name)
    for option in options:
        if option not in known:
            raise ModelError(
                f"The network `{name}` takes no `{option}`.{did_you_mean(option, known)} It takes {', '.join(known)}."
            )
    try:
        return MODELS[name](**options)
    except EquisepError:
        raise
    except Exception as error:  # sizes that no memory holds, words where a number is due
        given = ", ".join(f"{option}={value}" for option, value in options.items())
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ModelError(f"The network `{name}` cannot be built with {given}: {reason}.") from error


def option_names(name: str) -> tuple[str, ...]:
    """What the named network can be built with; an unknown name is refused."""
    if name not in MODELS:
        raise ModelError(f"No network `{name}`.{did_you_mean(name, MODELS)} Known: {', '.join(sorted(MODELS))}.")
    return tuple(inspect.signature(MODELS[name]).parameters)


@cache
def activation_names() -> Mapping[str, type[nn.Module]]:
    """The activations of torch that act unit by unit, by their names in small letters."""
    names = [*(name for name in torch_activations.__all__ if name not in OTHERS), "Identity"]
    return {name.lower(): getattr(nn, name) for name in names}


def activation_named(text: str) -> nn.Module:
    """`gelu`, `Tanh` or `leakyrelu,negative_slope=0.1`: case does not matter; an unknown name is refused with its near matches.

    >>> from equisep.models.networks import activation_named
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
