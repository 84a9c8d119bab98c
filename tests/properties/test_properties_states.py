"""Merging is a commutative, associative operation with an identity, up to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from closeness import close
from equisep.separation import ClassMoments, Projections

CLASSES, FEATURES = 4, 3
seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(0, 12)
unhurried = settings(max_examples=60, deadline=None)


def batch(seed: int, n: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(size=(n, FEATURES)) + 5), torch.tensor(rng.integers(0, CLASSES, size=n))


def moments(seed: int, n: int) -> ClassMoments:
    return ClassMoments.of(*batch(seed, n), classes=CLASSES)


def projections(seed: int, n: int) -> Projections:
    return Projections.of(*batch(seed, n), classes=CLASSES)


def same(one: Sequence[Tensor], other: Sequence[Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        close(a.double() + 1, b.double() + 1, rtol=1e-12)  # + 1: sums of squares of single samples are zero


def fields(state: ClassMoments | Projections) -> tuple[Tensor, Tensor, Tensor]:
    spread = state.traces if isinstance(state, ClassMoments) else state.squares
    return state.counts, state.means, spread


makers = st.sampled_from([moments, projections])


@unhurried
@given(make=makers, seed=seeds, n=lengths, m=lengths)
def test_merging_is_commutative(make, seed: int, n: int, m: int) -> None:
    a, b = make(seed, n), make(seed + 1, m)
    same(fields(a.merge(b)), fields(b.merge(a)))


@unhurried
@given(make=makers, seed=seeds, sizes=st.tuples(lengths, lengths, lengths))
def test_merging_is_associative(make, seed: int, sizes: tuple[int, int, int]) -> None:
    a, b, c = (make(seed + i, n) for i, n in enumerate(sizes))
    same(fields(a.merge(b).merge(c)), fields(a.merge(b.merge(c))))


@unhurried
@given(make=makers, seed=seeds, n=lengths)
def test_the_state_of_no_samples_is_the_identity(make, seed: int, n: int) -> None:
    a, nothing = make(seed, n), make(seed, 0)
    for merged in (a.merge(nothing), nothing.merge(a)):
        for found, expected in zip(fields(merged), fields(a), strict=True):
            assert torch.equal(found, expected)


@unhurried
@given(seed=seeds, n=lengths, m=lengths)
def test_merging_is_the_state_of_both_batches_together(seed: int, n: int, m: int) -> None:
    (x, y), (u, v) = batch(seed, n), batch(seed + 1, m)
    for state in (ClassMoments, Projections):
        whole = state.of(torch.cat([x, u]), torch.cat([y, v]), classes=CLASSES)
        same(fields(state.of(x, y, classes=CLASSES).merge(state.of(u, v, classes=CLASSES))), fields(whole))
