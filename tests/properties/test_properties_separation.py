"""What must hold of D, CDNV and nearest centers whatever the data: invariances and identities."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from closeness import close
from equisep import cdnv, class_fuzziness, fuzziness, ncc_accuracy
from equisep.separation import Convention
from reference import plain
from reference.merging import directional_cdnv, merged_directional_cdnv, streamed_fuzziness
from reference.scenes import Scene, blobs, rotation

seeds = st.integers(0, 2**32 - 1)
sizes = st.lists(st.integers(2, 12), min_size=2, max_size=7)
weightings = st.sampled_from(["sample", "class", "mixed"])
unhurried = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Gaussian classes of any sizes; as many features as make K − 1 and d differ, so that means are well spread."""
    chosen = draw(sizes)
    d = draw(st.integers(1, 20).filter(lambda d: abs(d - (len(chosen) - 1)) >= 2 or len(chosen) == 2))
    return blobs(draw(seeds), chosen, d, spread=draw(st.floats(0.05, 3.0)))


@unhurried
@given(scene=scenes(), shift=st.floats(-1e3, 1e3), weighting=weightings)
def test_fuzziness_does_not_change_under_translation(scene: Scene, shift: float, weighting: str) -> None:
    moved = scene.x + shift * np.cos(np.arange(scene.x.shape[1]))
    close(fuzziness(moved, scene.y, weighting=weighting), fuzziness(*scene, weighting=weighting))


@unhurried
@given(scene=scenes(), seed=seeds, weighting=weightings)
def test_fuzziness_does_not_change_under_rotation(scene: Scene, seed: int, weighting: str) -> None:
    turned = scene.x @ rotation(scene.x.shape[1], np.random.default_rng(seed))
    close(fuzziness(turned, scene.y, weighting=weighting), fuzziness(*scene, weighting=weighting))


@unhurried
@given(scene=scenes(), exponent=st.floats(-30, 30), sign=st.sampled_from([-1, 1]))
def test_fuzziness_does_not_change_under_a_common_scale(scene: Scene, exponent: float, sign: int) -> None:
    close(fuzziness(sign * 10**exponent * scene.x, scene.y), fuzziness(*scene))


@unhurried
@given(scene=scenes(), seed=seeds)
def test_fuzziness_does_not_change_with_the_order_of_samples_and_the_names_of_classes(scene: Scene, seed: int) -> None:
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(scene.y)), rng.choice(10**6, size=7, replace=False) - 5 * 10**5
    close(fuzziness(scene.x[order], names[scene.y[order]]), fuzziness(*scene))


@unhurried
@given(scene=scenes(), columns=st.integers(1, 30))
def test_fuzziness_does_not_change_when_constant_features_are_added(scene: Scene, columns: int) -> None:
    wider = np.hstack([scene.x, np.full((len(scene.y), columns), 0.7)])
    close(fuzziness(wider, scene.y), fuzziness(*scene))


@unhurried
@given(scene=scenes(), weighting=weightings)
def test_fuzziness_does_not_change_when_every_sample_is_repeated(scene: Scene, weighting: str) -> None:
    twice = Scene(np.concatenate([scene.x, scene.x]), np.concatenate([scene.y, scene.y]))
    close(fuzziness(*twice, weighting=weighting), fuzziness(*scene, weighting=weighting))


@given(seed=seeds)
@unhurried
def test_fuzziness_does_change_when_single_features_are_scaled(seed: int) -> None:
    scene = blobs(seed, [20, 20, 20], 6)
    factors = np.array([10.0, 1, 1, 1, 1, 1])
    assert abs(fuzziness(scene.x * factors, scene.y) / fuzziness(*scene) - 1) > 1e-4


@unhurried
@given(scene=scenes(), factor=st.floats(0.01, 100))
def test_fuzziness_grows_as_the_square_of_the_spread(scene: Scene, factor: float) -> None:
    means = plain.class_means(*scene)[scene.y]
    close(fuzziness(means + factor * (scene.x - means), scene.y), factor**2 * fuzziness(*scene))


