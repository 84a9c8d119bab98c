"""D of some samples with classes weighed by given shares, in plain numpy: what leaving out a fold means."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOOR = 1e-12  # of the largest singular value: dependent means


def fuzziness_at_shares(x: Any, y: Any, shares: Any) -> float:
    """Σ_k π_k Tr(SSw^k SSb⁺) with SSb = Σ_k π_k (m_k − m)(m_k − m)ᵀ, m = Σ_k π_k m_k; classes without samples left out."""
    x, y, shares = np.asarray(x, dtype=np.float64), np.asarray(y), np.asarray(shares, dtype=np.float64)
    names = np.unique(y)
    weights = shares[names] / shares[names].sum()
    shift = x.mean(axis=0)
    x = x - shift
    means = np.stack([x[y == k].mean(axis=0) for k in names])
    rows = np.sqrt(weights)[:, None] * (means - weights @ means)
    _, s, v = np.linalg.svd(rows, full_matrices=False)
    kept = s > FLOOR * s[0]
    total = 0.0
    for weight, mean, k in zip(weights, means, names, strict=True):
        along = (x[y == k] - mean) @ v[kept].T / s[kept]
        total += weight * float((along**2).sum()) / int((y == k).sum())
    return total
