"""What the runners share: a cell's dtype, shape and recipe, and what is read of its trained network beside the sites."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from equisep.data import Batches
from equisep.errors import InputError
from equisep.figures.cell import Training
from equisep.figures.outcome import Curves
from equisep.measuring import measure
from equisep.results import Reading
from equisep.training import Recipe, Shape

Points = dict[str, tuple[tuple[float, ...], ...]]


def dtype_of(cell: Training) -> torch.dtype:
    """The cell's number type."""
    known = {"float32": torch.float32, "float64": torch.float64}
    if cell.dtype not in known:
        raise InputError(f"A cell trains in float32 or float64; found `{cell.dtype}`.")
    return known[cell.dtype]


def shape_of(cell: Training, *, inputs: int, classes: int, depth: int | None = None) -> Shape:
    """The network's shape; `width_multiplier` scales its hidden widths."""
    for name in ("depth", "width"):
        if (own := getattr(cell, name)) is not None and own < 1:
            raise InputError(f"A network has a `{name}` of 1 or more; the cell asks for {own}.")
    layers = depth or cell.depth or 8
    widths = cell.widths if cell.widths is not None and depth is None else (cell.width or 100,) * (layers - 1)
    scaled = tuple(max(1, round(width * cell.width_multiplier)) for width in widths)
    norm = cell.norm and cell.network != "fnn-no-batchnorm"
    return Shape(scaled, inputs, classes, norm, bool(cell.activation) and cell.network != "fnn-linear")


def recipe_of(cell: Training) -> Recipe:
    """How the cell is trained."""
    return Recipe(
        optimizer=cell.optimizer, rate=cell.rate, epochs=cell.epochs, batch_size=cell.batch_size,
        weight_decay=cell.weight_decay, momentum=cell.momentum, milestones=cell.milestones, factor=cell.factor,
        seed=cell.seed,
    )  # fmt: skip


def weighed(
    cell: Training, network: nn.Module, x: Tensor, y: Tensor, drawn: Tensor | None = None
) -> tuple[Curves, ...]:
    """D after the last epoch under the weightings beside `sample`, in every reading of the cell."""
    curves = []
    for weighting in cell.weightings:
        for reading in cast("tuple[Reading, ...]", cell.readings) if weighting != "sample" else ():
            profile = measure(
                network, Batches(x, y, drawn=drawn), reading=reading, sites=cell.grains[0], weighting=cast("Any", weighting),
                reduction=cell.reductions[0], metrics=["fuzziness"], intervals="none", coordinates=0,
            )  # fmt: skip
            curves.append(
                Curves(
                    epoch=last_epoch(cell), reading=reading, grain=cell.grains[0], reduction=cell.reductions[0],
                    weighting=weighting, sites=tuple(site.name for site in profile.sites),
                    fuzziness=tuple(site.fuzziness for site in profile.sites),
                )
            )  # fmt: skip
    return tuple(curves)


def last_epoch(cell: Training) -> int:
    """The number of the last epoch that is read: all stages of one training count."""
    staged = cell.stages
    if staged is None:
        return cell.epochs
    return cell.epochs + (0 if staged.renew else staged.first_epochs) + staged.last_epochs


def coordinates_of(cell: Training, network: nn.Module, x: Tensor, y: Tensor, drawn: Tensor | None = None) -> Points:
    """Some samples at every site in the site's first two principal components: (x, y, label)."""
    profile = measure(
        network, Batches(x, y, drawn=drawn), reading=cast("Reading", cell.readings[0]), sites=cell.grains[0],
        metrics=["fuzziness"], intervals="none", coordinates=cell.coordinates,
    )  # fmt: skip
    return {
        site.name: tuple(
            (float(a), float(b), float(label)) for (a, b), label in zip(shown.points, shown.labels, strict=True)
        )
        for site in profile.sites
        if (shown := site.coordinates) is not None
    }
