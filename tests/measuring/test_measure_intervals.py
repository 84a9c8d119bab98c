"""Intervals by bootstrap and by jackknife, from kept features and from folds of a stream."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from measured_by_hand import batches, codes, features, network, note, samples

from equisep.errors import DataError
from equisep.law import student_quantile
from equisep.measuring import measure
from equisep.models import Fnn
from equisep.results import Profile
from equisep.separation import Assignments
from reference.shares import fuzziness_at_shares

LARGE = batches(samples([250] * 4), 50)  # 1000 samples × 30 features × 4 bytes = 120,000 bytes


def widths(profile: Profile) -> list[float]:
    return [site.fuzziness_interval.high / site.fuzziness_interval.low for site in profile.sites]


@pytest.mark.parametrize("kind", ["bootstrap", "jackknife"])
def test_intervals_hold_the_estimates(kind: str) -> None:
    profile = measure(network(), LARGE, intervals=kind)  # type: ignore[arg-type]
    assert profile.settings["intervals_by"] == kind
    for site in profile.sites:
        interval = site.fuzziness_interval
        assert interval.low < site.fuzziness < interval.high
        assert interval.high < 2 * interval.low
        assert (interval.kind, interval.n, interval.level) == (kind, 200 if kind == "bootstrap" else 10, 0.95)
    assert profile.law.intervals["rho"].low < profile.law.rho < profile.law.intervals["rho"].high
    assert profile.law.intervals.keys() == {"rho", "half_life"}


def test_bootstrap_is_reproducible_by_seed() -> None:
    one, two, other = (measure(network(), LARGE, intervals="bootstrap", seed=seed, resamples=50) for seed in (1, 1, 2))
    assert one.law.intervals == two.law.intervals
    assert one.law.intervals != other.law.intervals
    assert one.law.rho == other.law.rho


def test_a_higher_level_is_wider() -> None:
    narrow, wide = (measure(network(), LARGE, level=level) for level in (0.5, 0.99))
    assert all(a < b for a, b in zip(widths(narrow), widths(wide), strict=True))


@pytest.mark.parametrize("memory", [None, 0])
def test_each_fold_leaves_out_a_tenth_of_the_samples_by_their_numbers(memory: int | None) -> None:
    """The standard error from D computed on the nine tenths that stay, one fold after the other."""
    sites, y, _ = features(network(), LARGE)
    fold = Assignments.of(y, first=0, classes=4, folds=10, relabelings=0, seed=0).folds
    profile = measure(network(), LARGE, memory=memory, metrics=("fuzziness",))
    assert profile.settings["intervals_by"] == "jackknife"
    steadier = measure(network(), LARGE, memory=memory)  # random labels too: what a jackknife counts twice is known
    for site, other, x in zip(profile.sites, steadier.sites, sites, strict=True):
        logs = np.log([fuzziness_at_shares(x[fold != g], y[fold != g], np.bincount(y)) for g in range(10)])
        reach = student_quantile(0.975, 9) * math.sqrt(0.9 * ((logs - logs.mean()) ** 2).sum())
        assert site.fuzziness_interval.low == pytest.approx(site.fuzziness * math.exp(-reach), rel=1e-8)
        assert site.fuzziness_interval.high == pytest.approx(site.fuzziness * math.exp(reach), rel=1e-8)
        assert other.fuzziness_folds == pytest.approx(np.exp(logs), rel=1e-8)
        least = reach / math.sqrt(1 + 2.3)
        assert math.exp(least) < other.fuzziness_interval.high / other.fuzziness < math.exp(reach)


def test_the_bootstrap_of_features_that_do_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"`intervals='bootstrap'` needs all features in memory, .* Raise `memory`"):
        measure(network(), LARGE, intervals="bootstrap", memory=1000)


def test_sums_by_fold_that_are_too_large_are_left_out_with_a_note_whatever_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("equisep.measuring.plan.STATE_BYTES", 8 * 16 * 4 * 8)  # the input has 8 features, a layer 9
    for memory in (None, 0):
        profile = measure(network(), LARGE, memory=memory)
        assert profile.law.intervals == {} and None not in profile.curve("null")
        assert note(profile, "no-intervals").startswith(
            "Intervals were left out: the sums of 10 folds of 4 classes take"
        )


def test_too_few_samples_for_folds_are_a_note() -> None:
    profile = measure(network(), batches(samples([5, 5, 5, 4]), 19), intervals="jackknife")
    assert profile.law.intervals == {}
    assert note(profile, "no-intervals") == "Intervals were left out: 10 folds of 19 samples are too small."


@pytest.mark.parametrize("memory", [None, 0])
def test_none_means_none(memory: int | None) -> None:
    profile = measure(network(), LARGE, intervals="none", memory=memory)
    assert profile.law.intervals == {}
    assert all(site.fuzziness_interval is None for site in profile.sites)
    assert profile.settings["intervals_by"] is None
    assert not {"no-intervals", "jackknife"} & set(codes(profile))


def test_labels_in_step_with_the_folds_do_not_widen_the_interval() -> None:
    """Labels 0 1 … 9 0 1 … 9 …: folds by position would each leave out a whole class."""
    x, y = samples([100] * 10)
    order = y.argsort(stable=True).reshape(10, 100).T.flatten()
    assert y[order].tolist() == list(range(10)) * 100
    torch.manual_seed(0)
    model = Fnn(widths=[20, 20], inputs=8, classes=10)
    data = batches((x[order], y[order]), 50)
    streamed = measure(model, data, memory=0)
    kept = measure(model, data, intervals="jackknife")
    assert streamed.settings["intervals_by"] == kept.settings["intervals_by"] == "jackknife"
    # ten folds know a standard error to a factor of two or so; leaving whole classes out is off by far more
    ratio = np.log(widths(streamed)) / np.log(widths(kept))
    assert (ratio > 1 / 4).all() and (ratio < 4).all()


@pytest.mark.parametrize("memory", [None, 0])
def test_d_without_each_fold_travels_with_the_profile(memory: int | None) -> None:
    sites, y, _ = features(network(), LARGE)
    fold = Assignments.of(y, first=0, classes=4, folds=10, relabelings=0, seed=0).folds
    profile = measure(network(), LARGE, memory=memory)
    for site, x in zip(profile.sites, sites, strict=True):
        wanted = [fuzziness_at_shares(x[fold != g], y[fold != g], np.bincount(y)) for g in range(10)]
        assert site.fuzziness_folds == pytest.approx(wanted, rel=1e-6)  # their directions are of single precision
    assert (profile.samples.n, profile.samples.folds, profile.samples.seed) == (1000, 10, 0)


@pytest.mark.parametrize("kind", ["bootstrap", "none"])
def test_without_a_jackknife_there_are_no_folds(kind: str) -> None:
    profile = measure(network(), LARGE, intervals=kind, resamples=5)  # type: ignore[arg-type]
    assert profile.samples is None and profile.sites[0].fuzziness_folds is None


def test_the_order_of_samples_is_known_by_labels_and_inputs_whatever_the_batches() -> None:
    x, y = samples([25] * 4)
    one, two, by_name = (
        measure(network(), data).samples for data in (batches((x, y), 10), batches((x, y), 33), [{"x": x, "labels": y}])
    )
    assert one == two == by_name
    moved, turned = x.clone(), y.flip(0)
    moved[7, 3] += 1e-6
    other = measure(network(), batches((moved, y))).samples
    assert other.inputs != one.inputs and replace(other, inputs=one.inputs) == one
    other = measure(network(), batches((x, turned))).samples
    assert other.labels != one.labels and replace(other, labels=one.labels) == one
