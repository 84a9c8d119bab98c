"""Merging is a commutative, associative operation with an identity, up to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from equisep.separation import Assignments, GroupSums, Projections

CLASSES, FEATURES = 4, 3
seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(0, 12)
unhurried = settings(max_examples=60, deadline=None)


def batch(seed: int, n: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(size=(n, FEATURES)) + 5), torch.tensor(rng.integers(0, CLASSES, size=n))


def sums(seed: int, n: int) -> GroupSums:
    return sums_of(*batch(seed, n))


def sums_of(x: Tensor, y: Tensor) -> GroupSums:
    state = GroupSums(classes=CLASSES, folds=2, relabelings=1)
    state.add([x], Assignments.of(y, first=0, classes=CLASSES, folds=2, relabelings=1, seed=0))
    return state


def projections(seed: int, n: int) -> Projections:
    return projections_of(*batch(seed, n))


def projections_of(x: Tensor, y: Tensor) -> Projections:
    return Projections.of(x, x.square().sum(dim=1), y, classes=CLASSES)


def same(one: Sequence[Tensor], other: Sequence[Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        scale = max(
            1.0, float(b.double().abs().max()) if b.numel() else 0.0
        )  # sums of squares of single samples are zero
        torch.testing.assert_close(a.double(), b.double(), rtol=1e-12, atol=1e-12 * scale)


def fields(state: GroupSums | Projections) -> tuple[Tensor, ...]:
    if isinstance(state, Projections):
        return state.counts, state.means, state.squares, state.traces
    if state._shift is None:  # no rows at all
        return (torch.zeros(1),)
    means = torch.where((state.counts > 0).unsqueeze(1), state.centers.means, 0)
    return state.counts, means, *(part for _, part in state.relabeled_sums(2)), state.relabeled_counts


makers = st.sampled_from([sums, projections])


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
    whole = projections_of(torch.cat([x, u]), torch.cat([y, v]))
    same(fields(projections_of(x, y).merge(projections_of(u, v))), fields(whole))
    merged, both = sums_of(x, y).merge(sums_of(u, v)), sums_of(torch.cat([x, u]), torch.cat([y, v]))
    if n + m:
        same([merged.counts, merged.centers.means], [both.counts, both.centers.means])
