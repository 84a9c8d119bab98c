"""Products of the passes with factors rounded as tensor cores take them, and a judge of a kernel that should round the same.

Float32 is no judge of TF32 where cuBLAS does not take it (small or odd matrices), and float64 none of an accumulation: rounding
moves a training farther than any error of sums. So both are held against passes in float64 that round the same factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median

import torch
from torch import Tensor
from trained_alone import mixed

from equisep.training import Member, Shape

SEEDS = range(
    0, 50, 10
)  # a number next to a boundary may be rounded to either side, which moves a member here and there


def ten_bits(values: Tensor) -> Tensor:
    """Rounded to 10 bits of mantissa, the nearest, of two the one farther from 0; on any device to the same bits."""
    whole, dropped = (torch.int64, 42) if values.dtype is torch.float64 else (torch.int32, 13)
    return (values.view(whole) + 2 ** (dropped - 1) & -(2**dropped)).view(values.dtype)


@contextmanager
def rounded_products() -> Iterator[None]:
    """Factors of the passes' products are rounded, forward and backward; sums and all else are as they were."""
    bmm, baddbmm = torch.bmm, torch.baddbmm
    torch.bmm = lambda a, b, **out: bmm(ten_bits(a), ten_bits(b), **out)
    torch.baddbmm = lambda c, a, b, **out: baddbmm(c, ten_bits(a), ten_bits(b), **out)
    try:
        yield
    finally:
        torch.bmm, torch.baddbmm = bmm, baddbmm


def many(shape: Shape, *, epochs: int, batch_size: int) -> list[Member]:
    """All optimizers from several starts."""
    members = mixed(shape, epochs=epochs, batch_size=batch_size)
    return [replace(one, recipe=replace(one.recipe, seed=one.recipe.seed + more)) for more in SEEDS for one in members]


def share_of_rounding(
    members: Sequence[Member],
    found: Sequence[Mapping[str, Tensor]],
    rounded: Sequence[Mapping[str, Tensor]],
    exact: Sequence[Mapping[str, Tensor]],
) -> float:
    """How far a kernel is from passes that round, in what rounding moves them: the median member of the worst optimizer.

    1 where it does not round at all; after three steps some 0.01 where sums are all that differs, and above 0.1 for one of the
    shapes of `SMALL_SHAPES` where a single kind of factor stays as it was.
    """

    def gap(one: Mapping[str, Tensor], index: int) -> float:
        wanted = rounded[index]
        names = [name for name, value in wanted.items() if value.is_floating_point()]
        return float(torch.cat([(one[name].double() - wanted[name].double()).flatten() for name in names]).norm())

    shares = []
    for optimizer in {one.recipe.optimizer for one in members}:
        own = [index for index, one in enumerate(members) if one.recipe.optimizer == optimizer]
        gaps = [median(gap(states[index], index) for index in own) for states in (found, exact)]
        shares.append(gaps[0] / gaps[1])
    return max(share if share == share else torch.inf for share in shares)


# where cuBLAS takes no tensor cores
SMALL_SHAPES = [
    Shape((37, 10, 21, 3), inputs=15, classes=7),
    Shape((8, 7), inputs=6, classes=3, norm=False),
    Shape((8,), inputs=6, classes=3, activation=False),
]
