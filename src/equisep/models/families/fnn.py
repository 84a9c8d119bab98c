"""The feed-forward network of the papers: L linear layers, normalized and rectified, read after every hidden layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from torch import Tensor, nn

from equisep.errors import InputError
from equisep.models.families.parts import linear_layer
from equisep.shapes import Float


class Fnn(nn.Module):
    """FNN of `depth` linear layers, the classifier included (He & Su 2023).

    Hidden layer = Linear (with bias) → BatchNorm1d → ReLU; the last layer is linear. Inputs are flattened.
    `widths` gives the hidden widths one by one and replaces `depth` and `width`. `norm=False` leaves BatchNorm out,
    `activation=False` ReLU (the linear control). The sites are the outputs of the hidden layers; the input is site 0.

    Weights are torch's default ones: build after `torch.manual_seed(seed)`, or through `equisep.models.build`.
    """

    def __init__(
        self,
        depth: int = 8,
        *,
        width: int = 100,
        widths: Sequence[int] | None = None,
        inputs: int = 100,
        classes: int = 10,
        norm: bool = True,
        activation: bool = True,
    ) -> None:
        super().__init__()
        hidden = tuple(widths) if widths is not None else (width,) * (depth - 1 if isinstance(depth, int) else 0)
        if not all(isinstance(size, int) and size >= 1 for size in (depth, inputs, classes, *hidden)):
            raise InputError(
                f"`Fnn` needs depth, widths, inputs and classes of at least 1; found depth={depth}, "
                f"widths={list(hidden)}, inputs={inputs}, classes={classes}."
            )
        self.blocks = nn.Sequential(
            *(linear_layer(a, b, norm=norm, activation=activation) for a, b in pairwise((inputs, *hidden)))
        )
        self.head = nn.Linear((inputs, *hidden)[-1], classes)

    @property
    def depth(self) -> int:
        """L, the number of linear layers with the classifier."""
        return len(self.blocks) + 1

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain; a layer of this network is a block."""
        names = tuple(f"blocks.{index}" for index in range(len(self.blocks)))
        return {"layers": names, "blocks": names}

    def forward(self, x: Float[Tensor, "b ..."]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of any shape."""
        logits: Tensor = self.head(self.blocks(x.flatten(1)))
        return logits
