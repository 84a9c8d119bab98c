"""The feed-forward network of the papers, read after every hidden layer, and the controls that lack one part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from torch import Tensor, nn

from equisep.errors import InputError
from equisep.models.families.parts import check_sizes, linear_layer
from equisep.shapes import Float


class Fnn(nn.Module):
    """FNN of `depth` linear layers, the classifier included (He & Su 2023).

    Hidden layer = Linear (with bias) → BatchNorm1d → ReLU; the last layer is linear. Inputs are flattened.
    `widths` gives the hidden widths one by one and replaces `depth` and `width`. `norm=False` leaves BatchNorm out,
    `activation=False` ReLU (the linear control). The sites are the outputs of the hidden layers; the input is site 0.

    Weights are torch's default ones: build after `torch.manual_seed(seed)`, or through `equisep.models.build`.

    >>> import torch, equisep
    >>> model = equisep.Fnn(depth=3, width=20, inputs=8, classes=4)
    >>> tuple(model(torch.zeros(5, 8)).shape)
    (5, 4)
    >>> [name for name, _ in model.blocks.named_children()]
    ['0', '1']
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


def mlp(depth: int = 8, *, width: int = 100, inputs: int = 3 * 32 * 32, classes: int = 10) -> Fnn:
    """MLP-d-w with d = `depth` hidden layers of w = `width` (Galanti & Galanti 2022, Figs. 1, 3): FNN of L = d + 1.

    A hidden layer is Linear → BatchNorm → ReLU; site l is the paper's layer l. The inputs are CIFAR-10's.
    """
    check_sizes("mlp", depth=depth, width=width, inputs=inputs, classes=classes)
    return Fnn(depth + 1, width=width, inputs=inputs, classes=classes)


def fnn_linear(
    depth: int = 20,
    *,
    width: int = 100,
    widths: Sequence[int] | None = None,
    inputs: int = 100,
    classes: int = 10,
) -> Fnn:
    """FNN without ReLU, BatchNorm kept (He & Su 2023, by the authors' code): no law, D nearly constant."""
    return Fnn(depth, width=width, widths=widths, inputs=inputs, classes=classes, activation=False)


def fnn_no_batchnorm(
    depth: int = 20,
    *,
    width: int = 100,
    widths: Sequence[int] | None = None,
    inputs: int = 100,
    classes: int = 10,
) -> Fnn:
    """FNN without BatchNorm, ReLU kept (He & Su 2023, Fig. S10): no clear law."""
    return Fnn(depth, width=width, widths=widths, inputs=inputs, classes=classes, norm=False)
