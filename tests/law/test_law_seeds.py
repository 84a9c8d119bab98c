"""Means over seeds, against scipy's t intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equisep.errors import InputError
from equisep.law import fit_law, seed_interval, summarize_laws


def laws(n: int, seed: int = 0) -> list:
    rng = np.random.default_rng(seed)
    return [fit_law(20 * 0.5 ** np.arange(8) * np.exp(0.1 * rng.standard_normal(8))) for _ in range(n)]


@pytest.mark.parametrize("n", [2, 3, 10])
def test_means_and_t_intervals(n: int) -> None:
    several = laws(n)
    summary = summarize_laws(several, level=0.9)
    assert summary.n == n
    assert summary.notes == ()
    for name in ("rho", "half_life"):
        values = [getattr(law, name) for law in several]
        low, high = stats.t.interval(0.9, n - 1, loc=np.mean(values), scale=stats.sem(values))
        found = summary.intervals[name]
        assert getattr(summary, name) == pytest.approx(np.mean(values))
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
        assert (found.kind, found.n, found.level) == ("seeds", n, 0.9)
    assert -1 <= summary.intervals["r"].low < summary.r < summary.intervals["r"].high <= 1


def test_intervals_end_where_the_quantity_ends() -> None:
    summary = summarize_laws([fit_law([4.0, 2.0, 1.1]), fit_law([9.0, 1.0, 0.1])])
    assert summary.intervals["rho"].low == 0
    assert summary.intervals["half_life"].low == 0
    assert summary.intervals["r"].low == -1


def test_one_seed_has_no_interval() -> None:
    (law,) = laws(1)
    summary = summarize_laws([law])
    assert (summary.rho, summary.r, summary.half_life) == (law.rho, law.r, law.half_life)
    assert summary.intervals == {}
    assert [note.code for note in summary.notes] == ["one-seed"]


def test_laws_without_a_number_are_left_out() -> None:
    rising, zero = fit_law([1.0, 2.0, 3.9]), fit_law([1.0, 0.0, 0.0])
    summary = summarize_laws([*laws(3), rising, zero])
    assert summary.n == 5
    assert summary.intervals["rho"].n == 4
    assert summary.intervals["half_life"].n == 3
    assert [note.code for note in summary.notes] == ["left-out-rho", "left-out-half-life", "left-out-r"]
    assert summary.notes[1].text.startswith("2 of 5 laws have no half-life")
    nothing = summarize_laws([zero, zero])
    assert (nothing.rho, nothing.half_life, nothing.r, nothing.intervals) == (None, None, None, {})


def test_bad_input() -> None:
    with pytest.raises(InputError, match="at least one law"):
        summarize_laws([])
    with pytest.raises(InputError, match="level between 0 and 1"):
        summarize_laws(laws(2), level=95.0)


def test_equal_values_have_no_width() -> None:
    found = seed_interval([0.5, 0.5, 0.5], 0.95)
    assert (found.low, found.high) == (0.5, 0.5)
    assert math.isfinite(found.low)
