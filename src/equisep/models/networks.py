"""The literal table of networks by name, and how one is built from a seed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from equisep.errors import EquisepError, ModelError, did_you_mean
from equisep.models.families.alexnet import AlexNet, alexnet_wide
from equisep.models.families.convnet import ConvNet
from equisep.models.families.densenet import DenseNet161
from equisep.models.families.fnn import Fnn, fnn_linear, fnn_no_batchnorm, mlp
from equisep.models.families.pure_cnn import PureCnn
from equisep.models.families.resnet import ResNet
from equisep.models.families.resnet_cifar import ResNet18, resnet20, resnet32, resnet44, resnet56
from equisep.models.families.vgg import Vgg, vgg_wide

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
