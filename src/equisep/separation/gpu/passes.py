"""What the kernels compute, as functions of tensors: sums by group, residuals, and their products with few directions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from equisep.separation.gpu.runs import GroupRuns
from equisep.shapes import Float64, Int, Shaped

FEW_DIRECTIONS = 32  # up to here products are made while features are read; beyond, cuBLAS is the quicker
LEAST_ROWS = 16  # of a group, on average: sums of fewer rows are as large as the rows
SUMMED_ROWS, SUMMED_TILE, SUMMED_COLUMNS = 512, 2048, 256  # of a run; numbers at once, and columns of these at most
ROWS, COLUMNS, WARPS, STAGES = 64, 32, 4, 3  # of a tile of residuals, what works on it, and tiles that are under way
LEAST_WIDTH = 16  # directions that a tensor core wants at least
ROW_COLUMNS = 1024


def add_rows(sums: Float64[Tensor, "g d"], x: Shaped[Tensor, "n d"], runs: GroupRuns) -> None:
    """sums[g] += Σ x_i over the rows of group g; `runs` are of at most `SUMMED_ROWS` rows."""
    from equisep.separation.gpu.kernels import join_runs, sum_runs

    count, d, groups = len(runs.starts), x.shape[1], len(sums)
    partial = sums.new_empty(count, d)
    columns = min(SUMMED_COLUMNS, max(LEAST_WIDTH, _power(d)))
    blocks = -(-d // columns)
    shape = {"STEP": SUMMED_TILE // columns, "COLUMNS": columns}
    with _there(x):
        sum_runs[(count, blocks)](x, runs.order, runs.starts, runs.lengths, partial, d, x.stride(0), **shape)
        join_runs[(groups, blocks)](partial, runs.firsts, sums, d, sums.stride(0), **shape)


def residual_products(
    x: Shaped[Tensor, "n d"],
    y: Int[Tensor, " n"],
    means: Float64[Tensor, "k d"],
    directions: Float64[Tensor, "d r"],
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, "n r"]]:
    """‖r_i‖² and Vᵀr_i of the residuals r_i = x_i − m_{y_i}, on at most `FEW_DIRECTIONS` directions."""
    from equisep.separation.gpu.kernels import multiply_runs

    (n, d), r = x.shape, directions.shape[1]
    norms, along = directions.new_empty(n), directions.new_empty(n, r)
    runs = GroupRuns.of(y, len(means), rows=ROWS)
    width = max(LEAST_WIDTH, _power(r))
    padded = torch.nn.functional.pad(directions, (0, width - r)).contiguous()  # d w: rows of whole vectors
    shape = {"ROWS": ROWS, "COLUMNS": COLUMNS, "WIDTH": width, "num_warps": WARPS, "num_stages": STAGES}
    with _there(x):
        multiply_runs[(len(runs.starts),)](
            x, runs.order, runs.starts, runs.lengths, runs.groups, means.contiguous(), padded, norms, along,
            d, x.stride(0), r, **shape,
        )  # fmt: skip
    return norms, along


def residuals_of(
    x: Shaped[Tensor, "n d"], y: Int[Tensor, " n"], means: Float64[Tensor, "k d"]
) -> tuple[Float64[Tensor, "n d"], Float64[Tensor, " n"]]:
    """x_i − m_{y_i} in float64, and its squared norm."""
    from equisep.separation.gpu.kernels import subtract_means

    n, d = x.shape
    residuals, norms = means.new_empty(n, d), means.new_empty(n)
    columns = min(ROW_COLUMNS, _power(d))
    with _there(x):
        subtract_means[(n,)](x, y.contiguous(), means.contiguous(), residuals, norms, d, x.stride(0), COLUMNS=columns)
    return residuals, norms


def _power(number: int) -> int:
    """The least power of two that is no smaller."""
    return 1 << max(0, number - 1).bit_length()


def _there(x: Tensor) -> AbstractContextManager[object]:
    """The device of the features is the one that kernels are sent to."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
