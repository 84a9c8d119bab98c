"""Weights of classes, and terms added to their scores, from class sizes alone: what practice uses against imbalance.

Weights are for torch's `CrossEntropyLoss(weight=…)`, which divides by their sum, so that only their ratios matter: the most
frequent class has the weight 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equisep.errors import InputError
from equisep.shapes import Float64

BETA = 0.999  # of the effective number of samples; Cui et al. 2019 try 0.9 to 0.9999


def inverse_frequency(counts: Sequence[int]) -> tuple[float, ...]:
    """w_k ∝ 1/n_k: every class weighs as much as every other."""
    return _scaled(1 / _counted(counts))


def effective_number(counts: Sequence[int], beta: float = BETA) -> tuple[float, ...]:
    """w_k ∝ (1 − β)/(1 − β^{n_k}), one over the effective number of samples (Cui et al. 2019)."""
    if not 0 < beta < 1:
        raise InputError(f"The effective number of samples takes a β between 0 and 1; found {beta:g}. Try 0.999.")
    return _scaled(1 / -np.expm1(_counted(counts) * np.log(beta)))


def logit_adjustment(counts: Sequence[int], strength: float = 1.0) -> tuple[float, ...]:
    """τ log π_k, added to the scores in the loss alone; π_k the share of class k (Menon et al. 2021, equation 10)."""
    each = _counted(counts)
    return tuple((strength * np.log(each / each.sum())).tolist())


def _scaled(weights: Float64[np.ndarray, " k"]) -> tuple[float, ...]:
    return tuple((weights / weights.min()).tolist())


def _counted(counts: Sequence[int]) -> Float64[np.ndarray, " k"]:
    each = np.asarray(counts, dtype=np.float64)
    if each.ndim != 1 or len(each) < 2 or not (each >= 1).all():
        raise InputError(
            f"Weights of classes need a sample of each of 2 classes or more; found the sizes {list(counts)}. Leave out "
            "classes without samples."
        )
    return each
