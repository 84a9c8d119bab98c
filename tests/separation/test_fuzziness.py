"""D, D_k and NC1 against the plain reference, against 60 digits, and under every convention."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from closeness import close, relative_error
from equisep import class_fuzziness, fuzziness
from equisep.errors import InputError
from equisep.separation.site import quick
from reference import plain, precise
from reference.scenes import Scene, around, blobs, with_singular_values

ORDINARY = {
    "random": blobs(1, [30] * 5, 12),
    "imbalanced": blobs(2, [80, 40, 20, 10, 5, 2], 9),
    "n below d": blobs(3, [4, 4, 4], 60),
    "n below d, imbalanced": blobs(4, [7, 2, 3, 5], 40),
    "K above d": blobs(5, [10] * 12, 4),
    "K above d, imbalanced": blobs(6, [3, 20, 5, 9, 14, 2, 6, 8], 3),
    "K far above d": blobs(7, [3] * 300, 5),
    "two classes": blobs(8, [25, 10], 7),
    "one feature": blobs(9, [20, 30, 10], 1),
    "far from the origin": blobs(10, [30] * 4, 10, offset=100.0),
    "single samples": blobs(11, [1, 1, 20, 20], 8),
}
SIX_DECADES = list(np.logspace(0, -6, 6))
THREE_DECADES = list(np.logspace(0, -3, 9))

ordinary = pytest.mark.parametrize("scene", ORDINARY.values(), ids=ORDINARY.keys())
weightings = pytest.mark.parametrize("weighting", ["sample", "class", "mixed"])


@ordinary
def test_fuzziness_agrees_with_the_plain_reference(scene: Scene) -> None:
    close(fuzziness(*scene), plain.fuzziness(*scene))


@ordinary
def test_class_fuzziness_agrees_with_the_plain_reference(scene: Scene) -> None:
    close(class_fuzziness(*scene), plain.class_fuzziness(*scene))


@ordinary
def test_nc1_agrees_with_the_plain_reference(scene: Scene) -> None:
    close(fuzziness(*scene, weighting="mixed", normalization="classes"), plain.nc1(*scene))


@weightings
@pytest.mark.parametrize("center", [None, "samples", "classes"])
@pytest.mark.parametrize("normalization", ["none", "classes"])
@pytest.mark.parametrize("name", ["imbalanced", "n below d, imbalanced", "K above d, imbalanced"])
def test_every_convention_agrees_with_the_plain_reference(weighting, center, normalization, name) -> None:
    options = {"weighting": weighting, "center": center}
    scene = ORDINARY[name]
    close(
        fuzziness(*scene, **options, normalization=normalization),
        plain.fuzziness(*scene, **options, normalization=normalization),
    )
    close(class_fuzziness(*scene, **options), plain.class_fuzziness(*scene, **options))


def test_conventions_differ_on_imbalanced_data_and_agree_on_balanced() -> None:
    def values(scene: Scene) -> list[float]:
        return [
            fuzziness(*scene, weighting=weighting, center=center)
            for weighting in ("sample", "class", "mixed")
            for center in ("samples", "classes")
        ]

    assert len({round(value, 6) for value in values(ORDINARY["imbalanced"])}) == 6
    balanced = values(ORDINARY["random"])
    close(balanced, [balanced[0]] * 6)


@weightings
@pytest.mark.parametrize("center", ["samples", "classes"])
@pytest.mark.parametrize("sizes", [[4, 6, 3, 5], [3, 4, 5, 3, 4, 6, 3]], ids=["K-1 <= d", "K-1 > d"])
def test_the_two_references_agree_with_each_other(weighting, center, sizes) -> None:
    scene = blobs(12, sizes, 4)
    options = {"weighting": weighting, "center": center}
    close(plain.fuzziness(*scene, **options), precise.fuzziness(*scene, **options))
    close(plain.class_fuzziness(*scene, **options), precise.class_fuzziness(*scene, **options))


@weightings
@pytest.mark.parametrize("sizes", [[8] * 7, [20, 12, 6, 4, 3, 2, 9]], ids=["balanced", "imbalanced"])
@pytest.mark.parametrize("d", [6, 12, 40])
def test_singular_values_over_six_decades_keep_six_digits(weighting, sizes, d) -> None:
    scene = with_singular_values(SIX_DECADES, sizes, d, spread=0.1, seed=d)
    close(fuzziness(*scene, weighting=weighting), precise.fuzziness(*scene, weighting=weighting), rtol=1e-6)
    close(class_fuzziness(*scene, weighting=weighting), precise.class_fuzziness(*scene, weighting=weighting), rtol=1e-6)


def test_six_decades_with_more_classes_than_features_keep_six_digits() -> None:
    scene = with_singular_values(list(np.logspace(0, -6, 4)), [5, 9, 4, 7, 6, 3, 8], 4, spread=0.1, seed=3)
    close(fuzziness(*scene), precise.fuzziness(*scene), rtol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 10.0])
@pytest.mark.parametrize("sizes", [[10] * 5, [20, 4, 9, 2, 6]], ids=["balanced", "imbalanced"])
def test_a_spread_of_one_millionth_of_the_class_distance_keeps_six_digits(offset, sizes) -> None:
    means = np.random.default_rng(4).normal(size=(5, 12)) + offset
    scene = around(means, sizes, spread=1e-6, seed=5)
    close(fuzziness(*scene), precise.fuzziness(*scene), rtol=1e-6)
    close(class_fuzziness(*scene), precise.class_fuzziness(*scene), rtol=1e-6)


def test_float32_features_over_three_decades_keep_four_digits_where_float32_pinv_fails() -> None:
    scene = with_singular_values(THREE_DECADES, [20] * 10, 100, spread=0.05, seed=6)
    x = torch.tensor(scene.x, dtype=torch.float32)
    exact = precise.fuzziness(x.numpy(), scene.y)
    close(fuzziness(x, scene.y), exact, dtype=torch.float32)
    assert relative_error(fuzziness(x, scene.y), fuzziness(*scene)) < 1e-3  # rounding the features changes D by more
    within = torch.tensor(plain.scatter_within(x.double().numpy(), scene.y), dtype=torch.float32)
    between = torch.tensor(plain.scatter_between(x.double().numpy(), scene.y), dtype=torch.float32)
    naive = float(torch.trace(within @ torch.linalg.pinv(between)))
    assert naive < exact / 5


@pytest.mark.parametrize("shape", [(40, 3, 2, 2), (40, 12)])
def test_features_of_any_shape_are_flattened(shape) -> None:
    scene = blobs(13, [10] * 4, 12)
    close(fuzziness(scene.x.reshape(shape), scene.y), fuzziness(*scene))


@pytest.mark.parametrize("kind", ["tensor", "array", "list", "read-only array", "reversed view"])
def test_tensors_arrays_and_lists_give_one_answer(kind) -> None:
    scene = blobs(14, [10] * 3, 5)
    forms = {
        "tensor": (torch.tensor(scene.x), torch.tensor(scene.y)),
        "array": scene,
        "list": (scene.x.tolist(), scene.y.tolist()),
        "read-only array": (np.frombuffer(scene.x.tobytes()).reshape(scene.x.shape), scene.y),
        "reversed view": (scene.x[::-1], scene.y[::-1]),
    }
    close(fuzziness(*forms[kind]), plain.fuzziness(*scene))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_features_of_lower_precision_are_read_as_they_are(dtype) -> None:
    scene = blobs(15, [50] * 5, 12)
    x = torch.tensor(scene.x).to(dtype)
    close(fuzziness(x, scene.y), plain.fuzziness(x.double().numpy(), scene.y))
    close(fuzziness(x, scene.y), fuzziness(*scene), dtype=dtype)


def test_integer_features_are_exact() -> None:
    rng = np.random.default_rng(16)
    x, y = rng.integers(0, 256, size=(60, 20)).astype(np.uint8), np.arange(60) % 4
    close(fuzziness(x, y), plain.fuzziness(x.astype(np.float64), y))


def test_samples_that_equal_their_class_mean_have_no_fuzziness() -> None:
    assert fuzziness(np.eye(4), [0, 1, 2, 3]) == 0


def test_one_class_is_named_by_its_place_among_the_sorted_labels() -> None:
    scene = blobs(17, [10, 20, 30], 6)
    close(class_fuzziness(scene.x, np.array([7, -2, 40])[scene.y]), np.array(class_fuzziness(*scene))[[1, 0, 2]])


def test_a_given_tolerance_cuts_the_singular_values_below_it() -> None:
    scene = with_singular_values([1.0, 0.5, 0.01], [30] * 4, 10, spread=0.1, seed=18)
    left, right = np.linalg.eigh(plain.scatter_between(*scene))
    kept = right[:, left > (0.1 * 1.0) ** 2]
    projected = Scene(scene.x @ kept, scene.y)
    close(fuzziness(*scene, tol=0.1), plain.fuzziness(*projected))


@pytest.mark.parametrize("seed", range(8))
def test_few_samples_of_collapsed_classes_keep_their_digits(seed: int) -> None:
    """Two or three float64 samples per class, a millionth apart: residuals from a class mean of size 1 have ten digits."""
    scene = blobs(seed, [2, 3, 2], 2, spread=1e-6)
    close(fuzziness(*scene), precise.fuzziness(*scene), rtol=1e-12)
    close(class_fuzziness(*scene), precise.class_fuzziness(*scene), rtol=1e-12)


@ordinary
def test_float32_products_keep_six_digits_or_are_not_used(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "pays", lambda d, r: True)  # else so few directions are float64
    for kind in (np.float32, np.float64):
        x = scene.x.astype(kind)
        assert relative_error(fuzziness(x, scene.y, precision="float32"), fuzziness(x, scene.y)) <= 1e-6


def test_tight_classes_far_from_zero_keep_their_digits_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "pays", lambda d, r: True)
    scene = blobs(19, [300] * 5, 40, spread=1e-3, offset=100.0)
    x = scene.x.astype(np.float32)
    assert relative_error(fuzziness(x, scene.y, precision="float32"), fuzziness(x, scene.y)) <= 1e-8


def test_another_precision_is_refused() -> None:
    with pytest.raises(InputError, match="`precision` is float64 or float32; found `half`"):
        fuzziness(*blobs(19, [4] * 5, 40), precision="half")
