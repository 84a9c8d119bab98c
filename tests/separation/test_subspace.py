"""Where the class means end and rounding begins: rank, cut, and nearest centers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from closeness import close
from equisep import fuzziness
from equisep.separation import PAPER, PHD20, ClassSubspace, Convention, nearest_centers
from equisep.separation.subspace import AS_GIVEN, COMPUTED, thin_svd
from reference import plain
from reference.merging import spread_of
from reference.scenes import Scene, around, blobs, frame, with_singular_values

HALF = [torch.float16, torch.bfloat16]


def subspace(
    x: Tensor, y: Tensor, convention: Convention = PAPER, *, classes: int | None = None, steps: float = AS_GIVEN
) -> ClassSubspace:
    return spread_of(Scene(x, y), convention, classes=classes, steps=steps).subspace  # type: ignore[arg-type]


def computed(x: Tensor, y: Tensor) -> ClassSubspace:
    """As a site of a network is read: its features carry the rounding of the layers before."""
    return subspace(x, y, steps=COMPUTED)


def of_scene(scene: Scene, *, dtype: torch.dtype = torch.float64, convention: Convention = PAPER) -> ClassSubspace:
    return subspace(torch.tensor(scene.x).to(dtype), torch.tensor(scene.y), convention)


def bottleneck(d: int, per_class: int, *, spread: float = 0.3, classes: int = 10) -> tuple[nn.Linear, Tensor, Tensor]:
    """The last layer of a linear network through three units, what it reads, and the labels."""
    torch.manual_seed(d + per_class)
    y = torch.arange(classes).repeat_interleave(per_class)
    h = torch.randn(classes, 100)[y] + spread * torch.randn(len(y), 100)
    return nn.Linear(3, d).requires_grad_(False), nn.Linear(100, 3).requires_grad_(False)(h), y


def planar(d: int, sizes: list[int], *, seed: int, offset: float = 0.0) -> Scene:
    """Class means in a plane through `offset`, turned at random; the classes spread in all directions."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(len(sizes), 2)) @ frame(d, 2, rng).T + offset
    return around(means, sizes, spread=0.3, seed=seed + 1)


@pytest.mark.parametrize("weighting", ["sample", "class", "mixed"])
@pytest.mark.parametrize("center", [None, "samples", "classes"])
def test_any_center_leaves_one_direction_less_than_classes(weighting, center) -> None:
    space = of_scene(blobs(1, [30, 20, 10, 5, 3], 20), convention=Convention(weighting=weighting, center=center))
    assert space.rank == space.full_rank == 4


def test_few_features_or_absent_classes_lower_the_full_rank() -> None:
    assert of_scene(blobs(2, [10] * 6, 3)).full_rank == 3
    scene = blobs(2, [10] * 4, 20)
    space = subspace(torch.tensor(scene.x), torch.tensor(scene.y) * 2, classes=9)
    assert space.rank == space.full_rank == 3


def test_singular_values_are_those_of_the_scene() -> None:
    values = [3.0, 1.0, 0.2, 1e-3]
    space = of_scene(with_singular_values(values, [40, 20, 10, 5, 5], 12, spread=0.1, seed=3))
    close(space.singular_values[:4], values)
    close(space.trace_between, sum(value**2 for value in values))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALF])
