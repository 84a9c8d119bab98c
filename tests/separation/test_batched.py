"""Statistics of many networks at once are those of each alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from closeness import close
from equisep.separation import PAPER, nearest_centers
from equisep.separation.batched import StackedReading, read_stacked, stacked_hits
from equisep.separation.centers import cdnv_of
from equisep.separation.fuzziness import class_fuzziness_of, fuzziness_of
from equisep.separation.subspace import COMPUTED
from reference import plain
from reference.merging import spread_of
from reference.scenes import Scene, around, blobs, frame, simplex_etf, with_singular_values


def stacked(scenes: Sequence[Scene], *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    x = torch.stack([torch.tensor(scene.x).to(dtype) for scene in scenes])
    return x, torch.stack([torch.tensor(scene.y) for scene in scenes])


def agree(x: Tensor, y: Tensor, *, classes: int, rtol: float = 1e-9, test: tuple[Tensor, Tensor] | None = None) -> None:
    """Every number of every network against the statistics of one."""
    reading, centers = read_stacked(x, y, classes=classes)
    hits = stacked_hits(x, y, centers=centers)
    hits_test = None if test is None else stacked_hits(*test, centers=centers)
    for index, (features, labels) in enumerate(zip(x, y, strict=True)):
        spread = spread_of(Scene(features, labels), classes=classes, steps=COMPUTED)  # type: ignore[arg-type]
        space, centers_alone = spread.subspace, spread.centers
        residuals = centers_alone.residuals(features, labels) @ space.directions
        assert int(reading.rank[index]) == space.rank
        same(reading.fuzziness[index], fuzziness_of(spread, PAPER), rtol)
        known = class_fuzziness_of(spread).tolist()
        absent = (centers_alone.counts == 0).tolist()
        for k in range(classes):
            same(reading.class_fuzziness[index, k], None if absent[k] or space.rank == 0 else known[k], rtol)
        same(reading.cdnv[index], cdnv_of(spread), rtol)
        assert int(hits[index]) == int((nearest_centers(residuals, labels, subspace=space) == labels).sum())
        if test is not None and hits_test is not None:
            other = centers_alone.residuals(test[0][index], test[1][index]) @ space.directions
            near = nearest_centers(other, test[1][index], subspace=space)
            assert int(hits_test[index]) == int((near == test[1][index]).sum())


def same(found: Tensor, expected: float | None, rtol: float) -> None:
    if expected is None:
        assert math.isnan(float(found))
    else:
        close(float(found), expected, rtol=rtol)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("sizes", "d"),
    [
        ([30] * 4, 20),
        ([80, 20, 5, 3], 20),
        ([3, 2, 2], 50),  # fewer samples than features
        ([10] * 8, 3),  # more classes than features
        ([12] * 40, 50),  # more classes than one batch of Jacobi decompositions takes
        ([50, 50], 1),
        ([1, 1, 1], 4),  # no spread at all
    ],
    ids=str,
)
def test_every_network_is_read_as_if_alone(dtype: torch.dtype, sizes: list[int], d: int) -> None:
    x, y = stacked(
        [blobs(seed, sizes, d, spread=spread) for seed, spread in ((1, 1.0), (2, 0.01), (3, 9.0))], dtype=dtype
    )
    test = stacked([blobs(seed, sizes, d) for seed in (4, 5, 6)], dtype=dtype)
    agree(x, y, classes=len(sizes), test=test)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_class_means_of_lower_rank_are_cut_where_one_network_alone_is_cut(dtype: torch.dtype) -> None:
    scenes = []
    for rank, seed in ((1, 1), (2, 2), (5, 3)):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(6, rank)) @ frame(30, rank, rng).T
        scenes.append(around(means, [20] * 6, spread=0.3, seed=seed))
    x, y = stacked(scenes, dtype=dtype)
    assert read_stacked(x, y, classes=6)[0].rank.tolist() == [1, 2, 5]
    agree(x, y, classes=6, rtol=1e-9 if dtype is torch.float64 else 1e-6)


def test_known_singular_values_give_the_papers_formula() -> None:
    scenes = [with_singular_values([3.0, 1.0, 0.2], [40, 20, 10, 5], 12, spread=0.1, seed=seed) for seed in (1, 2)]
    x, y = stacked(scenes)
    reading, centers = read_stacked(x, y, classes=4)
    for index, scene in enumerate(scenes):
        close(centers.singular_values[index, :3], [3.0, 1.0, 0.2])
        close(reading.fuzziness[index], plain.fuzziness(scene.x, scene.y))
        close(reading.class_fuzziness[index], plain.class_fuzziness(scene.x, scene.y))
        close(reading.cdnv[index], plain.cdnv(scene.x, scene.y))
        hits = int(stacked_hits(x, y, centers=centers)[index])
        close(hits / len(scene.y), plain.ncc_accuracy(scene.x, scene.y))


def test_far_from_the_origin_and_tight_classes_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    scenes = [
        around(simplex_etf(5, 30, scale=1.0, rng=rng) + 1e4, [20] * 5, spread=1e-3, seed=1),
        blobs(2, [20] * 5, 30, spread=1e-6, offset=1e3),
    ]
    agree(*stacked(scenes), classes=5, rtol=1e-6)


def test_a_class_may_be_absent_in_one_network_and_not_in_another() -> None:
    x, y = stacked([blobs(seed, [20] * 4, 10) for seed in (1, 2, 3)])
    y[1, y[1] == 2] = 0
    y[2, y[2] != 3] = 1
    reading, _ = read_stacked(x, y, classes=6)
    assert reading.class_fuzziness.isnan().sum(dim=1).tolist() == [2, 3, 4]
    agree(x, y, classes=6, test=(x.flip(0), y.flip(0)))


def test_one_class_or_equal_means_have_no_number_and_leave_the_others_theirs() -> None:
    x, y = stacked([blobs(seed, [20] * 3, 8) for seed in (1, 2, 3)])
    y[0] = 1
    x[1] = 0.25
    agree(x[1:], y[1:], classes=3)
    reading, _ = read_stacked(x, y, classes=3)
    assert reading.fuzziness.isnan().tolist() == reading.cdnv.isnan().tolist() == [True, True, False]
    assert reading.rank.tolist() == [0, 0, 2]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e306])
def test_numbers_that_are_no_numbers_void_their_own_network_alone(bad: float) -> None:
    """1e306 is finite, but a sum of three hundred differences of such numbers is not."""
    x, y = stacked([blobs(seed, [300] * 3, 8) for seed in (1, 2, 3)])
    good = read_stacked(x[::2], y[::2], classes=3)[0]
    x[1, :, 2] = bad * (1 - 2 * (torch.arange(900) < 450).double())
    reading, centers = read_stacked(x, y, classes=3)
    assert centers.sound.tolist() == [True, False, True]
    assert reading.rank.tolist() == [2, 0, 2]
    for name in ("fuzziness", "class_fuzziness", "cdnv"):
        values: Tensor = getattr(reading, name)
        assert values[1].isnan().all()
        close(values[::2], getattr(good, name), rtol=1e-12)
    assert stacked_hits(x, y, centers=centers)[::2].min() > 0


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(0, 12), min_size=2, max_size=7).filter(
        lambda sizes: sum(size > 0 for size in sizes) > 1
    ),
    d=st.integers(1, 9),
    networks=st.integers(1, 4),
    single=st.booleans(),
)
def test_any_sizes_and_dimensions(seed: int, sizes: list[int], d: int, networks: int, single: bool) -> None:
    scenes = [blobs(seed + index, sizes, d) for index in range(networks)]
    agree(*stacked(scenes, dtype=torch.float32 if single else torch.float64), classes=len(sizes), rtol=1e-7)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), scale=st.floats(-6, 6), names=st.permutations(range(4)))
def test_rotation_scale_shift_and_names_change_nothing(seed: int, scale: float, names: list[int]) -> None:
    rng = np.random.default_rng(seed)
    scene = blobs(seed, [9, 14, 20, 30], 7)
    turned = Scene(10**scale * (scene.x @ frame(7, 7, rng) + rng.normal(size=7)), np.asarray(names)[scene.y])
    reading: StackedReading = read_stacked(*stacked([scene, turned]), classes=4)[0]
    close(reading.fuzziness[1], reading.fuzziness[0])
    close(reading.cdnv[1], reading.cdnv[0])
    close(reading.class_fuzziness[1, names], reading.class_fuzziness[0])
