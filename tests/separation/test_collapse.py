"""NC2, NC3 and NC4 against the plain formulas, on simplex ETFs, and where they do not exist."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from closeness import close
from equisep.separation import PAPER, PHD20, Assignments, Convention, SiteTask, TrainSite
from equisep.separation.collapse import Geometry, centered_means, geometry_of, nc3_of
from reference import plain
from reference.merging import spread_of
from reference.scenes import Scene, around, blobs, simplex_etf

SCENES = {
    "random": blobs(1, [30] * 5, 12),
    "imbalanced": blobs(2, [40, 20, 10, 5, 2], 9),
    "n below d": blobs(3, [4, 4, 4], 60),
    "K above d": blobs(4, [10] * 12, 3),
    "far from the origin": blobs(5, [20] * 4, 5, offset=1e3),
    "two classes": blobs(6, [20, 5], 4),
}
scenes = pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())


def measured(scene: Scene, convention: Convention = PAPER) -> Geometry:
    found = geometry_of(centered_means(spread_of(scene, convention).subspace))
    assert found is not None
    return found


def numbers(geometry: Geometry | plain.Collapse2) -> list[float]:
    return [geometry.norm_spread, geometry.angle_spread, geometry.angle_gap, geometry.etf_distance]


@scenes
@pytest.mark.parametrize("convention", [PAPER, PHD20], ids=["by sample", "mixed"])
def test_nc2_of_class_means_agrees_with_the_plain_formulas(scene: Scene, convention: Convention) -> None:
    found, expected = measured(scene, convention), plain.nc2(plain.centered_class_means(*scene))
    if len(np.unique(scene.y)) == 2:  # two centered means are always an ETF: nothing but rounding is left
        assert max(numbers(found)) < 1e-12
        return
    close(numbers(found), numbers(expected))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_nc2_of_classifier_rows_agrees_with_the_plain_formulas(dtype: torch.dtype) -> None:
    rows = torch.randn(6, 20, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = geometry_of(rows)
    assert found is not None
    close(numbers(found), numbers(plain.nc2(rows.double().numpy())))


@pytest.mark.parametrize("sizes", [[10] * 6, [50, 20, 10, 5, 3, 2]], ids=["equal sizes", "unequal sizes"])
def test_nc2_of_a_simplex_etf_is_zero_whatever_the_class_sizes(sizes) -> None:
    means = simplex_etf(6, 15, scale=3.0, rng=np.random.default_rng(1)) + 5.0
    assert max(numbers(measured(around(means, sizes, spread=0.3, seed=2)))) < 1e-12


def test_around_the_sample_mean_a_simplex_etf_of_unequal_sizes_would_look_broken() -> None:
    means = simplex_etf(4, 10, scale=1.0, rng=np.random.default_rng(3))
    scene = around(means, [60, 10, 5, 5], spread=0.1, seed=4)
    assert min(numbers(plain.nc2(plain.class_means(*scene) - scene.x.mean(axis=0)))) > 0.05


def test_vectors_of_equal_direction_are_as_far_from_the_etf_as_the_formula_says() -> None:
    k = 5
    found = geometry_of(torch.ones(k, 3))
    assert found is not None
    close(found.angle_gap, 1 + 1 / (k - 1))
    close(found.etf_distance, np.sqrt(2))  # 11ᵀ/K is orthogonal to I − 11ᵀ/K


def test_nc2_does_not_exist_for_one_vector_or_a_zero_vector() -> None:
    assert geometry_of(torch.ones(1, 4)) is None
    assert geometry_of(torch.tensor([[1.0, 0], [0, 0], [0, 1]])) is None
    assert geometry_of(torch.zeros(3, 0, dtype=torch.float64)) is None


def test_a_class_at_the_center_of_all_classes_has_no_angle() -> None:
    means = np.array([[1.0, 0.1], [-1.0, -0.1], [0.0, 0.0]]) + 0.3
    read = spread_of(around(means, [7, 7, 7], spread=0.1, seed=5))
    assert geometry_of(centered_means(read.subspace)) is None


@scenes
def test_nc3_agrees_with_the_plain_formula(scene: Scene) -> None:
    read = spread_of(scene)
    weight = torch.randn(read.centers.means.shape, generator=torch.Generator().manual_seed(1))
    close(nc3_of(weight, read.centers.means), plain.nc3(weight.double().numpy(), *scene))


def test_nc3_is_zero_for_a_classifier_proportional_to_the_centered_means_and_two_for_its_opposite() -> None:
    scene = SCENES["imbalanced"]
    means = torch.tensor(plain.class_means(*scene))
    weight = 7 * (means - means.mean(dim=0))
    assert nc3_of(weight, means) < 1e-14
    close(nc3_of(-weight, means), 2.0)


def test_nc3_does_not_exist_for_a_zero_classifier_or_equal_means() -> None:
    assert nc3_of(torch.zeros(3, 4), torch.eye(3, 4, dtype=torch.float64)) is None
    assert nc3_of(torch.ones(3, 4), torch.ones(3, 4, dtype=torch.float64)) is None


@scenes
def test_nc4_agrees_with_brute_force_and_the_bias_belongs_in_it(scene: Scene) -> None:
    torch.manual_seed(2)
    layer = nn.Linear(scene.x.shape[1], int(scene.y.max()) + 1)
    nn.init.normal_(layer.bias, std=2.0)
    site = TrainSite(SiteTask(classes=int(scene.y.max()) + 1, layer=layer))
    rows = Assignments(torch.tensor(scene.y))
    site.first([torch.tensor(scene.x)], rows)
    site.turn()
    site.second([torch.tensor(scene.x)], rows)
    nearest = site.statistics().nearest
    assert nearest is not None
    weight, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    assert nearest.disagreements == round(plain.nc4(weight, bias, *scene) * len(scene.y))
    assert int(nearest.hits.sum()) == round(plain.ncc_accuracy(*scene) * len(scene.y))
