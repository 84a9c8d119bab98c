"""D of the population: what it is, that it comes out right where it is known, and where it is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import equisep
from equisep import measure
from equisep.errors import InputError
from equisep.law.population import corrected, corrected_law
from equisep.measuring.notes import Notes, note_sample_size
from equisep.results import Corrected, Interval, LawFit, PopulationEstimate
from equisep.separation.noise.population import even_directions, null_error


def population(
    share: float, *, n: int = 1000, dim: int = 100, classes: int = 10, seed: int = 0
) -> tuple[Tensor, Tensor, float]:
    """Gaussian classes of unit spread whose D is a share of its chance level (K−1) n/d, and that D."""
    make = torch.Generator().manual_seed(seed)
    truth = share * (classes - 1) * n / dim
    v, _ = torch.linalg.qr(torch.randn(dim, classes, generator=make, dtype=torch.float64))
    means = (v - v.mean(dim=1, keepdim=True)).T * math.sqrt(classes * (classes - 1) / truth)
    y = torch.arange(n) % classes
    return means[y] + torch.randn(n, dim, generator=make, dtype=torch.float64), y, truth


def test_the_value_is_nearer_to_the_truth_than_plain_d_and_its_interval_covers() -> None:
    covered, values, plain = 0, [], []
    for seed in range(20):
        x, y, truth = population(0.5, seed=seed)
        result = equisep.corrected_fuzziness(x, y)
        assert result.value is not None and result.low is not None and result.high is not None
        covered += result.low <= truth <= result.high
        values.append(result.value / truth)
        plain.append(equisep.fuzziness(x, y) / truth)
    assert np.median(plain) < 0.75  # noise of the class means adds to SSb
    assert np.median(values) == pytest.approx(1, abs=0.06)
    assert covered >= 17


def test_d_beyond_its_chance_level_is_refused_and_says_how_many_samples_would_do() -> None:
    x, y, _ = population(20.0)
    result = equisep.corrected_fuzziness(x, y)
    assert result.value is None and result.low is None and result.folds == ()
    assert result.chance == pytest.approx(90, rel=0.2)  # (K−1) n/d
    assert result.needed_per_class is not None and result.needed_per_class > 100
    assert str(result).startswith("not measurable from these samples: plain D stands at")
    assert "samples per class are needed" in str(result)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"level": "a"}, "`level` is 0 < level < 1; found 'a'."),
        ({"level": 2}, "`level` is 0 < level < 1; found 2."),
        ({"seed": -1}, "`seed` is a whole number, 0 ≤ seed < 2³²; found -1."),
        ({"seed": 1.5}, "`seed` is a whole number, 0 ≤ seed < 2³²; found 1.5."),
    ],
)
def test_options_are_checked_as_those_of_measure(option: dict[str, Any], sentence: str) -> None:
    x, y, _ = population(0.5, n=100, dim=10)
    with pytest.raises(InputError) as caught:
        equisep.corrected_fuzziness(x, y, **option)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("change", ["moved", "turned", "scaled", "renamed"])
def test_what_d_does_not_see_the_corrected_one_does_not_see(change: str) -> None:
    x, y, _ = population(0.3, n=400, dim=30, classes=4)
    before = equisep.corrected_fuzziness(x, y)
    turn, _ = torch.linalg.qr(torch.randn(30, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))
    other = {
        "moved": lambda: equisep.corrected_fuzziness(x + 1e3, y),
        "turned": lambda: equisep.corrected_fuzziness(x @ turn, y),
        "scaled": lambda: equisep.corrected_fuzziness(1e-4 * x, y),
        "renamed": lambda: equisep.corrected_fuzziness(x, 30 - y),
    }[change]()
    assert other.value == pytest.approx(before.value, rel=1e-9)
    assert (other.low, other.high) == (pytest.approx(before.low, rel=1e-5), pytest.approx(before.high, rel=1e-5))


def test_class_means_that_lie_where_features_vary_most_are_corrected_as_well() -> None:
    classes, n, dim = 10, 500, 1000
    spread = torch.arange(1, dim + 1, dtype=torch.float64) ** -0.75
    truth = 0.3 * (classes - 1) * n * float((spread**2).sum() / spread.sum() ** 2)
    values, covered = [], 0
    for seed in range(16):
        make = torch.Generator().manual_seed(seed)

        def normal(*shape: int, make: torch.Generator = make) -> Tensor:
            return torch.randn(*shape, generator=make, dtype=torch.float64)

        v, _ = torch.linalg.qr(spread.sqrt().unsqueeze(1) * normal(dim, classes - 1))  # as samples lie about their mean
        u, _ = torch.linalg.qr(
            torch.cat([torch.ones(classes, 1, dtype=torch.float64), normal(classes, classes - 1)], dim=1)
        )
        s = 10 ** torch.linspace(0, -0.5, classes - 1, dtype=torch.float64)
        s *= math.sqrt(float(((v.T * spread) @ v).diagonal().div(s**2).sum()) / truth)
        y = torch.arange(n) % classes
        x = ((u[:, 1:] * s) @ v.T * math.sqrt(classes))[y] + normal(n, dim) * spread.sqrt()
        result = equisep.corrected_fuzziness(x, y)
        assert result.value is not None and result.low is not None and result.high is not None
        values.append(result.value / truth)
        covered += result.low <= truth <= result.high
    # noise along the means taken for noise off them would leave 0.69 of it
    assert 0.8 < np.median(values) < 1.1
    assert covered >= 13


def test_how_far_random_labels_change_d_is_drawn_where_few_directions_vary_most() -> None:
    """Eight means in a hundred directions of 1/j: by the formula for directions that are alike they would hardly be told."""
    make = torch.Generator().manual_seed(0)
    spread = torch.arange(1, 101, dtype=torch.float64) ** -1
    y = torch.arange(640) % 8
    noise = torch.randn(640, 100, generator=make, dtype=torch.float64) * spread.sqrt()
    logs = [math.log(equisep.fuzziness(noise, y[torch.randperm(640, generator=make)])) for _ in range(60)]
    gram = noise[:80] @ noise[:80].T
    drawn = null_error(gram, even_directions(gram, 80), independent=80, rank=7)
    assert drawn == pytest.approx(np.std(logs), rel=0.35)
    even = float(spread.sum() ** 2 / spread.square().sum())
    assert math.sqrt(2 * (even - 1) / (7 * (even - 7) * (even - 10))) > 2 * drawn
    few = gram[:24, :24]
    assert (
        null_error(few, even_directions(few, 24), independent=24, rank=7) > 2 * drawn
    )  # of so few rows none are drawn


def test_as_many_features_as_directions_leave_no_noise_off_them() -> None:
    make = torch.Generator().manual_seed(0)
    y = torch.arange(600) % 3
    x = torch.tensor([[4.0, 0], [0, 4], [-4, -4]])[y] + torch.randn(600, 2, generator=make)
    assert equisep.corrected_fuzziness(x, y).value == pytest.approx(equisep.fuzziness(x, y), rel=0.02)


def test_many_samples_need_no_correction() -> None:
    x, y, _ = population(0.001, n=40_000, dim=4, classes=2)
    result = equisep.corrected_fuzziness(x[:, :4], y)
    assert result.value == pytest.approx(equisep.fuzziness(x, y), rel=0.01)


def test_classes_of_one_sample_are_refused_with_the_class() -> None:
    x, y, _ = population(0.3, n=100)
    y = torch.where(torch.arange(100) == 7, 17, y)
    with pytest.raises(
        InputError, match=r"needs 2 samples or more of every class .* 1 of class 17\. Leave that class out"
    ):
        equisep.corrected_fuzziness(x, y)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(100, 60), nn.ReLU(), nn.Linear(60, 30), nn.ReLU(), nn.Linear(30, 10))


def test_a_sample_of_more_data_says_so_and_its_law_is_told_beside() -> None:
    x, y, _ = population(0.15)
    whole, part = (measure(network(), (x.float(), y), whole=whole, coordinates=0) for whole in (True, False))
    assert whole.whole is True and part.whole is False
    assert whole.curve() == part.curve()
    assert part.sites[0].corrected == whole.sites[0].corrected  # the numbers are the same; what is asked differs
    same = equisep.corrected_fuzziness(x.float(), y)
    assert part.sites[0].corrected is not None
    assert part.sites[0].corrected.value == pytest.approx(same.value, rel=0.1)  # `measure` deals out other folds
    law = part.laws["corrected"]
    assert law.curve == tuple(site.corrected.value for site in part.sites if site.corrected is not None)
    assert "rho" in law.intervals
    codes = {note.code for note in part.notes}
    assert ("sample-size" in codes) == (
        not law.intervals["rho"].low <= part.law.rho <= law.intervals["rho"].high or law.verdict != part.law.verdict
    )
    assert "sample-size" not in {note.code for note in whole.notes}


def test_sites_where_d_cannot_be_told_are_noted_first(tmp_path) -> None:  # type: ignore[no-untyped-def]
    x, y, _ = population(20.0)
    profile = measure(network(), (x.float(), y), whole=False, coordinates=0)
    assert profile.notes[0].code == "too-few-samples"
    assert profile.laws["corrected"].rho is None
    again = equisep.Profile.load(profile.save(tmp_path / "p.json"))
    assert again == profile


def test_test_data_are_always_a_sample() -> None:
    x, y, _ = population(0.3)
    profile = measure(network(), (x.float(), y), (x.float()[:600], y[:600]), coordinates=0)
    assert all(site.corrected_test is not None for site in profile.sites)
    assert "corrected test" in profile.laws


def test_rows_of_one_sample_are_no_further_samples() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    x, y = torch.randn(60, 1, 8, 8), torch.arange(60) % 2
    profile = measure(model, (x, y), sites=["1"], reduction="positions", coordinates=0)
    assert all(site.corrected is None for site in profile.sites)


def estimate(
    value: float | None,
    left_out: list[float],
    *,
    signal: float = 9.0,
    signals: list[float] | None = None,
    **others: float,
) -> PopulationEstimate:
    """Class means of nine times their noise in squared length, unless told."""
    kept = [signal] * len(left_out) if signals is None else signals
    return PopulationEstimate(value, tuple(left_out), signal, tuple(kept), **others)


ASKED: dict[str, Any] = {"plain": 1.0, "chance": 10.0, "counts": [50, 50]}
HALVES = [1.0, 1.2] * 5


def test_folds_that_agree_leave_little_doubt_and_others_more() -> None:
    steady = corrected(estimate(1.1, [1.1] * 10), **ASKED)
    assert (steady.value, steady.low, steady.high) == pytest.approx((1.1, 1.1, 1.1))
    wide = corrected(estimate(1.1, HALVES), **ASKED)
    assert wide.low < 1.1 < wide.value < wide.high  # type: ignore[operator]
    steadier = corrected(estimate(1.1, HALVES, excess=1.0), **ASKED)
    assert wide.low < steadier.low and steadier.high < wide.high  # type: ignore[operator]
    # noise that may have made D larger
    doubted = corrected(estimate(1.1, HALVES, least_error=0.4), **ASKED)
    assert doubted.low < wide.low and (doubted.value, doubted.high) == (wide.value, wide.high)  # type: ignore[operator]
    assert corrected(estimate(1.1, HALVES, least_error=1.0), **ASKED).low == 0
    assert corrected(estimate(None, []), **ASKED).value is None


def test_class_means_that_do_not_stand_out_of_noise_give_no_upper_end() -> None:
    signals = [0.1, 0.9] * 5
    refused = corrected(estimate(-1.1, [-1.1] * 10, signal=0.5, signals=signals), **ASKED)
    assert refused.reason == "D has no upper limit by these samples"
    # with few directions plain D may be the chance level by accident, whatever the folds say …
    near = {"plain": 5.0, "chance": 10.0, "counts": [50, 50]}
    folds, known = [9.0, 11.0] * 5, {"signal": 1.0, "signals": [0.95, 1.05] * 5}
    assert corrected(estimate(10.0, folds, null_error=0.5, **known), **near).value is None  # type: ignore[arg-type]
    # … and the less it varies by accident, the less far up D may lie
    far = [corrected(estimate(10.0, folds, null_error=error, **known), **near).high for error in (0.25, 0.15, 0.05)]  # type: ignore[arg-type]
    assert far[0] > far[1] > far[2] > 10  # type: ignore[operator]
    # plain D above three quarters of its chance level says nothing, unless class means have a length that noise has not
    beyond = {"plain": 8.0, "chance": 10.0, "counts": [50, 50]}
    assert corrected(estimate(10.0, folds, signal=0.4), **beyond).reason == "plain D stands at 80 % of its chance level"
    assert corrected(estimate(10.0, folds, signal=0.5, null_error=0.05), **beyond).value is not None


def test_a_spread_that_noise_may_be_all_of_is_told_from_zero_on() -> None:
    folds = [-2.0, 1.5] * 5
    found = corrected(estimate(-0.2, folds, signal=1.0, null_error=0.05), plain=4.0, chance=10.0, counts=[50, 50])
    error = 3 * np.std(folds)  # of a jackknife, √(m − 1) times the deviation
    assert found.value == pytest.approx(error / 3) and found.low == 0
    assert found.high is not None and found.high > error
    assert all(point > 0 and math.isfinite(point) for point in found.folds) and found.folds[0] < found.folds[1]


def test_where_plain_d_is_far_from_chance_the_folds_themselves_give_the_upper_end() -> None:
    folds = [5.0, 10.5] * 5
    signals = [-0.5, 4.5] * 5  # by themselves they tell nothing
    found = corrected(estimate(8.0, folds, signal=2.0, signals=signals), plain=2.0, chance=10.0, counts=[50, 50])
    assert found.value is not None and found.high is not None
    error = 3 * np.std(np.log(folds))
    least = found.value * math.exp(2.2622 * error)  # Student's, 9 degrees of freedom
    assert found.high == pytest.approx(least, rel=1e-3)
    assert all(map(math.isfinite, found.folds)) and found.folds[1] / found.folds[0] == pytest.approx(2.1)
    near = corrected(
        estimate(8.0, folds, signal=0.5, signals=signals, null_error=0.3), plain=5.0, chance=10.0, counts=[50, 50]
    )  # by the same error plain D may be the chance level
    assert near.reason == "D has no upper limit by these samples"


def test_class_means_much_longer_along_some_directions_have_a_value_only_where_it_is_known() -> None:
    known, wide = ([1.0, 1.0 + width] * 5 for width in (0.05, 0.4))
    assert corrected(estimate(1.1, known, elongation=150.0), **ASKED).value is not None
    assert corrected(estimate(1.1, wide, elongation=90.0), **ASKED).value is not None
    refused = corrected(estimate(1.1, wide, elongation=150.0), **ASKED)
    assert refused.value is None and refused.folds == () and refused.needed_per_class is not None
    assert str(refused).startswith(
        "not measurable from these samples: class means seem to differ along some directions less than"
    )
    pairs = {**ASKED, "counts": [2, 2, 50]}  # of a class of two samples a fold leaves one
    assert corrected(estimate(1.1, known, elongation=150.0), **pairs).value is None
    assert corrected(estimate(1.1, known, elongation=90.0), **pairs).value is not None


def test_many_classes_of_two_samples_are_told_up_to_the_chance_level_and_refused_beyond() -> None:
    make = torch.Generator().manual_seed(5)
    y = torch.arange(300) // 2
    v, _ = torch.linalg.qr(torch.randn(750, 150, generator=make, dtype=torch.float64))
    noise = torch.randn(300, 750, generator=make, dtype=torch.float64)
    means = (v - v.mean(dim=1, keepdim=True)).T * math.sqrt(150)
    for truth, told in ((30.0, True), (180.0, False)):  # the chance level is about (K−1) n/d = 60
        found = equisep.corrected_fuzziness(means[y] * math.sqrt(149 / truth) + noise, y)
        assert (found.value is not None) == told
        assert not told or found.low <= truth <= found.high  # type: ignore[operator]


@pytest.mark.parametrize(("farther", "told"), [(3.0, True), (30.0, False)])
def test_one_pair_of_classes_that_hardly_differ_is_refused_as_such(farther: float, told: bool) -> None:
    """Three classes: two near each other, the third far away; D is that of the two, whose difference is near its noise."""
    make = torch.Generator().manual_seed(0)
    y = torch.arange(300) % 3
    means = torch.zeros(3, 200, dtype=torch.float64)
    means[1, 0], means[2, 1] = 1.5, 1.5 * farther
    x = means[y] + torch.randn(300, 200, generator=make, dtype=torch.float64)
    found = equisep.corrected_fuzziness(x, y)
    assert (found.value is not None) == told
    assert told or "less than a tenth as much as along others" in str(found)


@pytest.mark.parametrize(("spread", "length", "told"), [(1.0, 4.0, True), (4.0, 4.0, False), (4.0, 25.0, True)])
def test_rare_classes_that_spread_more_are_refused_unless_means_stand_clear_of_noise(
    spread: float, length: float, told: bool
) -> None:
    """Rare classes of a sixth of the samples and 16 times the variance have means with a hundred times the noise."""
    make = torch.Generator().manual_seed(0)
    y = torch.repeat_interleave(torch.arange(4), torch.tensor([120, 120, 20, 20]))
    v, _ = torch.linalg.qr(torch.randn(60, 4, generator=make, dtype=torch.float64))
    noise = torch.randn(len(y), 60, generator=make, dtype=torch.float64) * torch.where(y < 2, 1.0, spread).unsqueeze(1)
    found = equisep.corrected_fuzziness(length * v.T[y] + noise, y)
    assert (found.value is not None) == told
    assert told or "some classes spread so much more than others" in str(found)
    assert told or "samples per class are needed" in str(found)


@pytest.mark.parametrize(("counts", "weighting", "power"), [((150, 12), "class", 0.0), ((4, 4), "sample", 1.5)])
def test_classes_of_one_spread_are_not_taken_for_unlike(counts: tuple[int, int], weighting: Any, power: float) -> None:
    """Of unequal sizes, weighed alike; and of few samples, whose spreads differ by chance."""
    make, told = torch.Generator().manual_seed(0), 0
    y = torch.repeat_interleave(torch.arange(10), torch.tensor([counts[0]] * 5 + [counts[1]] * 5))
    deviations = torch.arange(1, 51, dtype=torch.float64) ** -power
    means = torch.randn(10, 50, generator=make, dtype=torch.float64)
    for _ in range(10):
        x = means[y] + torch.randn(len(y), 50, generator=make, dtype=torch.float64) * deviations
        found = equisep.corrected_fuzziness(x, y, weighting=weighting)
        assert "spread so much more" not in str(found)
        told += found.value is not None
    assert told >= 3


def test_one_sample_of_every_class_is_refused_and_ends_nothing() -> None:
    """Random labels of test data that are as many as the classes give a chance level of 0, or a rounding error more."""
    for seed in range(10):
        make = torch.Generator().manual_seed(seed)
        x, y = torch.randn(200, 8, generator=make), torch.arange(200) % 20
        profile = measure(nn.Sequential(nn.Linear(8, 20), nn.ReLU()), (x, y), test=(x[:20], y[:20]))
        told = profile.sites[0].corrected_test
        assert told is None or str(told).startswith(
            "not measurable from these samples: a class has fewer than 2 samples"
        )


def test_rare_classes_that_spread_more_are_told_where_so_many_samples_are_taken_as_were_asked_for() -> None:
    def found(each: int) -> Corrected:
        make = torch.Generator().manual_seed(0)
        means = torch.randn(10, 100, generator=make, dtype=torch.float64)
        y = torch.arange(10 * each) % 10
        noise = torch.randn(10 * each, 100, generator=make, dtype=torch.float64)
        return equisep.corrected_fuzziness(0.5 * means[y] + torch.where(y < 2, 5.0, 1.0).unsqueeze(1) * noise, y)

    first = found(20)
    assert "spread so much more" in str(first) and first.needed_per_class is not None
    assert found(2 * first.needed_per_class).value is not None


def test_the_law_begins_where_d_can_be_told() -> None:
    known = [Corrected(value=v, low=v, high=v, folds=(v,) * 10) for v in (8.0, 4.0, 2.0)]
    law = corrected_law([Corrected(reason="few"), *known])
    assert law is not None and law.rho == pytest.approx(0.5) and law.curve == (8.0, 4.0, 2.0)
    assert corrected_law([known[0], Corrected(reason="few"), known[2]]).rho is None  # type: ignore[union-attr]
    assert corrected_law([None, None]) is None


def test_a_law_of_two_sites_that_is_another_in_the_population_is_noted_without_r() -> None:
    notes = Notes()
    plain, beyond = (
        LawFit(
            curve=(4.0, 4.0 * rho), rho=rho, intervals={"rho": Interval(rho - 0.1, rho + 0.1, 0.95, "jackknife", 10)}
        )
        for rho in (0.5, 0.8)
    )
    note_sample_size(notes, [], plain, beyond)
    (note,) = notes.ranked()
    assert note.text.endswith("of the population ρ is 0.8 [0.7, 0.9], of these samples 0.5.")


IMAGES, LABELS = torch.randn(120, 1, 6, 6, generator=torch.Generator().manual_seed(0)), torch.arange(120) % 3


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"intervals": "none"}, "it is told by folds of the samples, which `intervals='none'` leaves out"),
        ({"intervals": "bootstrap"}, "it is told by folds of the samples, which `intervals='bootstrap'` leaves out"),
        ({"metrics": "fuzziness"}, "it is judged by the chance level, and `metrics` has no `null`"),
        (
            {"reduction": "positions"},
            "by `reduction='positions'` a sample has several rows, which are no further samples",
        ),
        ({}, None),
        ({"metrics": "ncc"}, None),
        ({"whole": True, "intervals": "none"}, None),
    ],
)
def test_where_no_site_is_asked_for_d_of_the_population_one_note_says_why(
    options: dict[str, Any], reason: str | None
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    profile = measure(model, (IMAGES, LABELS), **{"whole": False, "resamples": 2, "coordinates": 0, **options})
    found = [note.text for note in profile.notes if note.code == "no-corrected"]
    words = f"The data are a sample, and D of the population (corrected D) stands at no site: {reason}."
    assert found == ([] if reason is None else [words])
    missing = all(site.corrected is None for site in profile.sites)
    assert missing == (options != {}) and ("corrected" in profile.laws) != missing


@pytest.mark.parametrize(
    ("n", "classes", "reason"),
    [
        (600, 300, "it is computed up to 256 classes, and these are 300"),
        (18, 3, "10 folds of 18 samples are too small"),
    ],
)
def test_of_too_many_classes_or_too_few_samples_the_note_says_so_too(n: int, classes: int, reason: str) -> None:
    y = torch.arange(n) % classes
    x = torch.randn(n, 8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    profile = measure(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, classes)), (x, y), whole=False)
    (text,) = [note.text for note in profile.notes if note.code == "no-corrected"]
    assert text.endswith(f"stands at no site: {reason}.")
    assert "small-classes" in [note.code for note in profile.notes][1:]  # which changes less
