"""GroupSums and Projections: what one batch says, and that merging says the same as one large batch."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from closeness import close
from equisep import fuzziness
from equisep.errors import InputError
from equisep.separation import Assignments, GroupSums
from reference import plain, precise
from reference.merging import merged_in_any_order, random_parts, spread_of, streamed_fuzziness, sums_of
from reference.scenes import Scene, around, blobs, with_singular_values

SCENES = {
    "random": blobs(1, [30] * 5, 12),
    "imbalanced": blobs(2, [80, 40, 20, 10, 5, 2], 9),
    "n below d": blobs(3, [7, 2, 3, 5], 40),
    "K above d": blobs(4, [10] * 12, 4),
    "far from the origin": blobs(5, [30] * 4, 10, offset=1e4),
    "tight": around(np.random.default_rng(6).normal(size=(5, 12)), [30] * 5, spread=1e-3, seed=7),
}
DECADES = with_singular_values(list(np.logspace(0, -3, 4)), [40] * 5, 12, spread=0.1, seed=8)

scenes = pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())


@scenes
def test_sums_are_counts_means_and_within_class_traces(scene: Scene) -> None:
    spread = spread_of(scene)
    assert spread.centers.counts.tolist() == np.bincount(scene.y).tolist()
    close(spread.centers.means, plain.class_means(*scene))
    traces = [len(scene.y[scene.y == k]) * np.trace(plain.within_of_class(*scene, k)) for k in np.unique(scene.y)]
    close(spread.projections.traces, traces)
    assert (spread.centers.n, spread.centers.dim, spread.centers.classes) == (*scene.x.shape, len(traces))


def test_many_classes_take_another_road_to_the_same_sums() -> None:
    scene = blobs(9, [3] * 300, 5)
    centers = sums_of(scene).centers
    close(centers.means, plain.class_means(*scene))
    assert centers.counts.tolist() == [3] * 300


def test_traces_keep_their_digits_where_sums_of_squares_would_cancel() -> None:
    scene = around(np.full((2, 6), 10.0) + np.arange(2)[:, None], [200, 200], spread=1e-3, seed=10)
    x = torch.tensor(scene.x, dtype=torch.float32)
    exact = [len(g) * np.trace(np.cov(g.T, bias=True)) for g in (x.double().numpy()[scene.y == k] for k in (0, 1))]
    close(spread_of(Scene(x, scene.y)).projections.traces, exact)  # type: ignore[arg-type]
    one = x[scene.y == 0]
    assert float((one.square().mean(dim=0) - one.mean(dim=0).square()).min()) < 0


@pytest.mark.parametrize("seed", range(4))
@scenes
def test_random_batches_in_random_order_merged_in_any_order_change_nothing(scene: Scene, seed: int) -> None:
    close(streamed_fuzziness(scene, np.random.default_rng(seed)), fuzziness(*scene), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_merging_changes_nothing_with_singular_values_over_three_decades(seed: int) -> None:
    close(streamed_fuzziness(DECADES, np.random.default_rng(seed)), fuzziness(*DECADES), rtol=1e-10)


def test_batches_of_one_sample_change_nothing() -> None:
    scene = SCENES["imbalanced"]
    close(streamed_fuzziness(scene, np.random.default_rng(0), parts=len(scene.y)), fuzziness(*scene), rtol=1e-10)


@scenes
@pytest.mark.parametrize("shards", [1, 2, 7, 64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_merged_shards_are_the_whole(scene: Scene, shards: int, dtype: type) -> None:
    scene = Scene(scene.x.astype(dtype), scene.y)
    rng, classes = np.random.default_rng(11), int(scene.y.max()) + 1
    parts = [sums_of(part, classes=classes) for part in random_parts(scene, rng, parts=shards)]
    merged, whole = merged_in_any_order(parts, rng).centers, sums_of(scene).centers
    assert torch.equal(merged.counts, whole.counts)
    close(merged.means, whole.means, rtol=1e-12)


@pytest.mark.parametrize("shards", [1, 3, 16, 64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_fuzziness_of_shards_in_any_order_is_that_of_the_whole(shards: int, dtype: type, offset: float) -> None:
    scene = blobs(12, [60, 40, 30, 20], 15)
    scene = Scene((scene.x + offset).astype(dtype), scene.y)
    close(streamed_fuzziness(scene, np.random.default_rng(shards), parts=shards), fuzziness(*scene), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("offset", "decades", "spread"),
    [(1e3, 2, 1e-2), (1e4, 1, 1e-2), (1e4, 3, 1e-3), (1e5, 0, 0.5), (0.0, 6, 1e-6), (1e6, 0, 0.5), (1e6, 1, 0.2)],
)
def test_an_offset_costs_no_digit_of_the_numbers_as_given(
    offset: float, decades: int, spread: float, dtype: type
) -> None:
    """Against sixty digits, of the very numbers that were passed; float32 far out was wrong by up to six orders."""
    scene = with_singular_values(np.logspace(0, -decades, 5), [40] * 6, 8, spread=spread, seed=13, offset=offset)
    x = scene.x.astype(dtype)
    close(fuzziness(x, scene.y), precise.fuzziness(x.astype(np.float64), scene.y))


def test_a_part_without_samples_changes_not_one_bit() -> None:
    whole = sums_of(SCENES["random"])
    empty = GroupSums(classes=5)
    empty.add([torch.zeros(0, 12)], Assignments(torch.zeros(0, dtype=torch.int64)))
    for merged in (whole.merge(empty), empty.merge(whole)):
        assert torch.equal(merged.centers.means, whole.centers.means)
        assert torch.equal(merged.counts, whole.counts)


def test_a_class_without_samples_is_not_present() -> None:
    assert sums_of(SCENES["random"], classes=8).centers.present.tolist() == [0, 1, 2, 3, 4]


def test_merging_keeps_the_coarser_rounding_unit() -> None:
    fine, coarse = (sums_of(Scene(torch.eye(2, dtype=dtype), np.arange(2))) for dtype in (torch.float32, torch.half))  # type: ignore[arg-type]
    assert fine.merge(coarse).eps == coarse.merge(fine).eps == torch.finfo(torch.half).eps


def test_sums_of_different_kind_do_not_merge() -> None:
    sentence = (
        "Only sums of one kind merge; found (classes, folds, relabelings, features) (5, 1, 0, 12) and (6, 1, 0, 9)"
    )
    with pytest.raises(InputError, match="^" + re.escape(sentence)):
        sums_of(SCENES["random"]).merge(sums_of(SCENES["imbalanced"]))
    single = Scene(SCENES["random"].x.astype(np.float32), SCENES["random"].y)
    with pytest.raises(InputError, match="of numbers of different precision"):
        sums_of(SCENES["random"]).merge(sums_of(single))


def test_a_second_reading_of_the_same_data_does_not_drift() -> None:
    scene = SCENES["far from the origin"]
    second = spread_of(scene)
    assert second.drift() < 1e-10
    moved = spread_of(Scene(scene.x + 0.01, scene.y))
    centers = second.centers
    residuals = (torch.tensor(scene.x) + 0.01 - centers.means[scene.y]) @ second.subspace.directions
    shifted = type(moved.projections).of(residuals, residuals.square().sum(1), torch.tensor(scene.y), classes=4)
    assert shifted.drift() > 1e-3


def test_no_spread_is_no_drift() -> None:
    assert spread_of(Scene(np.eye(3), np.arange(3))).drift() == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.uint8])
@pytest.mark.parametrize("offset", [0, 100])
def test_a_class_that_is_one_point_has_exactly_its_mean(dtype: torch.dtype, offset: float) -> None:
    points = (100 * torch.rand(3, 7, generator=torch.Generator().manual_seed(0)) + offset).to(dtype)
    y = torch.arange(3000) % 3
    sums = GroupSums(classes=3, folds=5)
    for rows in torch.arange(3000).split(701):
        sums.add([points[y[rows]]], Assignments(y[rows], rows % 5))
    residuals = sums.centers.residuals(points, torch.arange(3))
    assert float(residuals.abs().max()) == 0
