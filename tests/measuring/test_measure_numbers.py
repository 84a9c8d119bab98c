"""Every number of a profile is the one computed directly from features captured by hand."""

import math
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest
import torch
from measured_by_hand import (
    SIZES,
    batches,
    between_rows,
    class_means,
    codes,
    features,
    geometry,
    nc3,
    nearest,
    network,
    note,
    samples,
    scatter,
)

import equisep
from equisep.measuring import METRICS, measure
from equisep.models import Fnn
from equisep.results import Profile
from reference import plain

ways = pytest.mark.parametrize("memory", [None, 0], ids=["buffered", "streamed"])
modes = pytest.mark.parametrize("mode", ["eval", "mixed"])
sizes = pytest.mark.parametrize("size", list(SIZES))


def both(size: str) -> tuple[list, list]:
    return batches(samples(SIZES[size])), batches(samples(SIZES[size], seed=2), 40)


def measured(size: str, mode: str, memory: int | None, **options: object) -> tuple[Profile, list, list]:
    train, test = both(size)
    profile = measure(network(), train, test, reading=mode, memory=memory, **options)  # type: ignore[arg-type]
    return profile, *(features(network(), part, mode) for part in (train, test))


@ways
@modes
@sizes
def test_fuzziness_cdnv_and_nearest_centers_are_the_plain_functions(size: str, mode: str, memory: int | None) -> None:
    profile, (train, y, scores), (test, y_test, scores_test) = measured(size, mode, memory)
    assert [site.name for site in profile.sites] == ["input", "blocks.0", "blocks.1", "blocks.2"]
    assert [site.dim for site in profile.sites] == [8, 9, 7, 6]
    for site, x, x_test in zip(profile.sites, train, test, strict=True):
        assert site.fuzziness == pytest.approx(equisep.fuzziness(x, y), rel=1e-10)
        assert site.fuzziness_test == pytest.approx(equisep.fuzziness(x_test, y_test), rel=1e-10)
        assert site.class_fuzziness == pytest.approx(equisep.class_fuzziness(x, y), rel=1e-10)
        assert site.cdnv == pytest.approx(equisep.cdnv(x, y), rel=1e-10)
        assert site.cdnv_test == pytest.approx(equisep.cdnv(x_test, y_test), rel=1e-10)
        assert site.ncc_train == equisep.ncc_accuracy(x, y)
        assert site.ncc_test == equisep.ncc_accuracy(x_test, y_test, train=(x, y))
    assert profile.accuracy_train == (scores.argmax(1) == y).double().mean()
    assert profile.accuracy_test == (scores_test.argmax(1) == y_test).double().mean()


@ways
@modes
@sizes
def test_collapse_traces_and_spectrum_are_the_formulas(size: str, mode: str, memory: int | None) -> None:
    profile, (train, y, _), _ = measured(size, mode, memory)
    for site, x in zip(profile.sites, train, strict=True):
        ssw, ssb = scatter(x, y)
        values = np.linalg.svd(between_rows(x, y), compute_uv=False)[:3]
        assert site.singular_values == pytest.approx(values, rel=1e-10)
        assert site.rank == 3
        assert 0 < site.cut < values[-1]
        assert site.trace_within == pytest.approx(np.trace(ssw), rel=1e-10)
        assert site.trace_between == pytest.approx(np.trace(ssb), rel=1e-10)
        assert site.fuzziness == pytest.approx(np.trace(ssw @ np.linalg.pinv(ssb, rcond=1e-9)), rel=1e-7)
        ssw, ssb = scatter(x, y, between="class")  # NC1 follows PHD20: SSw by sample, SSb by class
        assert site.nc1 == pytest.approx(np.trace(ssw @ np.linalg.pinv(ssb, rcond=1e-9)) / 4, rel=1e-7)
        for name, value in geometry(class_means(x, y)).items():
            assert getattr(site, name) == pytest.approx(value, rel=1e-8), name


@ways
@modes
@sizes
def test_the_classifier_is_the_formulas(size: str, mode: str, memory: int | None) -> None:
    profile, (train, y, scores), (test, _, scores_test) = measured(size, mode, memory)
    head, means = network().head, class_means(train[-1], y)
    found = profile.classifier
    assert found.name == "head"
    assert found.nc3 == pytest.approx(nc3(head, means), rel=1e-10)
    assert found.nc4 == np.mean(scores.argmax(1).numpy() != nearest(train[-1], means))
    assert found.nc4_test == np.mean(scores_test.argmax(1).numpy() != nearest(test[-1], means))
    assert 0 < found.nc4 < 1
    for name, value in geometry(head.weight.detach().double().numpy()).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-8), name