@pytest.mark.parametrize("sizes", [[20] * 6, [60, 30, 20, 10, 5, 3]], ids=["balanced", "imbalanced"])
@pytest.mark.parametrize("d", [6, 50, 1000])
def test_dependent_class_means_are_cut_to_their_rank_and_keep_their_fuzziness(dtype, sizes, d) -> None:
    scene = planar(d, sizes, seed=d)
    assert of_scene(scene, dtype=dtype).rank == 2
    value = fuzziness(torch.tensor(scene.x).to(dtype), scene.y)
    close(value, fuzziness(*scene, tol=1e-6), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
def test_without_the_cut_rounding_would_make_fuzziness_blow_up(dtype) -> None:
    scene = planar(50, [20] * 6, seed=4)
    x = torch.tensor(scene.x).to(dtype)
    assert fuzziness(x, scene.y, tol=1e-12) > 100 * fuzziness(x, scene.y)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("offset", [10.0, 1e3])
@pytest.mark.parametrize("per_class", [10, 1000])
def test_a_common_offset_neither_adds_nor_hides_directions(dtype, offset, per_class) -> None:
    assert of_scene(planar(30, [per_class] * 6, seed=5, offset=offset), dtype=dtype).rank == 2
    assert of_scene(blobs(6, [per_class] * 6, 30, offset=offset), dtype=dtype).rank == 5


def test_far_from_the_origin_float64_sums_do_not_add_directions() -> None:
    for seed in range(5):
        assert of_scene(planar(100, [2000] * 5, seed=seed, offset=1e4)).rank == 2


@pytest.mark.parametrize("spread", [0.3, 1e-3, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("d", [10, 100, 1000])
@pytest.mark.parametrize("per_class", [10, 100])
def test_features_behind_a_bottleneck_of_three_have_rank_three(spread, d, per_class) -> None:
    last, h, y = bottleneck(d, per_class, spread=spread)
    assert computed(last(h), y).rank == 3
    assert computed(nn.BatchNorm1d(d)(last(h)).detach(), y).rank == 3


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("spread", [0.3, 1e-2])
@pytest.mark.parametrize("d", [10, 100, 1000])
def test_half_precision_features_behind_a_bottleneck_have_rank_three(dtype, spread, d) -> None:
    last, h, y = bottleneck(d, 50, spread=spread)
    assert computed(last(h).to(dtype), y).rank == 3
    assert computed(last.to(dtype)(h.to(dtype)), y).rank == 3


@pytest.mark.parametrize("d", [10, 100, 1000])
def test_ten_linear_layers_after_the_bottleneck_add_no_direction(d) -> None:
    last, h, y = bottleneck(d, 20)
    x = last(h)
    for _ in range(10):
        x = x @ torch.linalg.qr(torch.randn(d, d)).Q
    assert computed(x, y).rank == 3


@pytest.mark.parametrize("offset", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("d", [10, 100, 1000])
@pytest.mark.parametrize("per_class", [10, 100])
def test_three_decades_are_not_cut_in_float32(offset, d, per_class) -> None:
    values = np.logspace(0, -3, 9)
    scene = with_singular_values(values, [per_class] * 10, d, spread=0.1, seed=7, offset=offset / np.sqrt(d))
    space = of_scene(scene, dtype=torch.float32)
    assert space.rank == 9
    close(space.singular_values[:9], values, rtol=1e-3)


@pytest.mark.parametrize("dtype", HALF)
def test_a_direction_below_the_rounding_of_one_number_is_not_cut_where_it_averages_out(dtype) -> None:
    scene = with_singular_values([1.0, 0.5, 0.1, 0.008], [100] * 5, 100, spread=0.1, seed=8, offset=0.1)
    assert of_scene(scene, dtype=dtype).rank == 4
    close(fuzziness(torch.tensor(scene.x).to(dtype), scene.y), fuzziness(*scene), dtype=dtype)


def test_class_means_that_all_coincide_have_rank_zero() -> None:
    one = np.random.default_rng(9).normal(size=(20, 8)) + 3
    space = of_scene(Scene(np.concatenate([one, one[::-1], one]), np.repeat(np.arange(3), 20)))
    assert space.rank == 0


@pytest.mark.parametrize("convention", [PAPER, PHD20], ids=["by sample", "mixed"])
@pytest.mark.parametrize("sizes", [[20] * 5, [40, 10, 5, 2, 1]], ids=["balanced", "imbalanced"])
@pytest.mark.parametrize("d", [2, 30])
def test_nearest_centers_of_new_samples_are_those_of_brute_force(convention, sizes, d) -> None:
    scene = blobs(10, sizes, d, offset=20.0)
    space = of_scene(scene, convention=convention)
    rng = np.random.default_rng(11)
    x, y = rng.normal(scale=2, size=(200, d)) + 20, rng.integers(0, 5, size=200)
    residuals = torch.tensor(x - plain.class_means(*scene)[y]) @ space.directions
    found = nearest_centers(residuals, torch.tensor(y), subspace=space)
    assert found.tolist() == plain.nearest_class(x, plain.class_means(*scene)).tolist()


def test_a_sample_whose_class_was_never_seen_still_finds_its_nearest_center() -> None:
    scene = blobs(12, [20] * 3, 6, offset=50.0)
    spread = spread_of(scene, classes=4)
    x, y = torch.tensor(scene.x), torch.full((60,), 3)
    residuals = spread.centers.residuals(x, y) @ spread.subspace.directions
    found = nearest_centers(residuals, y, subspace=spread.subspace)
    assert found.tolist() == plain.nearest_class(scene.x, plain.class_means(*scene)).tolist()


@pytest.mark.parametrize("low", [0, -6, -14])
def test_the_way_of_a_gpu_finds_the_same_directions(low: int) -> None:
    """QR first, then the SVD of a small triangle: as accurate as LAPACK's SVD, also where singular values end in rounding."""
    generator = torch.Generator().manual_seed(0)
    q, _ = torch.linalg.qr(torch.randn(300, 8, dtype=torch.float64, generator=generator))
    w, _ = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64, generator=generator))
    values = torch.logspace(0, low, 8, dtype=torch.float64)
    tall = q * values @ w.T
    tall[:, 3] = 0  # a class without samples
    (v, s), (by_qr, same) = (thin_svd(tall, by_qr=way) for way in (False, True))
    assert torch.allclose(s, same, rtol=0, atol=1e-14)
    kept = int((s > 1e-10).sum())
    assert torch.allclose(by_qr.T @ by_qr, torch.eye(8, dtype=torch.float64), atol=1e-13)
    within = v[:, :kept] @ (v[:, :kept].T @ tall)
    assert torch.allclose(by_qr[:, :kept] @ (by_qr[:, :kept].T @ tall), within, atol=1e-13)
