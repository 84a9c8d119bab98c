"""What depends on numbers of rows alone is made once for all sites, and anew for other numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from equisep.separation.noise.by_counts import MOST, kept_by_counts


def test_results_are_kept_by_what_the_table_holds() -> None:
    asked: list[int] = []

    def total(counts: Tensor, factor: int) -> int:
        asked.append(factor)
        return factor * int(counts.sum())

    known = kept_by_counts(total)
    table = torch.tensor([[1, 2], [3, 4]])
    assert [known(table, 2), known(table.clone(), 2), known(table, 3)] == [20, 20, 30]
    assert asked == [2, 3]
    table[0, 0] = 5  # the same memory holds another table
    assert known(table, 2) == 28
    assert known(table.flatten().unsqueeze(0), 2) == 28
    assert asked == [2, 3, 2, 2]


def test_large_tables_are_not_kept() -> None:
    asked = []

    def width(counts: Tensor) -> int:
        asked.append(1)
        return counts.shape[1]

    known, table = kept_by_counts(width), torch.ones(1, MOST + 1, dtype=torch.int64)
    assert known(table) == known(table) == MOST + 1
    assert len(asked) == 2


def test_what_is_made_in_inference_serves_gradients() -> None:
    known = kept_by_counts(lambda counts: counts.double())
    with torch.inference_mode():
        made = known(torch.ones(1, 3, dtype=torch.int64))
    assert not made.is_inference()
