"""Nearest points: what float32 decides is what float64 would have said, ties and all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from equisep import ncc_accuracy
from equisep.separation import blocks, nearest
from equisep.separation.nearest import Points, nearest_points
from reference import plain
from reference.scenes import blobs


@contextmanager
def screening(on: bool = True) -> Iterator[None]:
    """Float32 is asked first of any number of points, or never."""
    with patch.object(nearest, "SCREENED", 1 if on else 2**62):
        yield


def found(z: Tensor, points: Tensor, counts: Tensor | None = None) -> list[int]:
    counts = torch.ones(len(points), dtype=torch.int64) if counts is None else counts
    return nearest_points(z, points, counts).tolist()


def sure(z: Tensor, points: Tensor) -> Tensor:
    squares = points.square().sum(dim=1)
    scale = nearest._scale(squares)
    assert scale is not None
    short, absent = ((points * scale).float(), (squares * scale**2).float()), torch.zeros(len(points), dtype=torch.bool)
    near, enough = nearest._screened(z, *short, absent, scale=scale)
    first, second = near.double().topk(2, dim=1, largest=False).values.unbind(dim=1)
    return second - first > enough


def own(z: Tensor, points: Tensor, y: list[int]) -> list[bool]:
    return Points(points, torch.ones(len(points), dtype=torch.int64)).own(z, torch.tensor(y)).tolist()


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 40),
    r=st.integers(1, 300),
    size=st.integers(1, 2**16),
    step=st.integers(0, 4),
    far=st.sampled_from([0, 1, 2**10]),
)
def test_of_whole_numbers_the_answer_is_exact_near_ties_included(seed, k, r, size, step, far) -> None:
    """Sums of them are exact in float64 in any order; float32 has no digit for a step of 1 in such a sum."""
    rng = np.random.default_rng(seed)
    base = rng.integers(-size, size + 1, size=(max(1, k // 4), r))
    points = base[rng.integers(len(base), size=k)] + rng.integers(-step, step + 1, size=(k, r))
    pairs = rng.integers(k, size=(2, 60))
    halfway = (points[pairs[0]] + points[pairs[1]]) // 2  # as near to one as to the other, up to a rounding
    z = np.concatenate([points, halfway, halfway + rng.integers(-step, step + 1, size=(60, r)), far * points])
    exact = (np.square(points).sum(axis=1) - 2 * (z @ points.T)).argmin(axis=1)
    with screening():
        rows, centers = torch.tensor(z).double(), torch.tensor(points).double()
        assert found(rows, centers) == exact.tolist()
        labels = np.where(rng.random(len(z)) < 0.5, exact, rng.integers(k, size=len(z)))
        assert own(rows, centers, labels.tolist()) == (labels == exact).tolist()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), r=st.integers(1, 600), spread=st.floats(-6, 6), cancel=st.booleans())
def test_float32_errs_by_less_than_the_bound_says(seed: int, r: int, spread: float, cancel: bool) -> None:
    rng = np.random.default_rng(seed)
    points = torch.tensor(rng.normal(size=(7, r)) * 10.0 ** -rng.uniform(0, 3, size=r))
    z = torch.tensor(rng.normal(size=(40, r)) * 10**spread)
    if cancel:  # large terms that leave a small sum
        z = z - (z @ points.T / points.square().sum(dim=1)).mean(dim=1, keepdim=True) * points.sum(dim=0)
    squares = points.square().sum(dim=1)
    scale = nearest._scale(squares)
    assert scale is not None and float(squares.max().sqrt()) * scale <= 1
    none = torch.zeros(7, dtype=torch.bool)
    short = nearest._distances((z * scale).float(), (points * scale).float(), (squares * scale**2).float(), none)
    whole = nearest._distances(z * scale, points * scale, squares * scale**2, none)
    bound = nearest.SLACK / 2 * nearest.UNIT32 * (r + 8) * (1 + 2 * (z * scale).norm(dim=1, keepdim=True))
    assert ((short.double() - whole).abs() < bound).all()


def test_float32_decides_nearly_all_rows_of_classes_that_differ_and_none_of_ties() -> None:
    rng = np.random.default_rng(0)
    points = torch.tensor(rng.normal(size=(200, 100)))
    z = points[torch.arange(1000) % 200] + torch.tensor(rng.normal(size=(1000, 100)))
    assert sure(z, points).double().mean() > 0.99
    assert not sure(z, torch.cat([points, points])).any()
    with screening():
        either = found(
            z, torch.cat([points, points])
        )  # of two equal points float64 takes either, as its products round
        assert [each % 200 for each in either] == found(z, points)


@pytest.mark.parametrize("exponent", [-1000, -600, -300, -40, 40, 300, 500])
def test_points_of_any_size_are_told_apart(exponent: int) -> None:
    """Squares of the largest and the smallest are out of float64's range: there float64 says what it can."""
    rng = np.random.default_rng(1)
    points, z = torch.tensor(rng.normal(size=(20, 30))), torch.tensor(rng.normal(size=(50, 30)))
    with screening(False):
        expected = found(z * 2.0**exponent, points * 2.0**exponent)
    with screening():
        assert found(z * 2.0**exponent, points * 2.0**exponent) == expected
    if abs(exponent) < 500:
        assert expected == found(z, points)


