"""Every metric written straight from the papers' formulas: d×d matrices, loops, float64, no cleverness.

HS23 He & Su 2023 · PHD20 Papyan, Han & Donoho 2020 · ZDZ21 Zhu et al. 2021 · GG22 Galanti & Galanti 2022 ·
LSG26 Luthra, Salunkhe & Galanti 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

NULL_EIGENVALUE = 1e-13  # of SSb, relative: tests that use `plain` keep their class means better conditioned than this


def class_means(x: Array, y: Labels) -> Array:
    return np.stack([x[y == k].mean(axis=0) for k in np.unique(y)])


def within_of_class(x: Array, y: Labels, k: int) -> Array:
    """SSw^k = (1/n_k) Σ_i (x_ki − m_k)(x_ki − m_k)ᵀ (HS23 SI)."""
    gaps = x[y == k] - x[y == k].mean(axis=0)
    return gaps.T @ gaps / len(gaps)


def scatter_within(x: Array, y: Labels, *, weighting: str = "sample") -> Array:
    """SSw, with weights n_k/n (`sample`, `mixed`) or 1/K (`class`)."""
    names = np.unique(y)
    total = np.zeros((x.shape[1], x.shape[1]))
    for k in names:
        weight = 1 / len(names) if weighting == "class" else np.mean(y == k)
        total += weight * within_of_class(x, y, k)
    return total


def scatter_between(x: Array, y: Labels, *, weighting: str = "sample", center: str | None = None) -> Array:
    """SSb, with weights n_k/n (`sample`) or 1/K (`class`, `mixed`), around the mean of samples or of class means."""
    names, means = np.unique(y), class_means(x, y)
    center = center or ("samples" if weighting == "sample" else "classes")
    middle = x.mean(axis=0) if center == "samples" else means.mean(axis=0)
    total = np.zeros((x.shape[1], x.shape[1]))
    for k, mean in zip(names, means, strict=True):
        weight = np.mean(y == k) if weighting == "sample" else 1 / len(names)
        total += weight * np.outer(mean - middle, mean - middle)
    return total


def pseudo_inverse(matrix: Array) -> Array:
    return np.linalg.pinv(matrix, rcond=NULL_EIGENVALUE, hermitian=True)


def fuzziness(
    x: Array, y: Labels, *, weighting: str = "sample", center: str | None = None, normalization: str = "none"
) -> float:
    """D = Tr(SSw SSb⁺) (HS23 Eq. 1), or D/K."""
    between = scatter_between(x, y, weighting=weighting, center=center)
    value = np.trace(scatter_within(x, y, weighting=weighting) @ pseudo_inverse(between))
    return float(value / len(np.unique(y)) if normalization == "classes" else value)


def class_fuzziness(x: Array, y: Labels, *, weighting: str = "sample", center: str | None = None) -> list[float]:
    """D_k = Tr(SSw^k SSb⁺) (HS23 SI)."""
    inverse = pseudo_inverse(scatter_between(x, y, weighting=weighting, center=center))
    return [float(np.trace(within_of_class(x, y, k) @ inverse)) for k in np.unique(y)]


def nc1(x: Array, y: Labels) -> float:
    """Tr(SSw SSb⁺)/K: SSw over samples, SSb over classes around the mean of class means (PHD20)."""
    means = class_means(x, y)
    gaps = means - means.mean(axis=0)
    between = sum(np.outer(gap, gap) for gap in gaps) / len(means)
    residuals = x - means[np.searchsorted(np.unique(y), y)]
    within = sum(np.outer(row, row) for row in residuals) / len(x)
    return float(np.trace(within @ pseudo_inverse(between)) / len(means))


@dataclass(frozen=True)
class Collapse2:
    """NC2 of K vectors."""

    norm_spread: float
    angle_spread: float
    angle_gap: float
    etf_distance: float


def nc2(vectors: Array) -> Collapse2:
    """Equal norms, equal angles, angles of −1/(K−1) (PHD20 Figs. 2–4), and the distance to the simplex ETF (ZDZ21)."""
    k = len(vectors)
    norms = [np.sqrt((v * v).sum()) for v in vectors]
    cosines = [vectors[i] @ vectors[j] / (norms[i] * norms[j]) for i in range(k) for j in range(k) if i != j]
    return Collapse2(
        norm_spread=float(np.std(norms) / np.mean(norms)),
        angle_spread=float(np.std(cosines)),
        angle_gap=float(np.mean([abs(c + 1 / (k - 1)) for c in cosines])),
        etf_distance=etf_distance(vectors),
    )


def etf_distance(vectors: Array) -> float:
    """‖G/‖G‖_F − (I − 11ᵀ/K)/√(K−1)‖_F, G = V Vᵀ (ZDZ21)."""
    k = len(vectors)
    gram = vectors @ vectors.T
    etf = (np.eye(k) - np.ones((k, k)) / k) / np.sqrt(k - 1)
    return float(np.linalg.norm(gram / np.linalg.norm(gram) - etf))


def centered_class_means(x: Array, y: Labels) -> Array:
    """m_k − m_c, m_c the mean of class means."""
    means = class_means(x, y)
    return means - means.mean(axis=0)


def nc3(weight: Array, x: Array, y: Labels) -> float:
    """‖W/‖W‖_F − M/‖M‖_F‖_F (PHD20 Fig. 5 plots its square)."""
    means = centered_class_means(x, y)
    return float(np.linalg.norm(weight / np.linalg.norm(weight) - means / np.linalg.norm(means)))


def nearest_class(x: Array, means: Array) -> Labels:
    """argmin_k ‖x_i − m_k‖ by trying them all."""
    return np.array([int(np.argmin([np.linalg.norm(row - mean) for mean in means])) for row in x])


def nc4(weight: Array, bias: Array, x: Array, y: Labels) -> float:
    """Share of samples where argmax(Wh + b) is not the nearest class mean."""
    scores = x @ weight.T + bias
    return float(np.mean(scores.argmax(axis=1) != nearest_class(x, class_means(x, y))))


def ncc_accuracy(x: Array, y: Labels, *, train: tuple[Array, Labels] | None = None) -> float:
    """Share of samples whose nearest training class mean is their label's (GG22)."""
    x_train, y_train = train or (x, y)
    names = np.unique(y_train)
    return float(np.mean(names[nearest_class(x, class_means(x_train, y_train))] == y))


