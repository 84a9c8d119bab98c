"""Data sets with a known geometry that the tests look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scene(NamedTuple):
    """Features and labels."""

    x: NDArray[np.float64]
    y: NDArray[np.int64]


def labels_of(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(sizes)), sizes)


def blobs(seed: int, sizes: Sequence[int], d: int, *, spread: float = 1.0, offset: float = 0.0) -> Scene:
    """Gaussian classes around Gaussian centers, in mixed order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(labels_of(sizes))
    centers = rng.normal(size=(len(sizes), d)) + offset
    return Scene(centers[y] + spread * rng.normal(size=(len(y), d)), y)


def around(means: NDArray[np.float64], sizes: Sequence[int], *, spread: float, seed: int) -> Scene:
    """Classes whose sample means are `means` (to rounding), with isotropic spread."""
    rng = np.random.default_rng(seed)
    y = labels_of(sizes)
    residuals = spread * rng.normal(size=(len(y), means.shape[1]))
    for k in range(len(sizes)):
        residuals[y == k] -= residuals[y == k].mean(axis=0)
    return Scene(means[y] + residuals, y)


def frame(d: int, columns: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Random orthonormal columns."""
    return np.linalg.qr(rng.normal(size=(d, columns)))[0]


def rotation(d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return frame(d, d, rng)


def with_singular_values(
    values: Sequence[float], sizes: Sequence[int], d: int, *, spread: float, seed: int, offset: float = 0.0
) -> Scene:
    """Class means for which B = (√(n_k/n)(m_k − m))_k has exactly these singular values."""
    rng = np.random.default_rng(seed)
    shares = np.sqrt(np.asarray(sizes) / np.sum(sizes))
    left = np.linalg.qr(np.column_stack([shares, rng.normal(size=(len(sizes), len(values)))]))[0][:, 1:]  # ⊥ √w
    right = frame(d, len(values), rng)
    means = (left * np.asarray(values)) @ right.T / shares[:, None] + offset
    return around(means, sizes, spread=spread, seed=seed + 1)


def simplex_etf(k: int, d: int, *, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """K vectors of one norm and pairwise cosine −1/(K−1), in any position: √(K/(K−1)) (I − 11ᵀ/K), rotated (PHD20)."""
    etf = np.sqrt(k / (k - 1)) * (np.eye(k) - np.ones((k, k)) / k)
    room = max(k, d)
    wide = np.hstack([etf, np.zeros((k, room - k))]) @ rotation(room, rng)
    if d >= k:
        return scale * wide
    narrow = np.linalg.svd(etf)[0][:, : k - 1] * np.sqrt(k / (k - 1))  # the same Gram matrix in K−1 dimensions
    return scale * np.hstack([narrow, np.zeros((k, d - k + 1))]) @ rotation(d, rng)