def test_the_bias_belongs_in_nc4() -> None:
    model, data = network(), batches(samples())
    with torch.no_grad():
        model.head.bias.copy_(torch.tensor([100.0, 0, 0, 0]))  # the network now always says 0
    (*_, last), y, _ = features(model, data)
    wanted = np.mean(nearest(last, class_means(last, y)) != 0)
    assert 0.1 < wanted < 1
    assert measure(model, data).classifier.nc4 == wanted


def leaves(value: Any) -> list[Any]:
    """What records and tuples hold, in order."""
    if is_dataclass(value):
        return leaves(tuple(getattr(value, name) for name in value.__dataclass_fields__))
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


def agree(one: Any, two: Any) -> bool:
    return bool(one == two) or bool(leaves(one) == pytest.approx(leaves(two), rel=1e-10, abs=0))


@sizes
@modes
def test_buffered_and_streamed_agree_in_every_number(size: str, mode: str) -> None:
    train, test = both(size)
    one, two = (measure(network(), train, test, reading=mode, memory=memory) for memory in (None, 0))  # type: ignore[arg-type]
    exempt = {
        "null",
        "coordinates",
        "fuzziness_interval",
        "fuzziness_folds",
        "corrected",
        "corrected_test",
    }  # of samples; by single-precision directions
    for a, b in zip(one.sites, two.sites, strict=True):
        for name in a.__dataclass_fields__.keys() - exempt:
            left, right = getattr(a, name), getattr(b, name)
            assert left is not None, name
            assert agree(left, right), name
    for name in ("rho", "r", "half_life", "intercept", "imbalance"):
        assert agree(getattr(one.law, name), getattr(two.law, name)), name
    for name in one.classifier.__dataclass_fields__:
        assert agree(getattr(one.classifier, name), getattr(two.classifier, name)), name
    for name in ("counts", "counts_test", "accuracy_train", "accuracy_test", "effective_depth", "classes"):
        assert getattr(one, name) == getattr(two, name)
    assert one.laws.keys() == two.laws.keys() == {
        "corrected", "corrected test", "test", "cdnv", "cdnv_directional", "class 0", "class 1", "class 2", "class 3",
    }  # fmt: skip


@ways
def test_the_law_is_the_fit_of_the_curve(memory: int | None) -> None:
    profile, *_ = measured("imbalanced", "mixed", memory)
    law = equisep.fit_law(profile.curve())
    assert (profile.law.rho, profile.law.r, profile.law.loads) == (law.rho, law.r, law.loads)
    assert profile.laws["test"].rho == equisep.fit_law(profile.curve("fuzziness_test")).rho
    for name in ("cdnv", "cdnv_directional"):
        assert profile.laws[name].rho == equisep.fit_law(profile.curve(name)).rho
    curve = [site.class_fuzziness[2] for site in profile.sites]
    assert profile.laws["class 2"].rho == equisep.fit_law(curve).rho


@ways
@pytest.mark.parametrize(
    ("weighting", "within", "between"),
    [("sample", "sample", "sample"), ("class", "class", "class"), ("mixed", "sample", "class")],
)
def test_weighting_is_the_convention_asked_for(memory: int | None, weighting: str, within: str, between: str) -> None:
    profile, (train, y, _), (test, y_test, _) = measured("imbalanced", "eval", memory, weighting=weighting)
    for site, x, x_test in zip(profile.sites, train, test, strict=True):
        ssw, ssb = scatter(x, y, within=within, between=between)
        assert site.fuzziness == pytest.approx(np.trace(ssw @ np.linalg.pinv(ssb, rcond=1e-9)), rel=1e-7)
        assert site.fuzziness_test == pytest.approx(equisep.fuzziness(x_test, y_test, weighting=weighting), rel=1e-10)
        ssw, ssb = scatter(x, y, between="class")
        assert site.nc1 == pytest.approx(np.trace(ssw @ np.linalg.pinv(ssb, rcond=1e-9)) / 4, rel=1e-7)
    assert profile.settings["weighting"] == weighting


@ways
def test_center_normalization_and_tol_are_handed_on(memory: int | None) -> None:
    profile, (train, y, _), _ = measured(
        "imbalanced", "eval", memory, center="classes", normalization="classes", tol=0.6
    )
    for site, x in zip(profile.sites, train, strict=True):
        wanted = equisep.fuzziness(x, y, center="classes", normalization="classes", tol=0.6)
        assert site.fuzziness == pytest.approx(wanted, rel=1e-10)
        assert site.cut == pytest.approx(0.6 * site.singular_values[0])
    assert "rank" in codes(profile)