def cdnv(x: Array, y: Labels) -> float:
    """Mean over i ≠ j of (Var_i + Var_j) / (2‖m_i − m_j‖²) (GG22)."""
    names, means = np.unique(y), class_means(x, y)
    variances = [((x[y == k] - x[y == k].mean(axis=0)) ** 2).sum(axis=1).mean() for k in names]
    values = [
        (variances[i] + variances[j]) / (2 * ((means[i] - means[j]) ** 2).sum())
        for i in range(len(names))
        for j in range(len(names))
        if i != j
    ]
    return float(np.mean(values))


def cdnv_directional(x: Array, y: Labels) -> float:
    """Mean over i ≠ j of the variance of class i along the unit line from m_i to m_j, over ‖m_i − m_j‖² (LSG26)."""
    values = []
    for i in np.unique(y):
        for j in np.unique(y):
            if i != j:
                line = x[y == j].mean(axis=0) - x[y == i].mean(axis=0)
                along = (x[y == i] - x[y == i].mean(axis=0)) @ (line / np.linalg.norm(line))
                values.append((along**2).mean() / (line**2).sum())
    return float(np.mean(values))


def confused(y: Labels, guesses: Labels, *, most: int = 20) -> list[tuple[int, int, int]]:
    """(class, class it was taken for, samples), most first, of equals the lowest classes first."""
    counts: dict[tuple[int, int], int] = {}
    for own, guess in zip(y.tolist(), guesses.tolist(), strict=True):
        if own != guess:
            counts[own, guess] = counts.get((own, guess), 0) + 1
    return [(*pair, count) for pair, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))][:most]


def margins(scores: Array, y: Labels) -> list[float]:
    """Per class: the mean over its samples of the own score less the largest other."""
    each = [row[own] - max(np.delete(row, own)) for row, own in zip(scores, y, strict=True)]
    return [float(np.mean([m for m, own in zip(each, y, strict=True) if own == k])) for k in np.unique(y)]


def nearest_pairs(x: Array, y: Labels, *, most: int = 20) -> list[tuple[int, int, float]]:
    """(class, later class, ‖m_i − m_j‖), nearest first."""
    names, means = np.unique(y), class_means(x, y)
    count = range(len(names))
    pairs = [(names[i], names[j], np.linalg.norm(means[i] - means[j])) for i in count for j in count if i < j]
    return [(int(i), int(j), float(value)) for i, j, value in sorted(pairs, key=lambda pair: pair[2])][:most]


def class_cosines(x: Array, y: Labels) -> dict[tuple[int, int], float]:
    """cos(m_i − m_c, m_j − m_c) of classes i < j, m_c the mean of class means."""
    names, means = np.unique(y), centered_class_means(x, y)
    unit = [mean / np.linalg.norm(mean) for mean in means]
    count = range(len(names))
    return {(int(names[i]), int(names[j])): float(unit[i] @ unit[j]) for i in count for j in count if i < j}


def effective_depth(errors: Sequence[float], epsilon: float) -> int | None:
    """Least l ≥ 1 with a nearest-center training error of at most ε (GG22)."""
    good = [site for site, error in enumerate(errors) if site >= 1 and error <= epsilon]
    return min(good) if good else None
