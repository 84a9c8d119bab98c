"""The controls: feed-forward networks that lack one part, and with it the law."""

from __future__ import annotations

from collections.abc import Sequence

from equisep.models.families.fnn import Fnn


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
