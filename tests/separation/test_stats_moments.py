"""ClassMoments and Projections: what one batch says, and that merging says the same as one large batch."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from closeness import close
from equisep import fuzziness
from equisep.errors import InputError
from equisep.separation import PAPER, ClassMoments, ClassSubspace, Projections, in_chunks, merge_all, project
from reference import plain
from reference.merging import merged_in_any_order, random_parts, streamed_fuzziness
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


def moments(scene: Scene, classes: int | None = None) -> ClassMoments:
    return ClassMoments.of(torch.tensor(scene.x), torch.tensor(scene.y), classes=classes or int(scene.y.max()) + 1)


@scenes
def test_moments_are_counts_means_and_within_class_traces(scene: Scene) -> None:
    found = moments(scene)
    assert found.counts.tolist() == np.bincount(scene.y).tolist()
    close(found.means, plain.class_means(*scene))
    traces = [len(scene.y[scene.y == k]) * np.trace(plain.within_of_class(*scene, k)) for k in np.unique(scene.y)]
    close(found.traces, traces)
    assert (found.n, found.dim, found.classes) == (*scene.x.shape, len(traces))


def test_many_classes_take_another_road_to_the_same_sums() -> None:
    scene = blobs(9, [3] * 300, 5)
    found = moments(scene)
    close(found.means, plain.class_means(*scene))
    assert found.counts.tolist() == [3] * 300


def test_traces_keep_their_digits_where_sums_of_squares_would_cancel() -> None:
    scene = around(np.full((2, 6), 10.0) + np.arange(2)[:, None], [200, 200], spread=1e-3, seed=10)
    x = torch.tensor(scene.x, dtype=torch.float32)
    exact = [len(g) * np.trace(np.cov(g.T, bias=True)) for g in (x.double().numpy()[scene.y == k] for k in (0, 1))]
    close(ClassMoments.of(x, torch.tensor(scene.y), classes=2).traces, exact)
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
def test_merged_moments_are_those_of_all_samples(scene: Scene) -> None:
    rng = np.random.default_rng(11)
    parts = [moments(part, classes=int(scene.y.max()) + 1) for part in random_parts(scene, rng, parts=9)]
    whole = moments(scene)
    for merged in (merge_all(parts), merged_in_any_order(parts, rng)):
        assert torch.equal(merged.counts, whole.counts)
        close(merged.means, whole.means, rtol=1e-10)
        close(merged.traces, whole.traces)


def test_a_part_without_samples_changes_not_one_bit() -> None:
    whole = moments(SCENES["random"])
    empty = ClassMoments.of(torch.zeros(0, 12), torch.zeros(0, dtype=torch.int64), classes=5)
    for merged in (whole.merge(empty), empty.merge(whole)):
        assert torch.equal(merged.means, whole.means)
        assert torch.equal(merged.traces, whole.traces)
        assert torch.equal(merged.counts, whole.counts)


def test_a_class_without_samples_has_zero_mean_and_is_not_present() -> None:
    found = moments(SCENES["random"], classes=8)
    assert found.present.tolist() == [0, 1, 2, 3, 4]
    assert float(found.means[5:].abs().max()) == 0


def test_merging_keeps_the_coarser_rounding_unit() -> None:
    y = torch.tensor([0, 1])
    fine, coarse = (ClassMoments.of(torch.eye(2, dtype=dtype), y, classes=2) for dtype in (torch.float64, torch.half))
    assert fine.merge(coarse).eps == coarse.merge(fine).eps == torch.finfo(torch.half).eps


def test_moments_of_different_shape_do_not_merge() -> None:
    sentence = "Only moments of one shape merge; found (5, 12) and (6, 9) (classes × features)."
    with pytest.raises(InputError, match="^" + re.escape(sentence)):
        moments(SCENES["random"]).merge(moments(SCENES["imbalanced"]))


def test_projections_of_a_second_reading_of_the_same_data_do_not_drift() -> None:
    scene = SCENES["far from the origin"]
    x, y = torch.tensor(scene.x), torch.tensor(scene.y)
    space = ClassSubspace.of(moments(scene), PAPER)
    assert Projections.of(project(x, y, subspace=space), y, classes=4).drift() < 1e-10
    assert Projections.of(project(x + 0.01, y, subspace=space), y, classes=4).drift() > 1e-3


def test_no_spread_is_no_drift() -> None:
    x, y = torch.eye(3, dtype=torch.float64), torch.arange(3)
    space = ClassSubspace.of(ClassMoments.of(x, y, classes=3), PAPER)
    assert Projections.of(project(x, y, subspace=space), y, classes=3).drift() == 0


def test_rows_come_in_pieces_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equisep.separation.buffer.CHUNK_NUMBERS", 50)
    x, y = torch.arange(84.0).reshape(7, 12), torch.arange(7)
    pieces = list(in_chunks(x, y))
    assert [len(labels) for _, labels in pieces] == [4, 3]
    assert torch.equal(torch.cat([part for part, _ in pieces]), x)
