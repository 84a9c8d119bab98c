"""The quantiles that intervals need, Student's t for whole degrees of freedom and the normal, without scipy."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from equisep.errors import InputError

_HALVINGS = 200  # bisection stops at the last bit long before


def two_sided(level: float) -> float:
    """The probability below the upper limit of a two-sided interval at `level`."""
    if not 0 < level < 1:
        raise InputError(f"An interval needs a level between 0 and 1; found {level}. 0.95 is usual.")
    return (1 + level) / 2


def normal_quantile(p: float) -> float:
    """The p-quantile of the standard normal distribution."""
    _check_probability(p)
    return NormalDist().inv_cdf(p)


@lru_cache(maxsize=256)
def student_quantile(p: float, dof: int) -> float:
    """The p-quantile of Student's t with a whole number of degrees of freedom.

    P(|T| ≤ t) has a closed form in θ = arctan(t/√ν) (Abramowitz & Stegun 26.7.3 and 26.7.4) that rises from 0 to 1
    over 0 ≤ θ ≤ π/2: bisection in θ.
    """
    _check_probability(p)
    if dof < 1:
        raise InputError(f"Student's t needs a whole number of degrees of freedom, 1 or more; found {dof}.")
    if p < 0.5:
        return -student_quantile(1 - p, dof)
    inside = 2 * p - 1
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _inside(middle, dof) < inside:
            low = middle
        else:
            high = middle
    return math.sqrt(dof) * math.tan(low if inside == 0 else (low + high) / 2)


def _inside(theta: float, dof: int) -> float:
    """P(|T| ≤ √ν tan θ), Abramowitz & Stegun 26.7.3 (odd ν) and 26.7.4 (even ν)."""
    sine, cosine = math.sin(theta), math.cos(theta)
    if dof == 1:
        return 2 * theta / math.pi
    # Each term is the one before it times cos²θ · (2j − 1)/2j for even ν, and times cos²θ · 2j/(2j + 1) for odd ν.
    steps = np.arange(1, (dof - 2) // 2 + 1 if dof % 2 == 0 else (dof - 3) // 2 + 1, dtype=np.float64)
    factors = (2 * steps - 1) / (2 * steps) if dof % 2 == 0 else 2 * steps / (2 * steps + 1)
    series = 1.0 + float(np.cumprod(factors * cosine**2).sum())
    return sine * series if dof % 2 == 0 else 2 / math.pi * (theta + sine * cosine * series)


def _check_probability(p: float) -> None:
    if not 0 < p < 1:
        raise InputError(f"A quantile needs a probability between 0 and 1; found {p}.")
