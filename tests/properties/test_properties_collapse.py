"""A simplex ETF is at distance zero wherever it lies; permuted labels have the fuzziness that chance alone gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import close
from equisep import fuzziness
from equisep.separation import PAPER, PHD20, Geometry, geometry_of
from equisep.separation.collapse import centered_means, nc3_of
from reference.merging import spread_of
from reference.scenes import Scene, around, blobs, labels_of, rotation, simplex_etf

seeds = st.integers(0, 2**32 - 1)
unhurried = settings(max_examples=40, deadline=None)


def geometry(scene: Scene, convention=PAPER) -> Geometry:
    found = geometry_of(centered_means(spread_of(scene, convention).subspace))
    assert found is not None
    return found


@unhurried
@given(
    seed=seeds,
    sizes=st.lists(st.integers(1, 15), min_size=2, max_size=8),
    extra=st.integers(0, 10),
    scale=st.floats(1e-3, 1e3),
    convention=st.sampled_from([PAPER, PHD20]),
)
def test_a_simplex_etf_is_found_in_any_position_scale_and_class_sizes(seed, sizes, extra, scale, convention) -> None:
    rng, k = np.random.default_rng(seed), len(sizes)
    means = simplex_etf(k, k - 1 + extra, scale=scale, rng=rng) + scale * rng.normal()
    found = geometry(around(means, sizes, spread=0.2 * scale, seed=seed), convention)
    assert max(found.norm_spread, found.angle_spread, found.angle_gap, found.etf_distance) < 1e-11


@unhurried
@given(seed=seeds, k=st.integers(3, 8), scale=st.floats(1e-3, 1e3))
def test_geometry_does_not_change_under_rotation_and_scale(seed: int, k: int, scale: float) -> None:
    scene = blobs(seed, [5] * k, 6)
    moved = Scene(scale * scene.x @ rotation(6, np.random.default_rng(seed)) + scale, scene.y)
    one, other = geometry(scene), geometry(moved)
    for name in Geometry.__slots__:
        close(getattr(one, name), getattr(other, name))


@unhurried
@given(seed=seeds, scale=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
def test_nc3_does_not_change_with_the_scale_of_either_side_and_the_place_of_the_means(seed, scale, shift) -> None:
    scene = blobs(seed, [5] * 4, 6)
    means = spread_of(scene).centers.means
    weight = means.flip(0)
    close(nc3_of(scale * weight, means), nc3_of(weight, means))
    close(nc3_of(weight, scale * means + shift), nc3_of(weight, means))


@pytest.mark.parametrize(("per_class", "k", "d"), [(20, 5, 40), (50, 4, 20), (5, 10, 200)])
def test_permuted_labels_have_the_fuzziness_of_chance(per_class: int, k: int, d: int) -> None:
    """For Gaussian features B Bᵀ is Wishart/n: E tr W⁻¹ = (K−1)/(d−K) and E D = (n−K)(K−1)/(d−K)."""
    rng = np.random.default_rng(0)
    y, n = labels_of([per_class] * k), per_class * k
    found = np.mean([fuzziness(rng.normal(size=(n, d)), rng.permutation(y)) for _ in range(60)])
    expected = (n - k) * (k - 1) / (d - k)
    assert abs(found / expected - 1) < 0.05


@unhurried
@given(seed=seeds)
def test_separated_classes_lie_far_below_their_permuted_labels(seed: int) -> None:
    scene = blobs(seed, [20] * 4, 10, spread=0.3)
    assert fuzziness(*scene) < 0.2 * fuzziness(scene.x, np.random.default_rng(seed).permutation(scene.y))
