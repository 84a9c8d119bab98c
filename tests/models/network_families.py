"""Every network of the house at smoke scale, its sites as a forward pass meets them, and parameters counted by hand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, conv2d, linear, relu

from equisep.data import load_data, prepare_split
from equisep.models import MODELS, build

CLASSES = 3
FLAT: dict[str, Any] = {"inputs": 32 * 32, "classes": CLASSES}
GRAY: dict[str, Any] = {"colors": 1, "classes": CLASSES}
SMOKE: dict[str, dict[str, Any]] = {
    "fnn": {"depth": 4, "width": 12, **FLAT},
    "fnn-linear": {"depth": 4, "width": 12, **FLAT},
    "fnn-no-batchnorm": {"depth": 4, "width": 12, **FLAT},
    "mlp": {"depth": 3, "width": 12, **FLAT},
    "convnet": {"depth": 3, "width_multiplier": 0.06, **GRAY},
    "alexnet": {"width_multiplier": 1 / 32, **GRAY},
    "alexnet-wide": {"width_multiplier": 1 / 32, **GRAY},
    **{f"vgg{depth}": {"width_multiplier": 1 / 16, **GRAY} for depth in (11, 13, 16, 19)},
    **{f"vgg{depth}-wide": {"width_multiplier": 1 / 32, **GRAY} for depth in (11, 13, 16, 19)},
    "pure-cnn": {"width_multiplier": 1 / 16, **GRAY},
    "resnet-2-layer": {"width_multiplier": 1 / 2, **GRAY},
    "resnet-3-layer": {"width_multiplier": 1 / 2, **GRAY},
    "resnet-mixed": {"width_multiplier": 1 / 2, **GRAY},
    "resnet18": {"width_multiplier": 1 / 16, **GRAY},
    **{f"resnet{depth}": {"width_multiplier": 1 / 8, **GRAY} for depth in (20, 32, 44, 56)},
    "densenet161": {"width_multiplier": 1 / 48, **GRAY},
}


def smoke(name: str, *, seed: int = 0) -> nn.Module:
    """A network with its wiring, narrow enough to train in a test."""
    return build(name, seed=seed, **SMOKE[name])


@cache
def images() -> tuple[Tensor, Tensor]:
    """Eight embedded images of each of three classes at 32 × 32, in one class-mixed order."""
    x, y = prepare_split(load_data("embedded-28x28"), "he2023-32x32", per_class=8, classes=CLASSES)
    return x, y


def on_meta(name: str, **options: Any) -> nn.Module:
    """A network of any size without memory for its weights: shapes and counts only."""
    with torch.device("meta"):
        return MODELS[name](**options)


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def conv(inputs: int, outputs: int, kernel: int) -> int:
    """Weights and biases of a convolution with BatchNorm after it."""
    return inputs * outputs * kernel**2 + outputs + 2 * outputs


def bare_conv(inputs: int, outputs: int, kernel: int) -> int:
    """Weights of a convolution without bias, with BatchNorm after it."""
    return inputs * outputs * kernel**2 + 2 * outputs


def hidden(inputs: int, outputs: int) -> int:
    """Weights and biases of a linear layer with BatchNorm after it."""
    return inputs * outputs + outputs + 2 * outputs


def classifier(inputs: int, outputs: int) -> int:
    """Weights and biases of a linear layer."""
    return inputs * outputs + outputs


def seen(model: nn.Module, x: Tensor, names: tuple[str, ...]) -> list[tuple[str, Tensor]]:
    """(name, output) of every call of these modules in one forward pass, in the order of the calls."""
    calls: list[tuple[str, Tensor]] = []

    def note(name: str) -> Any:
        return lambda module, args, output: calls.append((name, output.detach().clone()))

    handles = [model.get_submodule(name).register_forward_hook(note(name)) for name in names]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def shapes(model: nn.Module, x: Tensor, grain: str) -> list[tuple[int, ...]]:
    """Shape of one sample at every site of a grain, for a model on the meta device."""
    calls = seen(model, x.to("meta"), model.sites[grain])  # type: ignore[index,arg-type]
    return [tuple(output.shape[1:]) for _, output in calls]


def unsettled(model: nn.Module) -> nn.Module:
    """The model in eval mode with BatchNorms that do something: seeded statistics, scales and shifts."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                for value in (module.running_mean, module.running_var, module.weight, module.bias):
                    assert value is not None
                    value.uniform_(0.5, 1.5, generator=generator)
    return model.eval()


class Weights:
    """A state dict as the layers of a formula: what the tests compare a forward pass with."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self.state = state

    def conv(self, x: Tensor, name: str, *, stride: int = 1, padding: int = 0) -> Tensor:
        return conv2d(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"), stride=stride, padding=padding)

    def norm(self, x: Tensor, name: str) -> Tensor:
        parts = [self.state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return batch_norm(x, *parts)

    def linear(self, x: Tensor, name: str) -> Tensor:
        return linear(x, self.state[f"{name}.weight"], self.state[f"{name}.bias"])

    def conv_layer(self, x: Tensor, name: str, *, stride: int = 1, padding: int = 0) -> Tensor:
        return relu(self.norm(self.conv(x, f"{name}.conv", stride=stride, padding=padding), f"{name}.norm"))

    def linear_layer(self, x: Tensor, name: str) -> Tensor:
        return relu(self.norm(self.linear(x, f"{name}.linear"), f"{name}.norm"))
