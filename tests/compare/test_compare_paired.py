"""Two profiles of the same samples: folds are paired, what is shared cancels, and too much bias leaves an interval out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from equisep.compare import ProfileDifference, compare_profiles
from equisep.compare.paired import MOST_BIAS, ByFold, Pairing, paired_interval
from equisep.files import encode
from equisep.law import student_quantile
from equisep.measuring import measure
from equisep.models import build
from equisep.results import Interval, Profile, SampleOrder
from equisep.results.codec import decode
from equisep.training import Recipe, train


def data(n: int = 400, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 4
    centers = 1.3 * torch.randn(4, 6, generator=torch.Generator().manual_seed(9))
    return centers[y] + torch.randn(n, 6, generator=generator), y


@cache
def network(weights: int) -> nn.Module:
    model = build("fnn", seed=weights, widths=[8, 8], inputs=6, classes=4)
    train(model, *data(200, seed=8), recipe=Recipe(epochs=40, batch_size=50, rate=0.01))
    return model


def profile(weights: int, x: Tensor, y: Tensor, **options: object) -> Profile:
    return sampled(measure(network(weights), (x, y), **options))  # type: ignore[arg-type]


def sampled(found: Profile) -> Profile:
    """As of a sample, and not of all there is."""
    return replace(found, settings={**found.settings, "whole": False})


@pytest.fixture(scope="module")
def both() -> tuple[Profile, Profile]:
    return profile(0, *data()), profile(1, *data())


PAIRED = Pairing("samples", True)


def folded(value: float, spread: float, bias: float) -> ByFold:
    """A number with jackknife standard error `spread` and the bias given."""
    steps = np.array([-1.0, 1.0] * 5)
    return ByFold(value, value + bias / 9 + steps * spread / 3)


def test_a_profile_beside_itself_is_one_without_doubt(both: tuple[Profile, Profile]) -> None:
    """It was 1.00 [0.633, 1.58]."""
    found = compare_profiles(both[0], both[0])
    assert found.paired == "samples"
    for site in found.sites:
        span = site.fuzziness.interval
        assert (span.low, site.fuzziness.value, span.high, span.kind, span.n) == (1.0, 1.0, 1.0, "paired", 10)
        assert site.fuzziness.excludes_one is False
    assert (found.law.rho.interval.low, found.law.rho.interval.high, found.law.rho.excludes_zero) == (0, 0, False)
    assert [note.code for note in found.notes] == ["same-numbers"]


def test_the_same_pixels_are_the_same_whatever_follows_them(both: tuple[Profile, Profile]) -> None:
    first, *_, last = compare_profiles(*both).sites
    assert (first.fuzziness.interval.low, first.fuzziness.interval.high) == (1.0, 1.0)
    assert last.fuzziness.interval.low < last.fuzziness.value < last.fuzziness.interval.high


def test_intervals_are_those_of_the_differences_fold_by_fold(both: tuple[Profile, Profile]) -> None:
    a, b = both
    found = compare_profiles(a, b)
    for left, right, site in zip(a.sites[1:], b.sites[1:], found.sites[1:], strict=True):
        logs = np.log(right.fuzziness_folds) - np.log(left.fuzziness_folds)
        value = math.log(right.fuzziness / left.fuzziness)
        reach = student_quantile(0.975, 9) * math.sqrt(0.9 * ((logs - logs.mean()) ** 2).sum())
        bias = 9 * (logs.mean() - value)
        wanted = (value - reach - max(bias, 0), value + reach - min(bias, 0))
        span = site.fuzziness.interval
        assert (math.log(span.low), math.log(span.high)) == pytest.approx(wanted, rel=1e-9)
    slopes = [np.polyfit(np.arange(3), np.log([site.fuzziness_folds for site in each.sites]), 1)[0] for each in both]
    rhos = np.exp(slopes[1]) - np.exp(slopes[0])
    width = found.law.rho.interval.high - found.law.rho.interval.low
    bias = 9 * (rhos.mean() - found.law.rho.value)
    reach = student_quantile(0.975, 9) * math.sqrt(0.9 * ((rhos - rhos.mean()) ** 2).sum())
    assert width == pytest.approx(2 * reach + abs(bias), rel=1e-9)
    for part in (found.law.half_life, found.law.r):
        assert part.interval is None and part.value is not None


def test_pairing_is_narrower_than_two_profiles_by_themselves(both: tuple[Profile, Profile]) -> None:
    a, b = both
    paired = compare_profiles(a, b)
    apart = compare_profiles(replace(a, samples=None), b)
    assert apart.paired is None and apart.sites[1].fuzziness.interval.kind == "combined"
    spans = [[site.fuzziness.interval for site in each.sites] for each in (paired, apart)]
    mine, joined = ([math.log(span.high / span.low) for span in each] for each in spans)
    assert mine[0] == 0 < joined[0] and sum(mine) < 0.8 * sum(joined)


def test_other_samples_or_another_order_are_not_paired(both: tuple[Profile, Profile]) -> None:
    x, y = data()
    other = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    for changed in (profile(1, x[other], y[other]), profile(1, *data(300)), profile(1, x, y, seed=5)):
        found = compare_profiles(both[0], changed)
        assert found.paired is None
        assert found.sites[1].fuzziness.interval.kind == "combined"


def test_of_other_samples_both_errors_add_up(both: tuple[Profile, Profile]) -> None:
    a, b = folded(0.0, 3.0, 0.5), folded(1.0, 4.0, -0.5)
    span = paired_interval(a, b, Pairing(None, True)).interval
    reach = student_quantile(0.975, int(9 * 25**2 / (3**4 + 4**4))) * 5
    assert (span.low, span.high) == pytest.approx((1 - reach, 1 + reach)) and span.kind == "combined"
    assert paired_interval(folded(0.0, 1.0, 2.0), b, Pairing(None, True)).interval is None


def test_the_same_labels_of_other_inputs_are_paired_and_told(both: tuple[Profile, Profile]) -> None:
    found = compare_profiles(both[0], profile(1, *data(seed=3)))
    assert found.paired == "labels"
    assert [note.code for note in found.notes] == ["same-labels"]
    assert "cannot be told from their inputs" in found.notes[0].text
    assert found.sites[1].fuzziness.interval.kind == "paired"


def test_profiles_at_two_levels_have_no_interval_and_say_so(both: tuple[Profile, Profile]) -> None:
    found = compare_profiles(both[0], profile(1, *data(), level=0.9))
    assert found.sites[1].fuzziness.interval is None
    assert "levels-differ" in [note.code for note in found.notes]


def test_the_interval_reaches_to_the_side_of_the_bias() -> None:
    a, b = folded(0.0, 1.0, -0.2), ByFold(1.0, 1.0 - 0.5 / 9 + np.array([1.0, -1.0] * 5) / 3)
    assert (a.error, a.bias, b.bias) == pytest.approx((1.0, -0.2, -0.5))
    span = paired_interval(a, b, PAIRED).interval
    reach = 2 * student_quantile(0.975, 9)  # the folds vary against each other
    assert (span.low, span.high) == pytest.approx((1 - reach, 1 + reach + 0.3))


def test_more_bias_than_the_folds_can_tell_leaves_the_interval_out() -> None:
    fine = folded(1.0, 0.1, 0.0)
    for wrong in (MOST_BIAS + 0.1, -MOST_BIAS - 0.1):
        found = paired_interval(folded(0.0, 1.0, wrong), fine, PAIRED)
        assert found.interval is None and found.bias == pytest.approx(MOST_BIAS + 0.1)
    assert paired_interval(folded(0.0, 1.0, MOST_BIAS - 0.1), fine, PAIRED).interval is not None
    same = folded(0.0, 1.0, 5.0)
    assert paired_interval(same, same, PAIRED).interval == Interval(0.0, 0.0, 0.95, "paired", 10)


def test_few_samples_in_many_features_have_no_interval_and_a_note() -> None:
    x = torch.randn(200, 80, generator=torch.Generator().manual_seed(0))
    y = torch.arange(200) % 10
    a, b = (measure(build("fnn", seed=s, widths=[80, 80], inputs=80, classes=10), (x, y)) for s in (0, 1))
    found = compare_profiles(sampled(a), sampled(b))
    assert found.sites[0].fuzziness.interval.low == 1.0  # the same pixels
    assert found.sites[1].fuzziness.interval is None and found.sites[1].fuzziness.bias > MOST_BIAS
    (note,) = [note for note in found.notes if note.code == "fold-bias"]
    assert "D at layers 1, 2: D of 200 samples lies below that of the population" in note.text


def test_of_a_whole_set_differences_are_exact(both: tuple[Profile, Profile]) -> None:
    """No other samples are in question: only what is the same in both has an interval, of no width."""
    a, b = (replace(each, settings={**each.settings, "whole": True}) for each in both)
    found = compare_profiles(a, b)
    assert [site.fuzziness.interval is None for site in found.sites] == [False, True, True]
    assert (found.law.rho.interval, found.law.rho.excludes_zero, found.law.rho.bias) == (None, None, None)
    assert found.law.rho.value == compare_profiles(*both).law.rho.value
    assert [note.code for note in found.notes] == ["exact"]
    assert compare_profiles(a, sampled(b)).sites[1].fuzziness.interval is not None


def test_two_whole_sets_differ_exactly_whatever_their_samples_and_folds(both: tuple[Profile, Profile]) -> None:
    """Other samples, another level, intervals by bootstrap or none: what was read is all there is."""
    x, y = data(300)
    a = replace(both[0], settings={**both[0].settings, "whole": True})
    options: tuple[dict[str, object], ...] = ({}, {"level": 0.8}, {"intervals": "bootstrap"}, {"intervals": "none"})
    for others in options:
        other = profile(1, x, y, **others)
        found = compare_profiles(a, replace(other, settings={**other.settings, "whole": True}))
        assert {site.fuzziness.interval for site in found.sites} == {None}
        assert (found.law.rho.interval, found.law.r.interval, found.law.last.interval) == (None, None, None)
        codes = [note.code for note in found.notes]
        assert "exact" in codes and "levels-differ" not in codes and "fold-bias" not in codes


def test_folds_that_are_missing_or_zero_leave_no_interval(both: tuple[Profile, Profile]) -> None:
    a, b = both
    for folds in (None, (1.0,) * 9 + (0.0,), (1.0,) * 4):
        sites = (*b.sites[:-1], replace(b.sites[-1], fuzziness_folds=folds))
        found = compare_profiles(a, replace(b, sites=sites))
        assert found.sites[-1].fuzziness.interval is None and found.sites[-1].fuzziness.value is not None
        assert found.law.rho.interval is None and found.law.rho.value is not None
        assert found.sites[0].fuzziness.interval is not None


def test_paired_comparisons_travel_as_json(both: tuple[Profile, Profile]) -> None:
    found = compare_profiles(*both)
    text = json.dumps(encode(found), allow_nan=False)
    assert decode(ProfileDifference, json.loads(text), where="difference") == found


def test_samples_without_known_inputs_are_told_by_labels(both: tuple[Profile, Profile]) -> None:
    unknown = [replace(each, samples=replace(each.samples, inputs=None)) for each in both]
    assert compare_profiles(*unknown).paired == "labels"
    assert isinstance(both[0].samples, SampleOrder)
