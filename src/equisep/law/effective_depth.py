"""Effective depth: from which layer on nearest class centers tell the training samples apart (Galanti & Galanti 2022)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from equisep.errors import InputError

PERFECT = 0.01  # Galanti & Galanti call more than 99 % perfect


def effective_depth(ncc_train: Sequence[float | None], *, epsilon: float = PERFECT) -> int | None:
    """First l ≥ 1 from which on nearest-center training accuracy stays at 1 − ε or more; None if no site qualifies.

    Site 0 is the raw input.
    """
    _check(epsilon)
    depth = None
    for index in range(len(ncc_train) - 1, 0, -1):
        if not is_perfect(ncc_train[index], epsilon):
            break
        depth = index
    return depth


def least_separable(ncc_train: Sequence[float | None], *, epsilon: float = 0.0, above: bool = False) -> int | None:
    """Least l ≥ 1 whose nearest-center training accuracy is at least 1 − ε, or `above` it, as in Galanti & Galanti's figures."""
    _check(epsilon)
    known = (index for index, value in enumerate(ncc_train) if index and is_perfect(value, epsilon, above=above))
    return next(known, None)


def is_perfect(accuracy: float | None, epsilon: float = PERFECT, *, above: bool = False) -> bool:
    """Whether an accuracy is 1 − ε or more; or `above` it, to six digits: figures keep shares that were float32."""
    _check(epsilon)
    if accuracy is None:
        return False
    if above:
        return round(accuracy, 6) > 1 - epsilon
    return accuracy + epsilon >= 1 - sys.float_info.epsilon  # 0.82 + 0.18 rounds below 1


def _check(epsilon: float) -> None:
    if not 0 <= epsilon < 1:
        raise InputError(f"`epsilon` is a share of samples, 0 ≤ ε < 1; found {epsilon}.")
