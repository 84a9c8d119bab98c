"""Whether batches mix the classes as a random order does: a permutation test on the labels of the batches, at 1 in 1,000."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equisep.labels import Labels

LEVEL = 1e-3  # of all random orders, how many the test calls unmixed
ORDERS = 1999  # random orders at the most: a share of 1 in 1,000 is 2 of them, the order that was read counted in
MOST = 100_000  # samples at the most: of more, every second, third, … batch is looked at


@dataclass(frozen=True, slots=True)
class Mixing:
    """What the test of class-mixing says of some batches.

    unmixed   whether the batches are less class-mixed than a random order makes them, at the level of 1 in 1,000.
    pairs     how often two samples of one class share a batch, over what a random order has on average; None where no two
              samples can.
    pure      batches of two or more samples that hold one class only.
    batches   how many there are.
    """

    unmixed: bool
    pairs: float | None
    pure: int
    batches: int


def class_mixing(labels: Labels, sizes: Sequence[int], *, seed: int = 0) -> Mixing:
    """Test whether the batches of `sizes` that `labels` come in are less class-mixed than a random order of the samples.

    The statistic is S, the number of pairs of samples of one class that share a batch: S = Σ_b Σ_k n_bk (n_bk − 1)/2. Under a
    uniform permutation its mean and variance are known (`pair_moments`). An order is unmixed if S is reached by at most 1
    in 1,000 random orders: for certain where S lies √999 or more deviations above the mean (Cantelli's inequality), and else
    by seeded random orders, of which two that reach S decide for `mixed`. So 1 in 1,000 random orders is called
    unmixed at the most, whatever the classes, the batches and the last, short one. Batches that are more even than chance
    are mixed.
    """
    parts = np.asarray(sizes, dtype=np.int64)
    pure = int(np.sum(_largest(labels, parts) == np.where(parts > 1, parts, -1)))
    kept, own = _looked_at(labels, parts)
    members = np.unique(kept, return_inverse=True)[1].astype(np.int64)
    counts = np.bincount(members)
    average, variance = pair_moments(own, counts)
    seen = _pairs(members, own, len(counts))
    ratio = float(seen / average) if average > 0 else None
    return Mixing(_unmixed(members, own, len(counts), seen, average, variance, seed), ratio, pure, len(parts))


def pair_moments(batches: Sequence[int] | np.ndarray, classes: Sequence[int] | np.ndarray) -> tuple[float, float]:
    """Mean and variance of S under a uniform permutation, for batches and classes of these sizes (Mantel 1967).

    S counts the pairs that are of one batch and of one class. With a_1, a_2, a_3 the numbers of pairs, of ordered couples of
    pairs with one sample in common and of ordered couples with none, within batches, c within classes and t of all samples:
    E S = a_1 c_1/t_1 and E S² = Σ_i a_i c_i/t_i.
    """
    total = float(np.sum(batches))
    within, same, every = (_couples(np.asarray(sizes, dtype=float)) for sizes in (batches, classes, [total]))
    terms = [a * c / t if t else 0.0 for a, c, t in zip(within, same, every, strict=True)]
    return terms[0], max(0.0, sum(terms) - terms[0] ** 2)


def _couples(sizes: np.ndarray) -> tuple[float, float, float]:
    one = float(np.sum(sizes * (sizes - 1) / 2))
    two = float(np.sum(sizes * (sizes - 1) * (sizes - 2)))
    return one, two, one * one - one - two


def _unmixed(
    members: Labels, sizes: np.ndarray, classes: int, seen: float, average: float, variance: float, seed: int
) -> bool:
    """Whether at most one of the random orders has as many pairs as were seen."""
    above = seen - average
    if (
        above <= 0 or variance <= 1e-12 * average**2
    ):  # a single batch, or no two samples of a class: all orders are alike
        return False
    if above**2 / variance >= 1 / LEVEL - 1:
        return True
    chance, reached = np.random.default_rng(seed), 0
    for _ in range(ORDERS):
        reached += _pairs(chance.permutation(members), sizes, classes) >= seen
        if reached >= round(LEVEL * (ORDERS + 1)):
            return False
    return True


def _pairs(members: Labels, sizes: np.ndarray, classes: int) -> float:
    """S of samples in this order."""
    table = np.bincount(np.repeat(np.arange(len(sizes)) * classes, sizes) + members, minlength=len(sizes) * classes)
    return float(np.sum(table * (table - 1)) / 2)


def _largest(labels: Labels, sizes: np.ndarray) -> np.ndarray:
    """How many samples the most frequent class of every batch has."""
    edges = np.cumsum(sizes)[:-1]
    return np.array([np.unique(part, return_counts=True)[1].max(initial=0) for part in np.split(labels, edges)])


def _looked_at(labels: Labels, sizes: np.ndarray) -> tuple[Labels, np.ndarray]:
    """The labels and sizes of all batches; of very many an evenly spaced part, which a random order mixes as well."""
    step = -(-len(labels) // MOST)
    if step <= 1:
        return labels, sizes
    chosen = np.arange(len(sizes)) % step == 0
    return labels[np.repeat(chosen, sizes)], sizes[chosen]
