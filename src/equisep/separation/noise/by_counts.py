"""Functions of the numbers of rows alone, whose results are kept: all sites of a data set ask for the same ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple

import numpy as np
import torch
from torch import Tensor

MOST = (
    2**11
)  # numbers of rows, of all classes in all labelings, up to which results are kept: matrices of K × K are among them
KEPT = 8  # data sets and questions at a time

Rest = TypeVarTuple("Rest")
R = TypeVar("R")


def kept_by_counts(make: Callable[[Tensor, *Rest], R]) -> Callable[[Tensor, *Rest], R]:
    """The same function of a table of row numbers, which remembers its latest results on a CPU. Nobody writes into these."""

    @lru_cache(maxsize=KEPT)
    def made(shape: tuple[int, ...], table: bytes, *rest: *Rest) -> R:
        with torch.inference_mode(False):  # what a validation makes serves others too
            return make(torch.from_numpy(np.frombuffer(table, dtype=np.int64).reshape(shape).copy()), *rest)

    @wraps(make)
    def known(counts: Tensor, *rest: *Rest) -> R:
        if counts.device.type != "cpu" or counts.numel() > MOST:
            return make(counts, *rest)
        return made(tuple(counts.shape), counts.numpy().tobytes(), *rest)

    return known
