"""D and D_k to 60 digits, with no eigenvalue, no cut and no rounding to argue about; for small data only.

Any center m = Σ t_k m_k lies among the class means, so that the rows √w_k (m_k − m) of B are A F, with F the K−1
differences m_k − m_K. Where F has full row rank, BᵀB = CᵀC with C = Lᵀ F and L Lᵀ = AᵀA, and SSb⁺ = Cᵀ(C Cᵀ)⁻²C.
Where K − 1 ≥ d, SSb is invertible. Both are solved exactly in 60 digits: a condition number of 1e12 costs 12 of them.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

DIGITS = 60


def fuzziness(
    x: NDArray[np.floating], y: NDArray[np.int64], *, weighting: str = "sample", center: str | None = None
) -> float:
    """D = Σ_k w_k D_k, w_k = n_k/n or 1/K (`class`)."""
    names, counts = np.unique(y, return_counts=True)
    with mp.workdps(DIGITS):
        parts = _class_fuzziness(x, y, weighting, center)
        shares = [mp.mpf(1) / len(names) if weighting == "class" else mp.mpf(int(c)) / len(y) for c in counts]
        return float(mp.fdot(shares, parts))


def class_fuzziness(
    x: NDArray[np.floating], y: NDArray[np.int64], *, weighting: str = "sample", center: str | None = None
) -> list[float]:
    """D_k = Tr(SSw^k SSb⁺)."""
    with mp.workdps(DIGITS):
        return [float(value) for value in _class_fuzziness(x, y, weighting, center)]


def _class_fuzziness(x: NDArray[np.floating], y: NDArray[np.int64], weighting: str, center: str | None) -> list[mp.mpf]:
    names, counts = np.unique(y, return_counts=True)
    k, d = len(names), x.shape[1]
    exact = [[mp.mpf(float(value)) for value in row] for row in x]
    members = [[row for row, label in zip(exact, y, strict=True) if label == name] for name in names]
    means = [[mp.fsum(column) / len(rows) for column in zip(*rows, strict=True)] for rows in members]
    by_sample = [mp.mpf(int(c)) / len(y) for c in counts]
    by_class = [mp.mpf(1) / k] * k
    between = by_sample if weighting == "sample" else by_class
    towards = by_sample if (center or ("samples" if weighting == "sample" else "classes")) == "samples" else by_class
    solve = _by_differences(means, between, towards) if k - 1 <= d else _by_inverse(means, between, towards)
    values = []
    for rows, mean in zip(members, means, strict=True):
        residuals = mp.matrix([[a - b for a, b in zip(row, mean, strict=True)] for row in rows]).T  # d n_k
        values.append(solve(residuals) / len(rows))
    return values


def _by_differences(means, between, towards):
    k = len(means)
    differences = mp.matrix([[a - b for a, b in zip(mean, means[-1], strict=True)] for mean in means[:-1]])  # K−1 d
    mixing = mp.matrix(k, k - 1)  # A
    for i in range(k):
        for j in range(k - 1):
            mixing[i, j] = mp.sqrt(between[i]) * ((1 if i == j else 0) - towards[j])
    factor = mp.cholesky(mixing.T * mixing).T * differences  # C
    solving = mp.inverse(factor * factor.T) * factor  # K−1 d
    return lambda residuals: mp.fsum(value**2 for value in solving * residuals)


def _by_inverse(means, between, towards):
    d = len(means[0])
    middle = [mp.fdot(towards, column) for column in zip(*means, strict=True)]
    scatter = mp.matrix(d, d)
    for weight, mean in zip(between, means, strict=True):
        gap = mp.matrix([a - b for a, b in zip(mean, middle, strict=True)])
        scatter += weight * gap * gap.T
    inverse = mp.inverse(scatter)

    def trace(residuals):
        moved = inverse * residuals
        return mp.fsum(a * b for a, b in zip(residuals, moved, strict=True))

    return trace
