"""The pure CNN: convolutions of equal width and nothing else before the classifier."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from equisep.models.families.parts import Conv, check_kernel, check_sizes, conv_layers, scaled
from equisep.shapes import Float


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
