"""How other forms of D of the population come out, on samples whose D is known: medians over the truth.

- *chance*: 1/D = 1/plain − 1/chance.
- *halves*: extrapolation over nested subsamples, 1/D = 2/plain(n) − 1/plain(n/2), of n/2 the mean over both halves of ten
  divisions: what noise adds to 1/D is as 1/n where its directions are even and means of one length.
- *cross-fit*: class means from one half, times those from the other, M = (B₁B₂ᵀ + B₂B₁ᵀ)/2, whose noise is independent, and
  the spread within classes along the directions of all: Tr M⁻¹ A. The mean over ten divisions.
- *shrinkage*: singular values of the class means shrunk as is best for white noise (Gavish & Donoho 2017), none where it leaves
  nothing of a direction.

A form that gives nothing, or nothing positive, stands for the largest. Populations as in population.py; the estimator in use is
there, with more draws.

    PYTHONPATH=src OMP_NUM_THREADS=1 python simulations/losers.py --save
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from _table import Job, Rows, finish_jobs
from population import EACH, Case, population, samples

DRAWS, DIVISIONS = 300, 10
CASES = (
    Case(2, 100, 200),
    Case(5, 50, 500, "decaying"),
    Case(10, 100, 1000),
    Case(10, 100, 1000, "decaying"),
    Case(10, 500, 200),
)
SHARES = (0.1, 0.3, 1.0)
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def means_and_scatter(x: Array, y: Array, classes: int) -> tuple[Array, Array]:
    """Rows √w (mean of a class − mean) and residuals over √n."""
    counts = np.bincount(y, minlength=classes)
    means = np.stack([x[y == k].mean(axis=0) for k in range(classes)])
    weights = counts / len(y)
    return np.sqrt(weights)[:, None] * (means - weights @ means), (x - means[y]) / math.sqrt(len(y))


def fuzziness(x: Array, y: Array, classes: int) -> float:
    """Plain D."""
    rows, left = means_and_scatter(x, y, classes)
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    s, vt = s[: classes - 1], vt[: classes - 1]
    return float(np.square(left @ vt.T / s).sum())


def forms(x: Array, y: Array, classes: int, chance: float, rng: np.random.Generator) -> dict[str, float]:
    """D by all of them."""
    rows, left = means_and_scatter(x, y, classes)
    n, d, r = len(y), x.shape[1], classes - 1
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    s, vt = s[:r], vt[:r]
    along = left @ vt.T
    spread = along.T @ along * n / (n - classes)
    halves, crossed = [], []
    for _ in range(DIVISIONS):
        first = np.zeros(n, dtype=bool)
        for k in range(classes):
            mine = np.flatnonzero(y == k)
            first[rng.permutation(mine)[: len(mine) // 2]] = True
        parts = [(x[of], y[of]) for of in (first, ~first)]
        halves += [1 / fuzziness(*part, classes) for part in parts]
        one, two = (means_and_scatter(*part, classes)[0] @ vt.T for part in parts)
        product = one.T @ two
        crossed.append(float(np.trace(np.linalg.solve((product + product.T) / 2, spread))))
    plain = float((spread.diagonal() * (n - classes) / n / s**2).sum())
    # noise of variance σ²/n in every number of `rows`; singular values in units of √d of it
    noise = float(np.square(left).sum()) * n / (n - classes) / n
    beta, scaled = r / d, s**2 / noise
    inner = (scaled - beta - 1) ** 2 - 4 * beta
    kept = (scaled > (1 + math.sqrt(beta)) ** 2) & (inner > 0)
    shrunk = noise * inner / scaled
    return {
        "plain": plain,
        "chance": _inverse(1 / plain - 1 / chance),
        "halves": _inverse(2 / plain - float(np.mean(halves))),
        "cross_fit": float(np.mean(crossed)) if np.mean(crossed) > 0 else math.inf,
        "shrinkage": float((spread.diagonal() / shrunk).sum()) if kept.all() else math.inf,
    }


def _inverse(number: float) -> float:
    return 1 / number if number > 0 else math.inf


def one_case(case: Case, share: float, draws: int, seed: int) -> Rows:
    """Medians of one population and share of the chance level, and the quartiles."""
    make, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    found: dict[str, list[float]] = {}
    for begin in range(0, draws, EACH):
        who = population(case, share, make)
        for _ in range(min(EACH, draws - begin)):
            noise, y = samples(case, who, make)
            x: Tensor = who.means[y] + noise
            each = forms(x.numpy(), y.numpy(), case.classes, who.truth / share, rng)
            for name, value in each.items():
                found.setdefault(name, []).append(value / who.truth)
    row = {
        "classes": case.classes,
        "dim": case.dim,
        "n": case.n,
        "spectrum": case.spectrum,
        "share": share,
        "draws": draws,
    }
    quartiles = {name: np.quantile(each, (0.25, 0.5, 0.75), method="nearest") for name, each in found.items()}
    told = {name: [round(float(q), 3) if math.isfinite(q) else None for q in each] for name, each in quartiles.items()}
    return [{**row, **told}]


def jobs(draws: int) -> list[Job]:
    """Every population at every share."""
    cases = [(case, share) for case in CASES for share in SHARES]
    return [Job("forms", one_case, (case, share, draws, seed)) for seed, (case, share) in enumerate(cases, start=1)]


if __name__ == "__main__":
    finish_jobs("losers", jobs, draws=DRAWS)
