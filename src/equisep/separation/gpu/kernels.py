"""The kernels themselves, in Triton's language; `passes.py` calls them.

Rows come by an `order` that lists them group by group, cut into runs of one group each: a run shares one class mean, and
is summed without looking at labels. Sums, residuals and products are float64 whatever the features are.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_runs(
    x, order, starts, lengths, partial, d, stride, STEP: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """partial[run] = Σ of the rows of a run, some columns."""
    run = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < d
    start, length = tl.load(starts + run), tl.load(lengths + run)
    total = tl.zeros([STEP, COLUMNS], tl.float64)
    for begin in range(0, length, STEP):
        at = begin + tl.arange(0, STEP)
        rows = tl.load(order + start + at, mask=at < length, other=0)
        there = (at < length)[:, None] & inside[None, :]
        total += tl.load(x + rows[:, None] * stride + columns[None, :], mask=there, other=0.0).to(tl.float64)
    tl.store(partial + run * d + columns, tl.sum(total, axis=0), mask=inside)


@triton.jit
def join_runs(partial, firsts, sums, d, stride, STEP: tl.constexpr, COLUMNS: tl.constexpr):
    """sums[group] += Σ of the runs of a group, which follow each other: always in one order, so the same to the last bit."""
    group = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < d
    first, end = tl.load(firsts + group), tl.load(firsts + group + 1)
    total = tl.zeros([STEP, COLUMNS], tl.float64)
    for begin in range(0, end - first, STEP):
        at = begin + tl.arange(0, STEP)
        there = (at < end - first)[:, None] & inside[None, :]
        total += tl.load(partial + (first + at)[:, None] * d + columns[None, :], mask=there, other=0.0)
    target = sums + group * stride + columns
    tl.store(target, tl.load(target, mask=inside, other=0.0) + tl.sum(total, axis=0), mask=inside)


@triton.jit
def multiply_runs(
    x, order, starts, lengths, groups, means, directions, norms, along, partial, d, stride, r,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, WIDENED: tl.constexpr,
):  # fmt: skip
    """norms[i] = ‖x_i − m‖² and along[i] = Vᵀ(x_i − m) of the rows of a run; nothing as wide as the features is written.

    partial[run] = Σ along_i, Σ (along_i − their mean)² and Σ norms_i. Squares are added up by a product with ones: as both
    factors of products they are wanted in one place, and each number is read and converted once.
    """
    run = tl.program_id(0).to(tl.int64)
    start, length, group = tl.load(starts + run), tl.load(lengths + run), tl.load(groups + run)
    at, j = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    valid = at < length
    rows = tl.load(order + start + at, mask=valid, other=0)
    ones = tl.full([COLUMNS, 8], 1.0, tl.float64)
    squares = tl.zeros([ROWS, 8], tl.float64)
    products = tl.zeros([ROWS, WIDTH], tl.float64)
    for begin in range(0, d, COLUMNS):
        columns = begin + tl.arange(0, COLUMNS)
        inside = columns < d
        mean = tl.load(means + group * d + columns, mask=inside, other=0.0)
        there = valid[:, None] & inside[None, :]
        value = tl.load(x + rows[:, None] * stride + columns[None, :], mask=there, other=0.0)
        if WIDENED:  # the compiler has no float64 product of numbers that came in 16 bits, and sees through conversions
            value = tl.inline_asm_elementwise(
                "mov.b32 $0, $1;", "=f,f", [value.to(tl.float32)], dtype=tl.float32, is_pure=False, pack=1
            )
        value = value.to(tl.float64) - mean[None, :]
        direction = tl.load(directions + columns[:, None] * WIDTH + j[None, :], mask=inside[:, None], other=0.0)
        squares = tl.dot(value * value, ones, squares, out_dtype=tl.float64)
        products = tl.dot(value, direction, products, out_dtype=tl.float64)
    size = tl.where(valid, tl.sum(squares, axis=1) / 8, 0.0)
    mine, kept = valid[:, None], (j < r)[None, :]
    tl.store(norms + rows, size, mask=valid)
    tl.store(along + rows[:, None] * r + j[None, :], products, mask=mine & kept)
    total = tl.sum(tl.where(mine, products, 0.0), axis=0)
    middle = total / tl.maximum(length, 1).to(tl.float64)
    off = tl.where(mine, products - middle[None, :], 0.0)
    target = partial + run * (2 * r + 1)
    tl.store(target + j, total, mask=j < r)
    tl.store(target + r + j, tl.sum(off * off, axis=0), mask=j < r)
    tl.store(target + 2 * r, tl.sum(size, axis=0))


@triton.jit
def spread_runs(
    along, norms, order, starts, lengths, partial, r, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """partial[run] = Σ along_i, Σ (along_i − their mean)² and Σ norms_i of the rows of a run, some columns."""
    run = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at, inside = tl.arange(0, ROWS), columns < r
    start, length = tl.load(starts + run), tl.load(lengths + run)
    valid = at < length
    rows = tl.load(order + start + at, mask=valid, other=0)
    there = valid[:, None] & inside[None, :]
    value = tl.load(along + rows[:, None] * stride + columns[None, :], mask=there, other=0.0)
    total = tl.sum(value, axis=0)
    middle = total / tl.maximum(length, 1).to(tl.float64)
    off = tl.where(there, value - middle[None, :], 0.0)
    target = partial + run * (2 * r + 1)
    tl.store(target + columns, total, mask=inside)
    tl.store(target + r + columns, tl.sum(off * off, axis=0), mask=inside)
    if tl.program_id(1) == 0:
        tl.store(target + 2 * r, tl.sum(tl.load(norms + rows, mask=valid, other=0.0), axis=0))


@triton.jit
def subtract_means(x, y, means, residuals, norms, d, stride, COLUMNS: tl.constexpr):
    """residuals[i] = x_i − m_{y_i} and norms[i] = its squared norm, a row per program."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.load(y + row)
    squares = tl.zeros([COLUMNS], tl.float64)
    for begin in range(0, d, COLUMNS):
        columns = begin + tl.arange(0, COLUMNS)
        inside = columns < d
        value = tl.load(x + row * stride + columns, mask=inside, other=0.0).to(tl.float64)
        value -= tl.load(means + group * d + columns, mask=inside, other=0.0)
        tl.store(residuals + row * d + columns, value, mask=inside)
        squares += value * value
    tl.store(norms + row, tl.sum(squares, axis=0))
