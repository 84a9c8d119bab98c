"""The test of class-mixing: exact moments, few false alarms in any shape of classes and batches, alarms where they belong."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from equisep.data import draw
from equisep.data.mixing import class_mixing, pair_moments


def batches(n: int, size: int) -> list[int]:
    return [min(size, n - start) for start in range(0, n, size)]


@pytest.mark.parametrize(
    ("classes", "sizes"), [((3, 2, 1), (2, 3, 1)), ((2, 2, 2), (3, 3)), ((4, 1), (2, 2, 1)), ((1, 1, 1), (2, 1))]
)
def test_mean_and_variance_are_those_of_all_orders(classes: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    labels = np.repeat(np.arange(len(classes)), classes)
    edges = np.cumsum(sizes)[:-1]
    found = [
        sum(
            int(count) * (int(count) - 1) / 2
            for part in np.split(np.array(order), edges)
            for count in np.bincount(part)
        )
        for order in permutations(labels.tolist())
    ]
    mean, variance = pair_moments(sizes, classes)
    assert abs(mean - float(np.mean(found))) < 1e-12
    assert abs(variance - float(np.var(found))) < 1e-12


@pytest.mark.parametrize(
    ("classes", "size", "runs"),
    [
        ([100] * 10, 100, 300),
        ([500] * 5 + [100] * 5, 100, 200),
        ([10] * 10, 32, 300),  # a short last batch
        ([50] * 10 + [1] * 5, 100, 300),  # rare classes, and a last batch of five
        ([10] * 2, 10, 300),  # two batches
        ([3] * 3, 3, 300),
        ([2] * 1000, 100, 150),  # far more classes than a batch has samples
        ([95, 5], 10, 300),
    ],
    ids=str,
)
def test_random_orders_are_rarely_called_unmixed(classes: list[int], size: int, runs: int) -> None:
    """At a rate of 1 in 1,000, more than five alarms in 300 come less often than once in 10⁵."""
    labels = np.repeat(np.arange(len(classes)), classes)
    rng = np.random.default_rng(1)
    alarms = sum(
        class_mixing(rng.permutation(labels), batches(len(labels), size), seed=run).unmixed for run in range(runs)
    )
    assert alarms <= 5


@pytest.mark.parametrize(
    ("classes", "size"),
    [([100] * 10, 100), ([2] * 1000, 100), ([30, 300, 20], 64), ([12] * 3, 12), ([400] * 2, 32)],
    ids=str,
)
def test_classes_one_after_the_other_are_unmixed(classes: list[int], size: int) -> None:
    labels = np.repeat(np.arange(len(classes)), classes)
    found = class_mixing(labels, batches(len(labels), size))
    assert found.unmixed and found.pairs is not None and found.pairs > 1
    assert found.batches == len(batches(len(labels), size))


def test_batches_of_one_class_are_counted() -> None:
    labels = np.repeat([0, 1, 2], 10)
    assert class_mixing(labels, [10, 10, 9, 1]).pure == 3  # one sample alone is no batch of one class
    assert class_mixing(labels, [15, 15]).pure == 0


def test_the_authors_order_is_less_mixed_than_chance() -> None:
    """5 × 500 + 5 × 100 in every walk; 10 × 100, where only the end runs out, in most."""
    labels = np.repeat(np.arange(10), 600)
    for sizes, least in (([500] * 5 + [100] * 5, 4), ([100] * 10, 2)):
        walks = [labels[draw(labels, sizes=sizes, seed=seed, order="walk", pool_per_class=6000)] for seed in range(4)]
        assert sum(class_mixing(walk, batches(len(walk), 100)).unmixed for walk in walks) >= least


@pytest.mark.parametrize(
    ("labels", "sizes"),
    [
        (np.arange(20), [10, 10]),  # one sample of each class
        (np.arange(20) % 2, [20]),  # one batch
        (np.arange(40) % 4, [8] * 5),  # more even than chance
        (np.zeros(9, dtype=np.int64), [3, 3, 3]),  # one class
    ],
)
def test_orders_that_no_order_could_mix_better_are_mixed(labels: np.ndarray, sizes: list[int]) -> None:
    assert not class_mixing(labels, sizes).unmixed


def test_of_very_many_samples_a_part_of_the_batches_is_looked_at() -> None:
    labels = np.random.default_rng(0).integers(0, 10, 250_000)
    assert not class_mixing(labels, batches(len(labels), 128)).unmixed
    assert class_mixing(np.sort(labels), batches(len(labels), 128)).unmixed
