"""Folds and random classes by sample number: the same however samples come, in equal shares, independent of labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from equisep.separation import Assignments


def drawn(
    n: int, *, first: int = 0, classes: int = 7, folds: int = 10, relabelings: int = 3, seed: int = 0
) -> Assignments:
    labels = torch.arange(first, first + n) % classes
    return Assignments.of(labels, first=first, classes=classes, folds=folds, relabelings=relabelings, seed=seed)


@pytest.mark.parametrize("size", [1, 3, 10, 64, 1000])
def test_batches_of_any_size_draw_what_all_samples_draw(size: int) -> None:
    whole = drawn(1000)
    parts = [drawn(min(size, 1000 - start), first=start) for start in range(0, 1000, size)]
    joined = Assignments.joined(parts)
    assert torch.equal(joined.folds, whole.folds)
    assert torch.equal(joined.relabeled, whole.relabeled)


def test_shares_are_equal_to_within_one() -> None:
    rows = drawn(1003)
    for values, groups in ((rows.folds, 10), *((each, 7) for each in rows.relabeled)):
        counts = torch.bincount(values, minlength=groups)
        assert int(counts.max() - counts.min()) <= 1


def test_random_classes_know_nothing_of_sorted_labels() -> None:
    """Class-sorted data are common; each class must get every random class alike, as by chance."""
    n, classes = 7000, 7
    labels = torch.arange(n) // (n // classes)
    rows = Assignments.of(labels, first=0, classes=classes, folds=10, relabelings=1, seed=3)
    table = torch.bincount(labels * classes + rows.relabeled[0], minlength=classes**2).view(classes, classes)
    expected = n / classes**2
    assert float(((table - expected) ** 2 / expected).sum()) < 80  # χ² with 36 degrees of freedom: p > 10⁻⁵


def test_the_seed_and_the_labeling_decide() -> None:
    one, other = drawn(500), drawn(500, seed=1)
    assert not torch.equal(one.folds, other.folds)
    assert not torch.equal(one.relabeled[0], one.relabeled[1])
    assert not torch.equal(one.relabeled, other.relabeled)


def test_without_folds_or_relabelings_there_are_none() -> None:
    rows = drawn(10, folds=0, relabelings=0)
    assert rows.folds is rows.relabeled is None


def test_runs_are_dealt_out_in_every_order() -> None:
    orders = {tuple(run) for run in np.asarray(drawn(3000, classes=3, relabelings=1).relabeled[0]).reshape(-1, 3)}
    assert len(orders) == 6
