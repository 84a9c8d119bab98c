"""What the kernels compute, as functions of tensors: sums by group, residuals, and their products with few directions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.gpu.runs import GroupRuns, in_tiles
from equisep.shapes import Float64, Int, Shaped

FEW_DIRECTIONS = 32  # up to here products are made while features are read; beyond, cuBLAS is the quicker
LEAST_ROWS = 16  # of a group, on average: sums of fewer rows are as large as the rows
SUMMED_ROWS, SUMMED_TILE, SUMMED_COLUMNS = 512, 4096, 512  # of a run; numbers at once, and columns of these at most
ROWS, COLUMNS, WARPS, STAGES = 64, 32, 4, 3  # of a tile of residuals, what works on it, and tiles that are under way
LEAST_WIDTH = 16  # directions that a tensor core wants at least
ROW_COLUMNS = 1024
SPREAD_ROWS, SPREAD_COLUMNS = 16, 128  # of a tile of products


@dataclass(frozen=True, slots=True)
class RunSpread:
    """Of every run: Σ a_i, Σ (a_i − their mean)² and Σ ‖r_i‖², with a_i the products of a row and r_i its residual."""

    runs: GroupRuns
    partial: Float64[Tensor, "m c"]

    def by_group(
        self,
    ) -> tuple[Int[Tensor, " g"], Float64[Tensor, "g r"], Float64[Tensor, "g r"], Float64[Tensor, " g"]]:
        """Of every group: rows, means, squares about these, and Σ ‖r_i‖² (Chan, Golub & LeVeque 1979)."""
        runs, partial, r = self.runs, self.partial, self.partial.shape[1] // 2
        sums = partial.new_zeros(len(runs.counts), partial.shape[1])
        _join(sums, partial, runs)
        means = sums[:, :r] / runs.counts.clamp(min=1).unsqueeze(1)
        lengths = runs.lengths.unsqueeze(1)
        moved = partial[:, :r] / lengths.clamp(min=1) - means.index_select(0, runs.groups)
        squares = sums[:, r : 2 * r].contiguous()
        _join(squares, moved.square_().mul_(lengths), runs)
        return runs.counts, means, squares, sums[:, 2 * r]


@dataclass(frozen=True, slots=True)
class RowProducts:
    """‖r_i‖² and Vᵀr_i of the rows, and their spread by run."""

    norms: Float64[Tensor, " n"]
    along: Float64[Tensor, "n r"]
    spread: RunSpread


def add_rows(sums: Float64[Tensor, "g d"], x: Shaped[Tensor, "n d"], runs: GroupRuns) -> None:
    """sums[g] += Σ x_i over the rows of group g; `runs` are of at most `SUMMED_ROWS` rows."""
    from equisep.separation.gpu.kernels import sum_runs

    count, d = len(runs.starts), x.shape[1]
    partial = sums.new_empty(count, d)
    shape = _summed(d)
    with _there(x):
        grid = count, -(-d // shape["COLUMNS"])
        sum_runs[grid](x, runs.order, runs.starts, runs.lengths, partial, d, x.stride(0), **shape)
    _join(sums, partial, runs)


def _join(sums: Float64[Tensor, "g d"], partial: Float64[Tensor, "m d"], runs: GroupRuns) -> None:
    """sums[g] += Σ over the runs of group g."""
    from equisep.separation.gpu.kernels import join_runs

    d, shape = sums.shape[1], _summed(sums.shape[1])
    with _there(sums):
        join_runs[(len(sums), -(-d // shape["COLUMNS"]))](partial, runs.firsts, sums, d, sums.stride(0), **shape)


def _summed(d: int) -> dict[str, int]:
    columns = min(SUMMED_COLUMNS, max(LEAST_WIDTH, _power(d)))
    return {"STEP": SUMMED_TILE // columns, "COLUMNS": columns}


def few_fit(x: Shaped[Tensor, "n d"], directions: int) -> bool:
    """Whether so many products of rows are made while these are read."""
    return directions <= FEW_DIRECTIONS and in_tiles(x.device)


def residual_products(
    x: Shaped[Tensor, "n d"],
    y: Int[Tensor, " n"],
    means: Float64[Tensor, "k d"],
    directions: Float64[Tensor, "d r"],
) -> RowProducts:
    """‖r_i‖² and Vᵀr_i of the residuals r_i = x_i − m_{y_i}, on at most `FEW_DIRECTIONS` directions, and their spread."""
    from equisep.separation.gpu.kernels import multiply_runs

    (n, d), r = x.shape, directions.shape[1]
    norms, along = directions.new_empty(n), directions.new_empty(n, r)
    runs = GroupRuns.of(y, len(means), rows=ROWS)
    width = max(LEAST_WIDTH, _power(r))
    padded = torch.nn.functional.pad(directions, (0, width - r)).contiguous()  # d w: rows of whole vectors
    partial = norms.new_empty(len(runs.starts), 2 * r + 1)
    # on a CPU it is interpreted, and has no assembler
    widened = x.is_cuda and x.dtype.itemsize < torch.float32.itemsize
    shape = {"ROWS": ROWS, "COLUMNS": COLUMNS, "WIDTH": width, "num_warps": WARPS, "num_stages": STAGES}
    with _there(x):
        multiply_runs[(len(runs.starts),)](
            x, runs.order, runs.starts, runs.lengths, runs.groups, means.contiguous(), padded, norms, along, partial,
            d, x.stride(0), r, WIDENED=widened, **shape,
        )  # fmt: skip
    return RowProducts(norms, along, RunSpread(runs, partial))


def spread_of(
    along: Float64[Tensor, "n r"], norms: Float64[Tensor, " n"], y: Int[Tensor, " n"], groups: int
) -> RunSpread:
    """The spread of products that are known already."""
    from equisep.separation.gpu.kernels import spread_runs

    r = along.shape[1]
    runs = GroupRuns.of(y, groups, rows=SPREAD_ROWS)
    partial = along.new_empty(len(runs.starts), 2 * r + 1)
    along = along if along.stride(1) == 1 else along.contiguous()
    columns = min(SPREAD_COLUMNS, _power(r))
    with _there(along):
        spread_runs[(len(runs.starts), max(1, -(-r // columns)))](
            along, norms, runs.order, runs.starts, runs.lengths, partial, r, along.stride(0),
            ROWS=SPREAD_ROWS, COLUMNS=columns,
        )  # fmt: skip
    return RunSpread(runs, partial)


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