@ways
def test_the_null_is_d_without_class_structure(memory: int | None) -> None:
    train = batches(samples([500] * 4, spread=0.3), 200)
    profile = measure(network(), train, memory=memory, intervals="none")
    # n·SSb of permuted labels has K − 1 directions of the size of one sample's spread: D ≈ n/(K−1)·… ≫ D
    for site in profile.sites:
        assert site.null > 100
        assert site.null > 50 * site.fuzziness
    again = measure(network(), train, memory=memory, intervals="none")
    assert again.curve("null") == profile.curve("null")
    other = measure(network(), train, memory=memory, intervals="none", seed=1)
    assert other.curve("null") != profile.curve("null")
    assert other.curve() == profile.curve()


@pytest.mark.parametrize("asked", METRICS)
@ways
def test_metrics_not_asked_for_are_none(asked: str, memory: int | None) -> None:
    fields = {
        "fuzziness": {"fuzziness", "fuzziness_test", "rank", "cut", "fuzziness_interval", "fuzziness_folds"},
        "class_fuzziness": {"class_fuzziness"},
        "null": {"null"},
        "collapse": {"nc1", "norm_spread", "angle_spread", "angle_gap", "etf_distance"},
        "cdnv": {"cdnv", "cdnv_test"},
        "ncc": {"ncc_train", "ncc_test", "ncc_class_train", "ncc_class_test"},
        "traces": {"trace_within", "trace_between"},
        "spectrum": {"rank", "cut", "singular_values"},
        "margins": set(),
        "confusion": {"confused", "confused_test"},
        "pairs": {"nearest", "cosines"},
        "cdnv_directional": {"cdnv_directional"},
    }[asked]
    train, test = ([(x.repeat(16, 1), y.repeat(16)) for x, y in part] for part in both("balanced"))
    # 10 folds of 4 × 30 means fit 50,000 bytes, the features of 1920 samples do not
    profile = measure(
        network(), train, test, metrics=[asked], coordinates=0, memory=memory if memory is None else 50_000
    )
    for site in profile.sites:
        given = {name for name in site.__dataclass_fields__ if getattr(site, name) is not None}
        assert given == {"index", "name", "dim"} | fields
    assert (profile.classifier is not None) == (asked in ("collapse", "margins"))
    assert (profile.classifier is not None and profile.classifier.margins is not None) == (asked == "margins")
    assert (profile.confused_train is not None) == (profile.confused_test is not None) == (asked == "confusion")
    assert (profile.law.rho is not None) == (asked == "fuzziness")
    assert ("no-effective-depth" in codes(profile) or profile.effective_depth is not None) == (asked == "ncc")


def test_effective_depth_is_the_first_layer_from_which_on_nearest_centers_separate_up_to_epsilon() -> None:
    train = batches(samples(spread=0.55))
    profile = measure(network(), train)
    accuracy = profile.curve("ncc_train")
    assert accuracy[1] < 1
    for epsilon in (1 - accuracy[1], 1 - accuracy[1] - 1e-9, 0.5, 0.0):
        wanted = next((l for l in range(1, 4) if min(accuracy[l:]) >= 1 - epsilon), None)  # noqa: E741
        assert measure(network(), train, epsilon=epsilon).effective_depth == wanted


def test_accuracies_per_class_are_those_of_the_samples() -> None:
    profile, (train, y, scores), _ = measured("imbalanced", "eval", None)
    for k, value in enumerate(profile.accuracy_class_train):
        assert value == float((scores[y == k].argmax(dim=1) == k).double().mean())
    means = torch.stack([train[-1][y == k].double().mean(dim=0) for k in range(4)])
    near = torch.cdist(train[-1].double(), means).argmin(dim=1)
    for k, value in enumerate(profile.sites[-1].ncc_class_train):
        assert value == float((near[y == k] == k).double().mean())


def pairs(found: Any) -> list[tuple[int, int, float]]:
    return [(pair.first, pair.second, pair.value) for pair in found]


@ways
def test_numbers_of_pairs_and_margins_are_those_of_the_samples(memory: int | None) -> None:
    profile, (train, y, scores), (test, y_test, scores_test) = measured("imbalanced", "eval", memory)
    for found, own, given in ((profile.confused_train, y, scores), (profile.confused_test, y_test, scores_test)):
        assert found and pairs(found) == plain.confused(own.numpy(), given.argmax(dim=1).numpy())
    for site, x, x_test in zip(profile.sites, train, test, strict=True):
        means = class_means(x, y)
        assert pairs(site.confused) == plain.confused(y.numpy(), nearest(x, means))
        assert pairs(site.confused_test) == plain.confused(y_test.numpy(), nearest(x_test, means))
        assert site.cdnv_directional == pytest.approx(plain.cdnv_directional(x.double().numpy(), y.numpy()), rel=1e-9)
        assert site.cdnv_directional < site.cdnv
    found = profile.classifier
    assert found.margins == pytest.approx(plain.margins(scores.double().numpy(), y.numpy()), rel=1e-6)
    assert found.margins_test == pytest.approx(plain.margins(scores_test.double().numpy(), y_test.numpy()), rel=1e-6)


