"""Quantiles against scipy, standard errors of a statistic whose error is known, and intervals of the law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equisep.errors import InputError
from equisep.law import curve_intervals, fit_law, law_intervals, normal_quantile, standard_error, student_quantile
from equisep.law.intervals import _checked_rows
from equisep.results import Interval

BASE = 27.0 * 0.5 ** np.arange(8) * np.exp(0.05 * np.cos(5 * np.arange(8)))


def replicates(m: int, spread: float, seed: int = 0, curve: np.ndarray = BASE) -> np.ndarray:
    return curve * np.exp(spread * np.random.default_rng(seed).standard_normal((m, len(curve))))


@pytest.mark.parametrize("dof", [1, 2, 3, 4, 5, 7, 9, 10, 19, 30, 99, 200, 1001])
@pytest.mark.parametrize("p", [0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9995, 0.025, 1e-4])
def test_student_quantiles_are_scipys(p: float, dof: int) -> None:
    assert student_quantile(p, dof) == pytest.approx(stats.t.ppf(p, dof), rel=1e-9, abs=1e-12)


def test_normal_quantiles_are_scipys() -> None:
    for p in (0.025, 0.5, 0.9, 0.995):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), abs=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0, -1.0, math.nan])
def test_probabilities_outside_the_open_range_are_refused(p: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        student_quantile(p, 3)
    with pytest.raises(InputError, match="between 0 and 1"):
        normal_quantile(p)


@pytest.mark.parametrize("dof", [0, -2])
def test_degrees_of_freedom_are_whole_numbers(dof) -> None:
    with pytest.raises(InputError, match=f"found {dof}"):
        student_quantile(0.9, dof)


def test_jackknife_of_a_mean_is_the_textbook_error() -> None:
    sample = np.random.default_rng(1).exponential(size=40)
    without = (sample.sum() - sample) / 39
    assert standard_error(without, "jackknife") == pytest.approx(sample.std(ddof=1) / math.sqrt(40), rel=1e-12)


def test_bootstrap_of_a_mean_is_the_textbook_error() -> None:
    rng = np.random.default_rng(2)
    sample = rng.exponential(size=400)
    means = sample[rng.integers(0, 400, size=(4000, 400))].mean(axis=1)
    assert standard_error(means, "bootstrap") == pytest.approx(sample.std() / 20, rel=0.04)


def test_bootstrap_interval_of_the_slope_is_the_analytic_one() -> None:
    """With independent noise s on every ln D the slope has the standard error s/√Σ(l − l̄)²."""
    law = law_intervals(replicates(4000, 0.1), fit_law(BASE), "bootstrap")
    reach = stats.norm.ppf(0.975) * 0.1 / math.sqrt(42)
    found = law.intervals["rho"]
    assert (found.kind, found.n, found.level) == ("bootstrap", 4000, 0.95)
    assert math.log(found.high / law.rho) == pytest.approx(reach, rel=0.05)
    assert math.log(law.rho / found.low) == pytest.approx(reach, rel=0.05)
    assert law.intervals["half_life"].low == pytest.approx(math.log(2) / -math.log(found.low))
    assert law.intervals["half_life"].low < law.half_life < law.intervals["half_life"].high
    assert sorted(law.intervals) == ["half_life", "rho"]
    assert law.notes == ()


def test_jackknife_interval_uses_students_t() -> None:
    rows = replicates(10, 0.02)
    law = law_intervals(rows, fit_law(BASE), "jackknife", level=0.9)
    slopes = [stats.linregress(np.arange(8), np.log(row)).slope for row in rows]
    reach = stats.t.ppf(0.95, 9) * math.sqrt(0.9 * np.sum((slopes - np.mean(slopes)) ** 2))
    assert law.intervals["rho"].high == pytest.approx(law.rho * math.exp(reach), rel=1e-9)
    assert law.intervals["rho"].level == 0.9


def test_a_bias_of_the_replicates_does_not_move_the_interval() -> None:
    plain = law_intervals(replicates(100, 0.1), fit_law(BASE), "bootstrap").intervals["rho"]
    biased = law_intervals(replicates(100, 0.1) * 0.8 ** np.arange(8), fit_law(BASE), "bootstrap").intervals["rho"]
    assert (biased.low, biased.high) == pytest.approx((plain.low, plain.high), rel=1e-9)


def test_bootstrap_covers_at_its_level() -> None:
    """Curves of noisy means: 40 values a site, resampled; the true ρ lies inside about 95 % of the intervals."""
    rng = np.random.default_rng(3)
    truth = 10 * 0.6 ** np.arange(6)
    covered = []
    for _ in range(120):
        values = truth * rng.gamma(20, 1 / 20, size=(40, 6))
        rows = values[rng.integers(0, 40, size=(120, 40))].mean(axis=1)
        limits = law_intervals(rows, fit_law(values.mean(axis=0)), "bootstrap").intervals["rho"]
        covered.append(limits.low <= 0.6 <= limits.high)
    assert 0.88 <= np.mean(covered) <= 1


def test_an_interval_that_reaches_one_gives_no_half_life() -> None:
    curve = 5 * 0.98 ** np.arange(8)
    law = law_intervals(
        replicates(200, 0.3, curve=curve), fit_law(curve * np.exp(0.01 * (-1) ** np.arange(8))), "bootstrap"
    )
    assert law.intervals["rho"].high > 1
    assert "half_life" not in law.intervals
    assert [note.code for note in law.notes] == ["half-life-unbounded"]


def test_bad_replicates_are_dropped_and_counted() -> None:
    rows = replicates(20, 0.1)
    rows[0, 3], rows[1, 2], rows[2, 0], rows[3, 7] = 0, np.nan, np.inf, -1
    law = law_intervals(rows, fit_law(BASE), "bootstrap")
    assert law.intervals["rho"].n == 16
    assert [(note.code, note.text[:8]) for note in law.notes] == [("replicates-dropped", "4 of 20 ")]
    rows[:11, 1] = 0
    law = law_intervals(rows, fit_law(BASE), "bootstrap")
    assert law.intervals == {}
    assert [note.code for note in law.notes] == ["no-interval"]
    assert "only 9 of 20" in law.notes[0].text


def test_one_replicate_is_no_sample() -> None:
    assert law_intervals(replicates(1, 0.1), fit_law(BASE), "jackknife").notes[0].code == "no-interval"
    assert law_intervals(np.empty((0, 8)), fit_law(BASE), "jackknife").notes[0].code == "no-interval"


def test_laws_without_numbers_get_no_interval() -> None:
    law = law_intervals(np.ones((5, 3)), fit_law([2.0, 1.0, 0.0]), "bootstrap")
    assert law.intervals == {}
    assert [note.code for note in law.notes] == ["zero-fuzziness", "no-interval"]
    two = law_intervals(replicates(50, 0.1, curve=BASE[:2]), fit_law(BASE[:2]), "bootstrap")
    assert sorted(two.intervals) == ["half_life", "rho"]
    rising = law_intervals(replicates(50, 0.1, curve=BASE[::-1]), fit_law(BASE[::-1]), "bootstrap")
    assert sorted(rising.intervals) == ["rho"]


def test_r_has_no_interval_since_noise_moves_it_one_way() -> None:
    """Of a line r is −1, and every noisy curve lies above: an interval around what one of them shows seldom reaches it."""
    line = np.array([8.0, 4.0, 2.0, 1.0, 0.5])
    noisy = replicates(200, 0.1, curve=line)
    assert fit_law(line).r == pytest.approx(-1, abs=1e-12)
    assert all(fit_law(row).r > -1 for row in noisy)
    law = law_intervals(noisy[1:], fit_law(noisy[0]), "bootstrap")
    assert law.r is not None and sorted(law.intervals) == ["half_life", "rho"] and law.notes == ()


def test_intervals_already_there_are_kept() -> None:
    law = law_intervals(
        replicates(50, 0.1), fit_law(BASE, intervals={"other": Interval(0.0, 1.0, 0.95, "seeds", 3)}), "bootstrap"
    )
    assert sorted(law.intervals) == ["half_life", "other", "rho"]


def test_each_site_has_its_interval() -> None:
    rows = replicates(2000, 0.1)
    rows[:1500, 6] = np.nan
    curve = [*BASE[:3].tolist(), None, 0.0, *BASE[5:].tolist()]
    found = curve_intervals(rows, curve, "bootstrap")
    assert [interval is None for interval in found] == [False, False, False, True, True, False, True, False]
    assert found[0].high / BASE[0] == pytest.approx(math.exp(1.96 * 0.1), rel=0.02)
    assert found[0].low * found[0].high == pytest.approx(BASE[0] ** 2)


def test_intervals_beyond_floats_are_left_out() -> None:
    rows = np.array([[1e-300, 1.0], [1e300, 2.0], [1e300, 3.0]])
    first, second = curve_intervals(rows, [1e300, 2.0], "jackknife")
    assert first is None
    assert second.low < 2 < second.high


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.5])
def test_levels_are_shares(level: float) -> None:
    with pytest.raises(InputError, match=f"found {level}"):
        law_intervals(replicates(5, 0.1), fit_law(BASE), "bootstrap", level=level)


@pytest.mark.parametrize(
    ("rows", "found"), [(np.ones((4, 7)), "4 × 7"), (np.ones(8), "found 8"), (np.float64(1), "one number")]
)
def test_replicates_have_the_curves_sites(rows, found: str) -> None:
    with pytest.raises(InputError, match=found):
        law_intervals(rows, fit_law(BASE), "bootstrap")


def test_replicates_are_numbers_of_a_known_kind() -> None:
    with pytest.raises(InputError, match="must be a table of numbers"):
        curve_intervals([["a"] * 8], BASE.tolist(), "bootstrap")
    with pytest.raises(InputError, match="No interval of kind `seeds`"):
        _checked_rows(replicates(5, 0.1), 8, "seeds", 0.95)
