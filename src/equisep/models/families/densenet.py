"""DenseNet161 in CIFAR form: every layer of a block reads all layers before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from equisep.models.families.parts import check_sizes, scaled
from equisep.shapes import Float

LAYERS = (6, 12, 36, 24)  # in each dense block
GROWTH = 48  # channels that each of them adds
BOTTLENECK = 4  # the 1 × 1 convolution's channels, in units of the growth


class DenseLayer(nn.Module):
    """BatchNorm, ReLU, 1 × 1 convolution, BatchNorm, ReLU, 3 × 3 convolution; the new channels follow the old ones."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(inputs, BOTTLENECK * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(BOTTLENECK * growth)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(BOTTLENECK * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Float[Tensor, "b _ h w"]) -> Float[Tensor, "b _ h w"]:
        """All channels so far and the new ones."""
        new = self.conv1(self.relu1(self.norm1(x)))
        return torch.cat([x, self.conv2(self.relu2(self.norm2(new)))], dim=1)


class DenseNet161(nn.Module):
    """DenseNet161 in CIFAR form (He & Su 2023, Fig. 8; Huang et al. 2017): growth 48, blocks of 6, 12, 36, 24 layers.

    Stem 3 × 3 of 96 channels; dense blocks `dense1` … `dense4`; between them BatchNorm, ReLU, 1 × 1 convolution to half
    the channels and average pool 2 × 2; at the end BatchNorm, ReLU, average over the image (a pool of 4 at 32 × 32) and
    the classifier, which reads 2208 numbers. Convolutions without bias.

    Sites: the output of each dense block, before it is normalized and pooled (`blocks`); each of the 160 ReLUs, one
    before every convolution but the stem's, and the last before pooling (`layers`).
    `width_multiplier` scales the growth; the stem keeps twice as many channels.
    """

    def __init__(self, *, colors: int = 3, classes: int = 10, width_multiplier: float = 1.0) -> None:
        super().__init__()
        check_sizes("DenseNet161", colors=colors, classes=classes, width_multiplier=width_multiplier)
        growth = scaled(GROWTH, width_multiplier)
        channels = 2 * growth
        self.stem = nn.Conv2d(colors, channels, 3, padding=1, bias=False)
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        for index, layers in enumerate(LAYERS, start=1):
            parts[f"dense{index}"] = nn.Sequential(*(DenseLayer(channels + i * growth, growth) for i in range(layers)))
            channels += layers * growth
            if index < len(LAYERS):
                parts[f"transition{index}"] = _transition(channels)
                channels //= 2
        self.features = nn.Sequential(parts)
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain."""
        layers: list[str] = []
        for index, count in enumerate(LAYERS, start=1):
            layers += [f"features.dense{index}.{i}.relu{j}" for i in range(count) for j in (1, 2)]
            layers.append(f"features.transition{index}.relu" if index < len(LAYERS) else "relu")
        return {
            "layers": tuple(layers),
            "blocks": tuple(f"features.dense{index}" for index in range(1, len(LAYERS) + 1)),
        }

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        h = self.relu(self.norm(self.features(self.stem(x))))
        logits: Tensor = self.head(self.pool(h).flatten(1))
        return logits


def _transition(channels: int) -> nn.Sequential:
    """Half the channels, half the resolution."""
    return nn.Sequential(
        OrderedDict(
            norm=nn.BatchNorm2d(channels),
            relu=nn.ReLU(),
            conv=nn.Conv2d(channels, channels // 2, 1, bias=False),
            pool=nn.AvgPool2d(2),
        )
    )
