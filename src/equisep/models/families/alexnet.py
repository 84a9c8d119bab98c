"""AlexNet for images of 32 × 32: the original kernels, and the wide form on which the law was read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor, nn

from equisep.models.families.parts import (
    Conv,
    Repeat,
    check_side,
    check_sizes,
    linear_layers,
    pooled_blocks,
    pooled_sites,
    scaled,
)
from equisep.shapes import Float

# a pool after each group
ORIGINAL = ((Conv(64, 11, stride=4),), (Conv(192, 5),), (Conv(384, 3), Conv(256, 3), Conv(256, 3)))
WIDE = ((Conv(64, 5),), (Conv(192, 5),), (Conv(384, 5), Conv(256, 5), Conv(256, 5)))
HIDDEN = (4096, 4096)
COPIES = 32  # of the input, in the wide form


class AlexNet(nn.Module):
    """AlexNet without dropout, BatchNorm after every layer but the classifier (He & Su 2023, Fig. 4).

    Convolutions (with bias) of 64, pool, 192, pool, 384, 256, 256, pool; max-pools 3 × 3, stride 2, padding 1; linear
    layers 4096, 4096; classifier.
    Original: the first convolution 11 × 11 with stride 4 and padding 5, the second 5 × 5, the others 3 × 3; at 32 × 32
    the linear layers read 256 numbers.
    `wide`: the input's channels repeated 32 times, every convolution 5 × 5 with stride 1 and padding 2; they read 256·4·4.

    Sites: after every ReLU, before pooling (`layers`); the last of them before each pool, and each linear layer
    (`blocks`). `width_multiplier` scales every width but those of the raw input and of the output.
    """

    def __init__(
        self,
        *,
        wide: bool = False,
        colors: int = 1,
        size: int = 32,
        classes: int = 10,
        width_multiplier: float = 1.0,
    ) -> None:
        super().__init__()
        check_sizes("AlexNet", colors=colors, size=size, classes=classes, width_multiplier=width_multiplier)
        times = scaled(COPIES, width_multiplier) if wide else 1
        plan = [
            [conv._replace(channels=scaled(conv.channels, width_multiplier)) for conv in group]
            for group in (WIDE if wide else ORIGINAL)
        ]
        hidden = [scaled(width, width_multiplier) for width in HIDDEN]
        self.repeat = Repeat(times)
        self.features = pooled_blocks(colors * times, plan, partial(nn.MaxPool2d, 3, stride=2, padding=1))
        side = check_side("AlexNet", self.features, size)
        self.hidden = linear_layers(plan[-1][-1].channels * side**2, hidden)
        self.head = nn.Linear(hidden[-1], classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain."""
        return pooled_sites(self.features, self.hidden)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        logits: Tensor = self.head(self.hidden(self.features(self.repeat(x)).flatten(1)))
        return logits


def alexnet_wide(*, colors: int = 1, size: int = 32, classes: int = 10, width_multiplier: float = 1.0) -> AlexNet:
    """AlexNet with repeated input and 5 × 5 kernels throughout (He & Su 2023, Fig. 4, by the authors' code)."""
    return AlexNet(wide=True, colors=colors, size=size, classes=classes, width_multiplier=width_multiplier)
