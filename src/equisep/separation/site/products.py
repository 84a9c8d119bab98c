"""Residuals of rows from their class means, as products with directions: in float64, by kernels of our own on a GPU."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from equisep.separation.blocks import Block, Room, squared_norms
from equisep.separation.gpu import RunSpread, few_fit, kernels_fit, residual_products, residuals_of
from equisep.separation.group_sums import ClassCenters
from equisep.shapes import Float64, Int, Shaped

ALIGNED = 16  # directions that are multiplied by at once
WIDE = 128  # directions from which on a product of rows is the quicker one


class Projected(NamedTuple):
    """‖r_i‖², Vᵀr_i and W r_i of some rows; the spread of the first two by class, where the kernel has added it up."""

    norms: Float64[Tensor, " n"]
    along: Float64[Tensor, "n r"]
    other: Shaped[Tensor, "n m"] | None = None
    spread: RunSpread | None = None


def projected(
    block: Block,
    y: Int[Tensor, " n"],
    centers: ClassCenters,
    directions: Float64[Tensor, "d r"],
    others: Shaped[Tensor, "m d"] | None = None,
    room: Room | None = None,
) -> Projected:
    """‖r_i‖², Vᵀr_i and W r_i of the residuals r_i = x_i − m_{y_i}, W in its own precision; columns in blocks."""
    room = room or Room()
    if centers.narrow and all(map(kernels_fit, block.parts)) and block.rows:
        return _projected_on_gpu(block, y, centers, directions, others)
    norms = directions.new_zeros(block.rows)
    wide = directions.shape[1] >= WIDE
    along = directions.new_zeros(block.rows, directions.shape[1])
    if not wide:
        along = directions.new_zeros(
            directions.shape[1], block.rows
        ).T  # this way round the thin product is the quicker
    other = None if others is None else others.new_zeros(others.shape[0], block.rows)
    for columns, x in block.columns():
        r = centers.residuals(x, y, columns, room)
        norms += squared_norms(r)
        if wide:
            along.addmm_(r, directions[columns])
        else:
            along.T.addmm_(directions[columns].T, r.T)
        if other is not None and others is not None:
            other.addmm_(others[:, columns], r.to(others.dtype).T)
    return Projected(norms, along, None if other is None else other.T)


def _projected_on_gpu(
    block: Block,
    y: Int[Tensor, " n"],
    centers: ClassCenters,
    directions: Float64[Tensor, "d r"],
    others: Shaped[Tensor, "m d"] | None,
) -> Projected:
    """The same by kernels that read features as they came: few products while they are read, many from residuals."""
    if others is None and few_fit(block.parts[0], directions.shape[1]):
        found = residual_products(block.whole(), y, centers.means, directions)
        return Projected(found.norms, found.along, spread=found.spread)
    width = directions.shape[1]
    padded = torch.nn.functional.pad(directions, (0, -width % ALIGNED))  # d w: odd widths are slow
    norms, along = directions.new_zeros(block.rows), directions.new_empty(block.rows, padded.shape[1])
    other = None if others is None else others.new_zeros(block.rows, others.shape[0])
    for columns, x in block.columns():
        r, squares = residuals_of(x, y, centers.means[:, columns])
        norms += squares
        along.addmm_(r, padded[columns], beta=1 if columns.start else 0)
        if other is not None and others is not None:
            other.addmm_(r.to(others.dtype), others[:, columns].T)
    return Projected(norms, along[:, :width], other)
