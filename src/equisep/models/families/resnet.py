"""The residual networks on which the law was read: four blocks of two or three layers, without stem or pooling."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from equisep.errors import InputError
from equisep.models.families.parts import Conv, Repeat, check_sizes, conv_layers, scaled
from equisep.shapes import Float

CHANNELS = 8  # of every block, and how often the input is repeated: one color needs no shortcut but the identity
KERNELS = {2: 3, 3: 5}  # layers of a block → its kernels


class ResidualBlock(nn.Module):
    """ReLU(inner layers, convolution and BatchNorm + shortcut): `layers` convolutions, stride 1, without bias.

    The shortcut is the identity, or 1 × 1 convolution and BatchNorm where the number of channels changes.
    """

    def __init__(self, inputs: int, channels: int, *, layers: int) -> None:
        super().__init__()
        kernel = KERNELS[layers]
        self.inner = conv_layers(inputs, [Conv(channels, kernel)] * (layers - 1), bias=False)
        self.outer = nn.Sequential(
            OrderedDict(
                conv=nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False),
                norm=nn.BatchNorm2d(channels),
            )
        )
        self.shortcut: nn.Module = nn.Identity()
        if inputs != channels:
            self.shortcut = nn.Sequential(
                OrderedDict(conv=nn.Conv2d(inputs, channels, 1, bias=False), norm=nn.BatchNorm2d(channels))
            )
        self.relu = nn.ReLU()

    def forward(self, x: Float[Tensor, "b _ h w"]) -> Float[Tensor, "b _ h w"]:
        """The block's output, after addition and ReLU."""
        h: Tensor = self.relu(self.outer(self.inner(x)) + self.shortcut(x))
        return h


class ResNet(nn.Module):
    """ResNet of a few blocks at full resolution (He & Su 2023, Fig. 7, by the authors' code).

    The input's channels repeated 8 times, no stem, blocks of 8 channels, stride 1, convolutions without bias; the
    classifier reads 8 · size². `blocks` gives the number of layers of each: 2 (3 × 3 kernels) or 3 (5 × 5 kernels, no
    expansion); the paper has four of 2, four of 3, and mixed 3 3 2 2. With three colors the first shortcut is
    1 × 1 convolution and BatchNorm, 24 → 8.

    Sites: each inner ReLU and each block's output, after addition and ReLU (`layers`); the latter (`blocks`).
    `width_multiplier` scales the channels and the repetition alike, so that the shortcuts stay what they are.
    """

    def __init__(
        self,
        blocks: Sequence[int] = (2, 2, 2, 2),
        *,
        colors: int = 1,
        size: int = 32,
        classes: int = 10,
        width_multiplier: float = 1.0,
    ) -> None:
        super().__init__()
        if not blocks or not set(blocks) <= set(KERNELS):
            raise InputError(f"`ResNet` needs at least one block, each of 2 or 3 layers; found {list(blocks)}.")
        check_sizes("ResNet", colors=colors, size=size, classes=classes, width_multiplier=width_multiplier)
        channels = scaled(CHANNELS, width_multiplier)
        inputs = (colors * channels, *(channels,) * (len(blocks) - 1))
        self.repeat = Repeat(channels)
        self.blocks = nn.Sequential(
            *(ResidualBlock(a, channels, layers=layers) for a, layers in zip(inputs, blocks, strict=True))
        )
        self.head = nn.Linear(channels * size**2, classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain."""
        blocks = tuple(f"blocks.{index}" for index in range(len(self.blocks)))
        layers: list[str] = []
        for name, block in zip(blocks, self.blocks, strict=True):
            inner = block.get_submodule("inner")
            layers += [f"{name}.inner.{index}" for index, _ in inner.named_children()] + [name]
        return {"layers": tuple(layers), "blocks": blocks}

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        logits: Tensor = self.head(self.blocks(self.repeat(x)).flatten(1))
        return logits
