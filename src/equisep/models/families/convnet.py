"""Convolutions of equal width: ConvNet-d-w, on which effective depth was read, and the pure CNN, without stem or pooling."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from torch import Tensor, nn

from equisep.models.families.parts import Conv, check_kernel, check_side, check_sizes, conv_layers, scaled
from equisep.shapes import Float


class ConvNet(nn.Module):
    """ConvNet-d-w with d = `depth` and w = `width` (Galanti & Galanti 2022, Figs. 2, 4, 6).

    Stem: 2 × 2 convolution of w channels with stride 2, BatchNorm, the same again, ReLU; then d times 3 × 3 convolution
    (stride 1, padding 1) of w channels → BatchNorm → ReLU; the classifier reads w · (size/4)². Convolutions with bias.

    Sites: after each of the d layers, so that site l is the paper's layer l; a layer of this network is a block. The
    stem can be read by name, `stem`. `width_multiplier` scales `width`.
    """

    def __init__(
        self,
        depth: int = 5,
        *,
        width: int = 100,
        colors: int = 3,
        size: int = 32,
        classes: int = 10,
        width_multiplier: float = 1.0,
    ) -> None:
        super().__init__()
        check_sizes(
            "ConvNet", depth=depth, width=width, colors=colors, size=size, classes=classes,
            width_multiplier=width_multiplier,
        )  # fmt: skip
        width = scaled(width, width_multiplier)
        self.stem = nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(colors, width, 2, stride=2),
                norm1=nn.BatchNorm2d(width),
                conv2=nn.Conv2d(width, width, 2, stride=2),
                norm2=nn.BatchNorm2d(width),
                relu=nn.ReLU(),
            )
        )
        self.layers = conv_layers(width, [Conv(width, 3)] * depth)
        self.head = nn.Linear(width * check_side("ConvNet", self.stem, size) ** 2, classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain; a layer of this network is a block."""
        names = tuple(f"layers.{index}" for index in range(len(self.layers)))
        return {"layers": names, "blocks": names}

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        logits: Tensor = self.head(self.layers(self.stem(x)).flatten(1))
        return logits


class PureCnn(nn.Module):
    """VGG11's eight 3 × 3 convolutions with equal channels and no pooling, one linear layer (He & Su 2023, Fig. S3).

    Convolution (stride 1, padding 1, with bias) → BatchNorm → ReLU, `depth` times; the classifier reads
    channels · size². The paper has 64 channels on Fashion-MNIST, 16 on CIFAR-10.

    Sites: after every ReLU; a layer of this network is a block. `width_multiplier` scales `channels`.
    """

    def __init__(
        self,
        depth: int = 8,
        *,
        channels: int = 64,
        kernel: int = 3,
        colors: int = 1,
        size: int = 32,
        classes: int = 10,
        width_multiplier: float = 1.0,
    ) -> None:
        super().__init__()
        check_sizes(
            "PureCnn", depth=depth, channels=channels, colors=colors, size=size, classes=classes,
            width_multiplier=width_multiplier,
        )  # fmt: skip
        check_kernel("PureCnn", kernel)
        width = scaled(channels, width_multiplier)
        self.features = conv_layers(colors, [Conv(width, kernel)] * depth)
        self.head = nn.Linear(width * size**2, classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain; a layer of this network is a block."""
        names = tuple(f"features.{index}" for index in range(len(self.features)))
        return {"layers": names, "blocks": names}

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        logits: Tensor = self.head(self.features(x).flatten(1))
        return logits
