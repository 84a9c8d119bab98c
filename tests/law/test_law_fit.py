"""The fit against closed forms and scipy, and what becomes of curves on which parts of the law do not exist."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equisep.errors import InputError
from equisep.files import encode
from equisep.law import fit_law, imbalance
from equisep.results import Interval
from equisep.results.codec import decode
from equisep.results.records import LawFit

rates = st.floats(0.05, 0.999)
scales = st.floats(1e-8, 1e8)
curves = st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=24)


def codes(law: LawFit) -> list[str]:
    return [note.code for note in law.notes]


@given(rho=rates, first=scales, sites=st.integers(3, 30))
def test_a_geometric_curve_is_the_law_exactly(rho: float, first: float, sites: int) -> None:
    law = fit_law([first * rho**site for site in range(sites)])
    assert law.rho == pytest.approx(rho, rel=1e-12)
    assert math.exp(law.intercept) == pytest.approx(first, rel=1e-11)
    assert law.half_life == pytest.approx(math.log(2) / math.log(1 / rho), rel=1e-9)
    if rho < 0.99:  # nearer to 1 the rounding of D itself is a visible part of its fall
        assert law.r == pytest.approx(-1, abs=1e-12)
        assert law.r2 == pytest.approx(1, abs=1e-12)
    assert law.imbalance == pytest.approx(1, abs=1e-12)
    assert law.max_residual < 1e-12
    assert law.loads == pytest.approx([math.log(1 / rho)] * (sites - 1), abs=1e-12)
    if sites >= 5:
        assert math.isfinite(law.two_slopes.gain)
        assert law.two_slopes.gain < 0
    else:
        assert law.two_slopes is None


@given(curve=curves, factor=st.floats(1e-3, 1e3))
def test_a_common_factor_moves_only_the_intercept(curve: list[float], factor: float) -> None:
    plain, scaled = fit_law(curve), fit_law([factor * value for value in curve])
    assert scaled.intercept - plain.intercept == pytest.approx(math.log(factor), abs=1e-10)
    assert math.log(scaled.rho) == pytest.approx(math.log(plain.rho), abs=1e-12)
    assert scaled.residuals == pytest.approx(plain.residuals, abs=1e-11)
    assert scaled.loads == pytest.approx(plain.loads, abs=1e-12)
    assert scaled.imbalance == pytest.approx(plain.imbalance, rel=1e-10)
    if np.ptp(np.log(curve)) > 1e-3:
        assert scaled.r == pytest.approx(plain.r, abs=1e-9)


@given(curve=curves)
def test_the_line_is_scipys(curve: list[float]) -> None:
    logs = np.log(curve)
    if np.ptp(logs) < 1e-6:
        return
    law = fit_law(curve)
    reference = stats.linregress(np.arange(len(curve)), logs)
    assert math.log(law.rho) == pytest.approx(reference.slope, abs=1e-10)
    assert law.intercept == pytest.approx(reference.intercept, abs=1e-9)
    assert law.r == pytest.approx(reference.rvalue, abs=1e-9)
    assert law.r2 == pytest.approx(reference.rvalue**2, abs=1e-9)
    residuals = logs - reference.intercept - reference.slope * np.arange(len(curve))
    assert law.residuals == pytest.approx(residuals.tolist(), abs=1e-8)
    assert law.max_residual == max(map(abs, law.residuals))
    assert law.r2 == pytest.approx(1 - (residuals**2).sum() / ((logs - logs.mean()) ** 2).sum(), abs=1e-8)


@given(curve=curves)
def test_d_halves_in_one_half_life(curve: list[float]) -> None:
    law = fit_law(curve)
    if law.half_life is not None and law.half_life < 1e6:
        for site in (0.0, 1.5):
            here = math.exp(law.intercept) * law.rho**site
            assert math.exp(law.intercept) * law.rho ** (site + law.half_life) == pytest.approx(here / 2, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_papers_network_reads_as_it_prints(seed: int) -> None:
    noise = 0.06 * np.random.default_rng(seed).standard_normal(8)
    law = fit_law(27.1 * 0.51 ** np.arange(8) * np.exp(noise))
    assert law.rho == pytest.approx(0.51, abs=0.03)
    assert law.half_life == pytest.approx(1.03, abs=0.1)
    assert law.verdict == "law"
    assert law.notes == ()
    assert law.imbalance == imbalance(law.curve)


@pytest.mark.parametrize("kind", [list, tuple, np.asarray, lambda c: np.asarray(c, np.float32), iter])
def test_any_sequence_of_numbers_is_a_curve(kind) -> None:
    assert fit_law(kind([8, 4, 2, 1])).rho == pytest.approx(0.5)


def test_tensors_are_curves() -> None:
    torch = pytest.importorskip("torch")
    assert fit_law(torch.tensor([8.0, 4.0, 2.0])).rho == pytest.approx(0.5)
    assert fit_law([torch.tensor(8.0), torch.tensor(4.0)]).rho == pytest.approx(0.5)


def test_zero_leaves_nothing_and_says_so() -> None:
    law = fit_law([4.0, 1.0, 0.0, 0.0])
    assert law == LawFit(curve=(4.0, 1.0, 0.0, 0.0), notes=law.notes)
    assert codes(law) == ["zero-fuzziness"]
    assert "2 positions, first 2," in law.notes[0].text
    assert "position 0 of 1" in fit_law([0.0]).notes[0].text
    assert law.verdict == "undetermined"


def test_rising_curves_have_no_half_life() -> None:
    law = fit_law([1.0, 2.0, 4.0])
    assert law.rho == pytest.approx(2)
    assert law.half_life is None
    assert law.r == pytest.approx(1)
    assert codes(law) == ["rho-not-below-one"]
    assert law.verdict == "no law"


@pytest.mark.parametrize("value", [0.1, 1.0, 3.3, 1e-30, 1e300])
@pytest.mark.parametrize("sites", [2, 3, 7, 12])
def test_constant_curves_have_no_r(value: float, sites: int) -> None:
    law = fit_law([value] * sites)
    assert (law.rho, law.r, law.r2, law.half_life) == (1.0, None, None, None)
    assert law.intercept == pytest.approx(math.log(value))
    assert codes(law)[-2:] == ["constant-curve", "rho-not-below-one"]


def test_two_sites_give_the_plain_rho() -> None:
    law = fit_law([4.0, 1.0])
    assert law.rho == pytest.approx(0.25)
    assert law.half_life == pytest.approx(0.5)
    assert law.loads == pytest.approx([math.log(4)])
    assert (law.r, law.r2, law.max_residual, law.imbalance, law.two_slopes) == (None,) * 5
    assert law.residuals == ()
    assert codes(law) == ["few-sites"]


@pytest.mark.parametrize("curve", [[], [3.0]])
def test_one_site_or_none_gives_nothing(curve: list[float]) -> None:
    law = fit_law(curve)
    assert (law.rho, law.intercept, law.half_life, law.r, law.loads) == (None, None, None, None, ())
    assert codes(law) == ["few-sites"]
    assert f"{len(curve)} site" in law.notes[0].text


def test_numbers_beyond_floats_are_left_out() -> None:
    falls, rises = fit_law([1e300, 1e-300]), fit_law([1e-300, 1e300])
    assert (falls.rho, falls.half_life, rises.rho) == (None, None, None)
    assert "rho-out-of-range" in codes(falls)
    assert "rho-out-of-range" in codes(rises)
    spiked = fit_law([1e300, 1e-300, 1e300])
    assert spiked.imbalance is None
    assert "imbalance-out-of-range" in codes(spiked)


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (-0.5, "-0.5"),
        (None, "None"),
        ("1.5", "'1.5'"),
        (True, "True"),
        (np.bool_(False), "False"),
        (1 + 2j, "(1+2j)"),
        (np.complex64(1), "(1+0j)"),
        ([1.0], "[1.0]"),
        (np.ones(2), "[1. 1.]"),
        (object, "<class 'object'>"),
        (10**400, "1000"),
    ],
)
def test_what_is_no_d_is_named_with_its_place(entry, shown: str) -> None:
    with pytest.raises(InputError, match="position 1 of 3") as caught:
        fit_law([4.0, entry, 1.0])
    assert shown in str(caught.value)
    assert str(caught.value).endswith("Measure that site again, or pass the part of the curve before it.")


@pytest.mark.parametrize("curve", ["421", b"421", {0: 4.0}, {4.0, 2.0}, 3.0, None, np.float64(3.0), np.array(3.0)])
def test_what_is_no_curve_is_refused(curve) -> None:
    with pytest.raises(InputError, match="Pass a list of numbers, site 0 first"):
        fit_law(curve)


def test_intervals_are_kept_and_the_record_travels_as_json() -> None:
    held = {"rho": Interval(0.4, 0.6, 0.95, "seeds", 3)}
    law = fit_law([16.0, 9.0, 3.0, 2.2, 1.0, 0.4], intervals=held)
    assert law.intervals == held
    assert decode(LawFit, encode(law), where="law") == law