def test_rows_that_float32_has_no_room_for_are_left_to_float64() -> None:
    rng = np.random.default_rng(2)
    points, z = torch.tensor(rng.normal(size=(20, 30))), torch.tensor(rng.normal(size=(80, 30)))
    z[:20] *= 1e25
    z[20:40] *= 1e45
    z[40:60] *= 1e-45
    z[60], z[61, 3], z[62, 4], z[63] = torch.nan, torch.inf, -torch.inf, 1e300
    with screening(False):
        expected = found(z, points)
    with screening():
        assert found(z, points) == expected
        assert all(own(z, points, expected))
    assert not sure(z, points)[:40].any() and not sure(z, points)[60:64].any()


def test_one_class_and_classes_without_samples() -> None:
    rng = np.random.default_rng(3)
    points, z = torch.tensor(rng.normal(size=(6, 5))), torch.tensor(rng.normal(size=(50, 5)))
    for counts in ([1, 0, 2, 0, 3, 1], [0, 0, 0, 4, 0, 0]):
        present = [k for k, count in enumerate(counts) if count]
        with screening():
            expected = [present[k] for k in found(z, points[present])]
            assert found(z, points, torch.tensor(counts)) == expected
            assert found(z, 0 * points, torch.tensor(counts)) == [present[0]] * 50  # all means one point


def test_many_classes_far_out_have_their_nearest_centers() -> None:
    scene = blobs(14, [6] * 150, 120, spread=4.0, offset=1e5)
    assert nearest.SCREENED <= 150 * 120
    assert 0.5 < plain.ncc_accuracy(*scene) < 1
    assert ncc_accuracy(*scene) == plain.ncc_accuracy(*scene)


def test_shortened_products_are_not_asked() -> None:
    assert blocks.exact_products()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not blocks.exact_products()
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert not blocks.exact_products()
    finally:
        torch.set_float32_matmul_precision(before)
    assert blocks.exact_products()


@pytest.mark.parametrize(("k", "r"), [(1, 1), (7, 15), (40, 16), (300, 31)])
def test_the_way_of_a_gpu_finds_the_same_points(k: int, r: int) -> None:
    """Points beside their squared norms; those of classes without samples are near to nothing."""
    generator = torch.Generator().manual_seed(k)
    points, y = torch.randint(-9, 9, (k, r), generator=generator).double(), torch.arange(200) % k
    residuals = torch.randint(-9, 9, (200, r), generator=generator).double()
    counts = torch.ones(k, dtype=torch.int64)
    counts[1::3] = 0
    rows = residuals + points[y]
    theirs = Points(points, counts, beside=True)
    wanted = Points(points, counts, beside=False).nearest(rows)
    with patch.object(nearest, "TILE_NUMBERS", 64 * k):
        assert torch.equal(theirs.nearest(rows), wanted)
        assert torch.equal(theirs.nearest_to(residuals, y), wanted)
        assert torch.equal(theirs.own(rows, y), wanted == y)
