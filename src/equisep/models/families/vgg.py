"""VGG for images of 32 × 32: the usual form with one linear layer, and the wide form on which the law was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from torch import Tensor, nn

from equisep.errors import InputError
from equisep.models.families.parts import (
    Conv,
    Repeat,
    check_kernel,
    check_side,
    check_sizes,
    linear_layers,
    pooled_blocks,
    pooled_sites,
    scaled,
)
from equisep.shapes import Float

CHANNELS = (64, 128, 256, 512, 512)  # a max-pool 2 × 2 after each block
CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}  # in each block


class Vgg(nn.Module):
    """VGG 11, 13, 16 or 19 without dropout, BatchNorm after every convolution (He & Su 2023, Fig. S2: CIFAR form).

    Blocks of 64, 128, 256, 512 and 512 channels, convolutions `kernel` × `kernel` (with bias), max-pool 2 × 2 after each
    block, then `hidden` linear layers with BatchNorm and ReLU, then the classifier, which reads 512 numbers at 32 × 32.
    The defaults are the original form; `vgg_wide` is the wide one (Fig. 4). `repeat` gives the input's channels that
    many times, `pool=False` leaves the pools out: the factors of the paper's delicate balance.

    Sites: after every ReLU, before pooling (`layers`); the last of them in each block, and each hidden linear layer
    (`blocks`). `width_multiplier` scales every width but those of the raw input and of the output.
    """

    def __init__(
        self,
        depth: int = 13,
        *,
        kernel: int = 3,
        repeat: int = 1,
        hidden: Sequence[int] = (),
        pool: bool = True,
        colors: int = 1,
        size: int = 32,
        classes: int = 10,
        width_multiplier: float = 1.0,
    ) -> None:
        super().__init__()
        if depth not in CONVOLUTIONS:
            raise InputError(f"`Vgg` has a depth of {', '.join(map(str, CONVOLUTIONS))}; found {depth}.")
        check_sizes(
            "Vgg", repeat=repeat, hidden=min(hidden, default=1), colors=colors, size=size, classes=classes,
            width_multiplier=width_multiplier,
        )  # fmt: skip
        check_kernel("Vgg", kernel)
        channels = [scaled(number, width_multiplier) for number in CHANNELS]
        plan = [[Conv(c, kernel)] * count for c, count in zip(channels, CONVOLUTIONS[depth], strict=True)]
        times = scaled(repeat, width_multiplier) if repeat > 1 else 1
        self.depth = depth
        self.repeat = Repeat(times)
        self.features = pooled_blocks(colors * times, plan, partial(nn.MaxPool2d, 2) if pool else nn.Identity)
        inputs = channels[-1] * check_side("Vgg", self.features, size) ** 2
        widths = [scaled(width, width_multiplier) for width in hidden]
        self.hidden = linear_layers(inputs, widths)
        self.head = nn.Linear((inputs, *widths)[-1], classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain."""
        return pooled_sites(self.features, self.hidden)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        logits: Tensor = self.head(self.hidden(self.features(self.repeat(x)).flatten(1)))
        return logits


def vgg_wide(
    depth: int = 13, *, colors: int = 1, size: int = 32, classes: int = 10, width_multiplier: float = 1.0
) -> Vgg:
    """VGG with the input repeated 16 times, 5 × 5 kernels and two linear layers of 4096 (He & Su 2023, Fig. 4)."""
    return Vgg(
        depth, kernel=5, repeat=16, hidden=(4096, 4096), colors=colors, size=size, classes=classes,
        width_multiplier=width_multiplier,
    )  # fmt: skip
