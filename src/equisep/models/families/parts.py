"""What several networks share: layers that end in a ReLU of their own, repeated input channels, sizes and their checks."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor, nn

from equisep.errors import InputError
from equisep.shapes import Float


class Conv(NamedTuple):
    """One convolution of a plan; its padding keeps the image's size where the stride is 1."""

    channels: int
    kernel: int
    stride: int = 1


class Repeat(nn.Module):
    """The channels of an image `times` over, one whole copy after the other."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def forward(self, x: Float[Tensor, "b _ h w"]) -> Float[Tensor, "b _ h w"]:
        """The image itself where nothing is repeated."""
        return x if self.times == 1 else x.repeat(1, self.times, 1, 1)

    def extra_repr(self) -> str:
        """What `print` shows between the parentheses."""
        return f"times={self.times}"


def linear_layer(inputs: int, outputs: int, *, norm: bool = True, activation: bool = True) -> nn.Sequential:
    """Linear (with bias) → BatchNorm → ReLU."""
    parts: OrderedDict[str, nn.Module] = OrderedDict(linear=nn.Linear(inputs, outputs))
    if norm:
        parts["norm"] = nn.BatchNorm1d(outputs)
    if activation:
        parts["relu"] = nn.ReLU()
    return nn.Sequential(parts)


def linear_layers(inputs: int, widths: Sequence[int]) -> nn.Sequential:
    """Hidden linear layers one after the other; none is the identity."""
    return nn.Sequential(*(linear_layer(a, b) for a, b in pairwise((inputs, *widths))))


def conv_layer(inputs: int, conv: Conv, *, bias: bool = True) -> nn.Sequential:
    """Convolution → BatchNorm → ReLU."""
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(inputs, conv.channels, conv.kernel, conv.stride, padding=conv.kernel // 2, bias=bias),
            norm=nn.BatchNorm2d(conv.channels),
            relu=nn.ReLU(),
        )
    )


def conv_layers(inputs: int, convs: Sequence[Conv], *, bias: bool = True) -> nn.Sequential:
    """Convolution layers one after the other."""
    before = (inputs, *(conv.channels for conv in convs[:-1]))
    return nn.Sequential(*(conv_layer(a, conv, bias=bias) for a, conv in zip(before, convs, strict=True)))


def pooled_blocks(inputs: int, plan: Sequence[Sequence[Conv]], pool: Callable[[], nn.Module]) -> nn.Sequential:
    """`block1`, `pool1`, `block2`, …: convolution layers, pooled after every block; a block's output is not pooled yet."""
    parts: OrderedDict[str, nn.Module] = OrderedDict()
    for index, convs in enumerate(plan, start=1):
        parts[f"block{index}"] = conv_layers(inputs, convs)
        parts[f"pool{index}"] = pool()
        inputs = convs[-1].channels
    return nn.Sequential(parts)


def pooled_sites(features: nn.Sequential, hidden: nn.Sequential) -> Mapping[str, tuple[str, ...]]:
    """Sites of `features` made by `pooled_blocks`, then `hidden` linear layers, each of which is a block of its own."""
    blocks = {f"features.{name}": part for name, part in features.named_children() if name.startswith("block")}
    layers = tuple(f"{name}.{index}" for name, part in blocks.items() for index, _ in part.named_children())
    after = tuple(f"hidden.{index}" for index in range(len(hidden)))
    return {"layers": (*layers, *after), "blocks": (*blocks, *after)}


def side_after(features: nn.Module, size: int) -> int:
    """How many pixels wide a square image of `size` leaves a chain of convolutions and pools; 0 where nothing is left."""
    for part in features.modules():
        if isinstance(part, nn.Conv2d | nn.MaxPool2d):
            kernel, stride, padding = (_one(value) for value in (part.kernel_size, part.stride, part.padding))
            size = max(0, (size + 2 * padding - kernel) // stride + 1)
    return size


def _one(value: int | str | tuple[int, ...]) -> int:
    """One number of a square kernel; the networks here have no other, and no padding by name."""
    assert not isinstance(value, str)
    return value if isinstance(value, int) else value[0]


def scaled(channels: int, width_multiplier: float) -> int:
    """A number of channels times the width multiplier, at least 1."""
    return max(1, round(channels * width_multiplier))


def check_sizes(network: str, *, width_multiplier: float = 1.0, **sizes: int) -> None:
    """Refuse sizes below 1 and a width multiplier that is no positive number."""
    if not all(isinstance(size, int) and size >= 1 for size in sizes.values()):
        *first, last = sizes
        given = ", ".join(f"{name}={value}" for name, value in sizes.items())
        raise InputError(f"`{network}` needs {', '.join(first)} and {last} of at least 1; found {given}.")
    if not isinstance(width_multiplier, int | float) or not (math.isfinite(width_multiplier) and width_multiplier > 0):
        raise InputError(f"`{network}` needs a positive width_multiplier; found {width_multiplier}.")


def check_kernel(network: str, kernel: int) -> None:
    """Refuse kernels that no padding can keep centered."""
    if kernel < 1 or kernel % 2 == 0:
        raise InputError(f"`{network}` needs an odd kernel, so that its padding keeps the size; found {kernel}.")


def check_side(network: str, features: nn.Module, size: int) -> int:
    """The side that `features` leaves of an image, refused where nothing is left."""
    side = side_after(features, size)
    if side < 1:
        raise InputError(f"`{network}` leaves nothing of an image of size={size}. Use larger images.")
    return side
