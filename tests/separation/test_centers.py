"""CDNV and nearest class centers against loops over everything."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from closeness import close
from equisep import cdnv, ncc_accuracy
from equisep.errors import InputError, NumericalError
from equisep.separation import blocks
from reference import plain
from reference.scenes import Scene, blobs

SCENES = {
    "random": blobs(1, [30] * 5, 12),
    "imbalanced": blobs(2, [40, 20, 10, 5, 2], 9),
    "n below d": blobs(3, [4, 4, 4], 60),
    "K above d": blobs(4, [10] * 12, 2),
    "more classes than a block of pairs": blobs(5, [2] * 300, 6),
    "far from the origin": blobs(6, [20] * 4, 5, offset=1e3),
}
scenes = pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())


@scenes
def test_cdnv_agrees_with_the_double_loop(scene: Scene) -> None:
    close(cdnv(*scene), plain.cdnv(*scene))


def test_cdnv_of_float32_features_agrees_with_the_double_loop() -> None:
    scene = SCENES["imbalanced"]
    x = scene.x.astype(np.float32)
    close(cdnv(x, scene.y), plain.cdnv(x.astype(np.float64), scene.y))


def test_cdnv_of_two_points_a_class_is_known_in_closed_form() -> None:
    x = np.array([[-1.0, 0], [1, 0], [-2, 10], [2, 10]])
    close(cdnv(x, [0, 0, 1, 1]), (1 + 4) / (2 * 100))


@pytest.mark.parametrize("seed", range(5))
def test_cdnv_refuses_class_means_that_coincide_to_rounding(seed: int) -> None:
    one = np.random.default_rng(seed).normal(size=(10, 7))
    x = np.concatenate([one + k for k in range(9)] + [one[::-1]])  # class 9 holds class 0 in another order
    with pytest.raises(NumericalError, match="`cdnv` needs class means that differ; two of them coincide"):
        cdnv(x, np.repeat(np.arange(10), 10))


@scenes
def test_ncc_accuracy_agrees_with_brute_force(scene: Scene) -> None:
    assert ncc_accuracy(*scene) == plain.ncc_accuracy(*scene)


@scenes
def test_ncc_accuracy_of_test_data_uses_the_training_means(scene: Scene) -> None:
    rng = np.random.default_rng(0)
    test = Scene(scene.x + rng.normal(size=scene.x.shape), scene.y)
    assert ncc_accuracy(*test, train=scene) == plain.ncc_accuracy(*test, train=scene)


def test_test_data_may_lack_classes_and_name_them_freely() -> None:
    scene = blobs(7, [20] * 4, 6)
    names = np.array([-5, 3, 10, 99])
    few = scene.y != 2
    value = ncc_accuracy(scene.x[few] * 0.9, names[scene.y[few]], train=(scene.x, names[scene.y]))
    assert value == plain.ncc_accuracy(scene.x[few] * 0.9, scene.y[few], train=scene)


def test_close_class_pairs_keep_their_nearest_centers() -> None:
    rng = np.random.default_rng(8)
    far = rng.normal(size=(3, 10))
    means = np.concatenate([far, far + 1e-6 * rng.normal(size=(3, 10))])
    y = np.arange(600) % 6
    x = means[y] + 2e-6 * rng.normal(size=(600, 10))
    assert 0.5 < plain.ncc_accuracy(x, y) < 1
    assert ncc_accuracy(x, y) == plain.ncc_accuracy(x, y)


def test_every_other_sample_needs_no_warning() -> None:
    scene, before = blobs(7, [20] * 4, 6), torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else once per process
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = ncc_accuracy(scene.x[::2], torch.tensor(scene.y)[::2], train=scene)
    finally:
        torch.set_warn_always(before)
    assert value == plain.ncc_accuracy(scene.x[::2], scene.y[::2], train=scene)


def test_ncc_accuracy_refuses_a_label_that_train_does_not_have() -> None:
    scene = blobs(9, [5, 5], 3)
    with pytest.raises(InputError, match="was given label 7, of which `train` has no sample"):
        ncc_accuracy(scene.x, np.full(10, 7), train=scene)


def test_ncc_accuracy_refuses_train_of_another_width() -> None:
    scene = blobs(10, [5, 5], 3)
    with pytest.raises(InputError, match="needs train and x of one width; found 3 and 2 features"):
        ncc_accuracy(scene.x[:, :2], scene.y, train=scene)


def test_many_rows_are_worked_off_in_pieces_with_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = SCENES["imbalanced"]
    whole = ncc_accuracy(*scene), cdnv(*scene)
    monkeypatch.setattr(blocks, "BLOCK_NUMBERS", 20)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 3)
    assert ncc_accuracy(*scene) == whole[0]
    close(cdnv(*scene), whole[1])


def test_labels_on_tensors_of_any_integer_type_are_accepted() -> None:
    scene = blobs(11, [10, 10], 4)
    for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool):
        assert ncc_accuracy(scene.x, torch.tensor(scene.y).to(dtype)) == ncc_accuracy(*scene)


def test_cdnv_of_tight_classes_far_out_keeps_its_digits() -> None:
    """Off by 10⁻⁴ before: the means themselves were rounded far from the origin."""
    rng = np.random.default_rng(12)
    y = np.arange(300) % 4
    x = 1e6 + rng.normal(size=(4, 10))[y] + 1e-8 * rng.normal(size=(300, 10))
    close(cdnv(x, y), plain.cdnv(x - x[0], y))  # the difference is exact


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_classes_that_have_collapsed_have_cdnv_zero(offset: float) -> None:
    y = np.arange(30) % 3
    assert cdnv(np.random.default_rng(13).normal(size=(3, 5))[y] + offset, y) == 0
