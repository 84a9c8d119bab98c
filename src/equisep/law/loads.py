"""How evenly the layers share the separation, and what that means for robustness (He & Su 2023, Proposition 1)."""

from __future__ import annotations

import numpy as np

from equisep.law.curve import CurveLike, positive_logs
from equisep.shapes import Float64


def loads(curve: CurveLike) -> tuple[float, ...]:
    """The load of each layer, ln D_{l−1} − ln D_l for l = 1 … L − 1; equal loads are the law."""
    logs = positive_logs(curve, asked="loads", least=1)
    return tuple(loads_of(logs).tolist())


def sensitivity(curve: CurveLike) -> float:
    """Σ_l D_{l−1}/D_l, the first-order change of R = D_{L−1}/D_0, relative to R, when every ratio moves by ε.

    He & Su 2023, Proposition 1: with ratios D_l/D_{l−1} + ε, R_ε = R + R·(Σ_l D_{l−1}/D_l)·ε + O(ε²).
    """
    with np.errstate(over="ignore"):  # a ratio beyond the greatest float is infinite, and so is the sum
        return float(np.exp(loads_of(positive_logs(curve, asked="sensitivity", least=2))).sum())


def imbalance(curve: CurveLike) -> float:
    """The sensitivity over its least value at the same R: Σ_l (D_{l−1}/D_l) / ((L−1) R^{−1/(L−1)}) ≥ 1.

    He & Su 2023, Proposition 1: the least value is reached when all ratios are equal, so 1 is the law. Infinite where
    a layer's ratio is beyond the greatest float.
    """
    return imbalance_of(positive_logs(curve, asked="imbalance", least=2))


def loads_of(logs: Float64[np.ndarray, " l"]) -> Float64[np.ndarray, " l-1"]:
    """The loads of a curve given as ln D."""
    return -np.diff(logs)


def imbalance_of(logs: Float64[np.ndarray, " l"]) -> float:
    """The imbalance of a curve given as ln D.

    With δ_l = load_l − mean load it is mean(exp δ_l). As Σ δ_l = 0 this is 1 + mean(expm1 δ_l − δ_l): no term is
    negative, so near the law nothing cancels and the bound 1 holds in floating point too.
    """
    each = loads_of(logs)
    deviations = each - each.mean()
    with np.errstate(over="ignore"):
        excess = np.expm1(deviations) - deviations
    return 1.0 + float(np.maximum(excess, 0.0).mean())