@unhurried
@given(scene=scenes(), weighting=weightings)
def test_fuzziness_is_the_weighted_mean_of_class_fuzziness(scene: Scene, weighting: str) -> None:
    counts = np.bincount(scene.y)
    shares = np.full(len(counts), 1 / len(counts)) if weighting == "class" else counts / counts.sum()
    parts = class_fuzziness(*scene, weighting=weighting)
    assert min(parts) >= 0
    close(fuzziness(*scene, weighting=weighting), shares @ parts)


@unhurried
@given(scene=scenes())
def test_total_scatter_gives_fuzziness_plus_the_rank(scene: Scene) -> None:
    gaps = scene.x - scene.x.mean(axis=0)
    inverse = plain.pseudo_inverse(plain.scatter_between(*scene))
    rank = min(len(np.unique(scene.y)) - 1, scene.x.shape[1])
    close(fuzziness(*scene) + rank, np.trace(gaps.T @ gaps / len(gaps) @ inverse))


@unhurried
@given(scene=scenes(), weighting=weightings, center=st.sampled_from([None, "samples", "classes"]))
def test_every_convention_agrees_with_the_plain_reference(scene: Scene, weighting: str, center: str | None) -> None:
    options = {"weighting": weighting, "center": center}
    close(fuzziness(*scene, **options), plain.fuzziness(*scene, **options), rtol=1e-7)


@unhurried
@given(scene=scenes(), seed=seeds, parts=st.integers(1, 20), weighting=weightings)
def test_splitting_and_merging_in_any_order_changes_nothing(scene, seed: int, parts: int, weighting) -> None:
    convention = Convention(weighting=weighting)
    found = streamed_fuzziness(scene, np.random.default_rng(seed), parts=parts, convention=convention)
    close(found, fuzziness(*scene, weighting=weighting), rtol=1e-10)


@unhurried
@given(scene=scenes(), seed=seeds, shift=st.floats(-100, 100), scale=st.floats(1e-3, 1e3))
def test_cdnv_and_nearest_centers_do_not_change_under_similarities_and_order(scene, seed, shift, scale) -> None:
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(scene.y)), rng.permutation(7) * 3
    moved = Scene((scale * scene.x @ rotation(scene.x.shape[1], rng) + shift)[order], names[scene.y[order]])
    close(cdnv(*moved), cdnv(*scene), rtol=1e-7)
    assert ncc_accuracy(*moved) == ncc_accuracy(*scene)


@unhurried
@given(scene=scenes())
def test_cdnv_and_nearest_centers_agree_with_loops_over_everything(scene: Scene) -> None:
    close(cdnv(*scene), plain.cdnv(*scene))
    assert ncc_accuracy(*scene) == plain.ncc_accuracy(*scene)


@unhurried
@given(scene=scenes(), factor=st.floats(0.01, 100))
def test_cdnv_grows_as_the_square_of_the_spread(scene: Scene, factor: float) -> None:
    means = plain.class_means(*scene)[scene.y]
    close(cdnv(means + factor * (scene.x - means), scene.y), factor**2 * cdnv(*scene))


@unhurried
@given(scene=scenes(), seed=seeds, shift=st.floats(-100, 100), exponent=st.floats(-30, 30))
def test_directional_cdnv_does_not_change_under_similarities_and_order(scene, seed, shift, exponent) -> None:
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(scene.y)), rng.permutation(7) * 3
    moved = 10**exponent * (scene.x @ rotation(scene.x.shape[1], rng) + shift)
    close(directional_cdnv(Scene(moved[order], names[scene.y[order]])), directional_cdnv(scene), rtol=1e-7)


@unhurried
@given(scene=scenes(), seed=seeds, parts=st.integers(1, 20))
def test_directional_cdnv_is_that_of_loops_over_everything_merged_from_any_parts(scene, seed: int, parts: int) -> None:
    wanted = plain.cdnv_directional(*scene)
    close(directional_cdnv(scene), wanted)
    close(merged_directional_cdnv(scene, np.random.default_rng(seed), parts=parts), wanted)
    assert wanted <= cdnv(*scene) * (1 + 1e-9)