def test_a_class_without_samples_has_no_margin_and_an_infinite_score_has_none() -> None:
    class Refusing(Fnn):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = super().forward(x)
            scores[:, 2] = -torch.inf
            return scores

    model = Refusing(widths=[9, 7, 6], inputs=8, classes=4)
    x, y = samples([30, 30, 30])
    found = measure(model, batches((x, y))).classifier.margins
    assert found[2] is None and found[3] is None and None not in found[:2]


def test_the_depth_that_does_as_well_as_the_network() -> None:
    profile = measure(network(), batches(samples(spread=0.55)))
    curve, accuracy = profile.curve("ncc_train"), profile.accuracy_train
    wanted = next((l for l in range(1, 4) if curve[l] + 0.01 >= accuracy), None)  # noqa: E741
    assert profile.network_depth == wanted


def test_site_zero_is_never_the_effective_depth() -> None:
    profile = measure(network(), batches(samples(spread=1e-3)))
    assert profile.curve("ncc_train")[:2] == (1.0, 1.0)
    assert profile.effective_depth == 1


def test_no_separable_site_means_no_effective_depth_and_a_note() -> None:
    profile = measure(network(), batches(samples(spread=5.0)))
    assert profile.effective_depth is None
    assert "does not stay at 99 %" in note(profile, "no-effective-depth")


def test_settings_hold_every_choice_and_the_batches() -> None:
    profile, *_ = measured("imbalanced", "mixed", None, sites=["blocks.*"], seed=3)
    settings = profile.settings
    assert (settings["reading"], settings["sites"], settings["seed"]) == ("mixed", ["blocks.*"], 3)
    assert (settings["batch_sizes"], settings["batch_sizes_test"]) == ([25, 24], [40, 4])
    assert settings["intervals_by"] == "jackknife"
    assert set(settings) >= {"weighting", "center", "normalization", "tol", "epsilon", "memory", "metrics", "level"}
    assert set(profile.provenance) >= {"equisep", "torch", "numpy", "python", "device", "dtype"}
    assert profile.provenance["dtype"] == "float32"


def test_coordinates_are_principal_components_of_the_features_and_can_be_switched_off() -> None:
    profile, (train, y, _), _ = measured("balanced", "eval", None)
    x = train[-1].double().numpy()
    x = x - x.mean(axis=0)
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    plane = profile.sites[-1].coordinates
    wanted = np.abs(x @ vt[:2].T)
    np.testing.assert_allclose(np.abs(np.array(plane.points)), wanted, rtol=1e-3, atol=1e-4)
    assert plane.labels == tuple(y.tolist())
    assert plane.explained == pytest.approx(s[:2] ** 2 / (s**2).sum(), rel=1e-6)
    few = measure(network(), both("balanced")[0], coordinates=20).sites[0].coordinates
    assert len(few.points) == len(few.labels) == 20
    assert measure(network(), both("balanced")[0], coordinates=0).sites[0].coordinates is None


def test_wide_features_have_the_same_chance_level_and_intervals_whatever_fits_into_memory() -> None:
    torch.manual_seed(0)
    wide = torch.nn.Sequential(torch.nn.Linear(8, 2100), torch.nn.ReLU(), torch.nn.Linear(2100, 4))
    y = torch.arange(300) % 4
    x = torch.randn(4, 8)[y] + torch.randn(300, 8)

    def found(memory: int | None) -> list[float]:
        site = measure(wide, (x, y), whole=False, memory=memory).sites[-1]
        assert site.dim == 2100 and site.null is not None and site.fuzziness_folds is not None
        corrected = site.corrected
        assert corrected is not None and corrected.value is not None and corrected.high is not None
        return [site.null, *site.fuzziness_folds, corrected.value, corrected.high]

    assert found(0) == pytest.approx(found(None), rel=1e-12)


def test_all_numbers_are_finite() -> None:
    profile, *_ = measured("imbalanced", "eval", None)

    def walk(value: object) -> None:
        if isinstance(value, float):
            assert math.isfinite(value)
        elif isinstance(value, dict):
            for entry in value.values():
                walk(entry)
        elif isinstance(value, list):
            for entry in value:
                walk(entry)

    walk(profile.to_dict())
