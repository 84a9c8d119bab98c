"""MLP-d-w: the feed-forward network under the name and count of layers of the papers on effective depth."""

from __future__ import annotations

from equisep.models.families.fnn import Fnn
from equisep.models.families.parts import check_sizes


def mlp(depth: int = 8, *, width: int = 100, inputs: int = 3 * 32 * 32, classes: int = 10) -> Fnn:
    """MLP-d-w with d = `depth` hidden layers of w = `width` (Galanti & Galanti 2022, Figs. 1, 3): FNN of L = d + 1.

    A hidden layer is Linear → BatchNorm → ReLU; site l is the paper's layer l. The inputs are CIFAR-10's.
    """
    check_sizes("mlp", depth=depth, width=width, inputs=inputs, classes=classes)
    return Fnn(depth + 1, width=width, inputs=inputs, classes=classes)
