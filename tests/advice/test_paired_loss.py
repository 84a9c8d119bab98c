"""The loss between two classifiers on the same samples: bounds by Tango's score test."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from equisep.advice.paired_hits import PairedLoss
from equisep.errors import InputError

Z95 = NormalDist().inv_cdf(0.95)


def test_without_a_difference_the_bound_is_wilson_s() -> None:
    loss = PairedLoss.of(200, lost=0, gained=0)
    assert loss.loss == 0
    assert loss.most == pytest.approx(Z95**2 / (200 + Z95**2), rel=1e-9)
    assert loss.least == -loss.most


def test_bounds_are_mirrored_where_roles_change() -> None:
    one, two = PairedLoss.of(100, lost=9, gained=3), PairedLoss.of(100, lost=3, gained=9)
    assert (one.loss, one.least, one.most) == (-two.loss, -two.most, -two.least)


@pytest.mark.parametrize(("n", "lost", "gained"), [(300, 12, 5), (50, 0, 4), (2000, 40, 41)])
def test_the_bound_is_where_the_score_test_of_the_likeliest_shares_turns(n: int, lost: int, gained: int) -> None:
    """The likeliest p₀₁ under a given loss Δ is looked for on a grid, without the closed form."""
    most = PairedLoss.of(n, lost=lost, gained=gained).most
    least = max(0.0, -most)
    shares = np.linspace(least + 1e-9, (1 - most) / 2 - 1e-9, 2_000_001)
    with np.errstate(divide="ignore", invalid="ignore"):
        likely = (
            (lost * np.log(shares + most) if lost else 0.0)
            + (gained * np.log(shares) if gained else 0.0)
            + (n - lost - gained) * np.log(1 - 2 * shares - most)
        )
    q = float(shares[np.nanargmax(likely)])
    score = (lost - gained - n * most) / math.sqrt(n * (2 * q + most * (1 - most)))
    assert score == pytest.approx(-Z95, abs=2e-3)


def test_one_sided_bounds_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    lost, gained, n, draws = 0.06, 0.03, 250, 1500
    drawn = rng.multinomial(n, [lost, gained, 1 - lost - gained], size=draws)
    covered = sum(PairedLoss.of(n, lost=int(a), gained=int(b)).most >= lost - gained for a, b, _ in drawn)
    assert covered / draws == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / draws))


def test_samples_that_would_show_it() -> None:
    loss = PairedLoss.of(1000, lost=30, gained=26)
    needed = loss.samples_to_show(0.01)
    assert needed is not None and needed > 1000
    scale = needed / 1000
    more = PairedLoss.of(needed, lost=round(30 * scale), gained=round(26 * scale))
    assert more.most == pytest.approx(0.01, rel=0.02)
    assert PairedLoss.of(1000, lost=30, gained=10).samples_to_show(0.01) is None


def test_more_lost_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="found n=10, lost=8, gained=3"):
        PairedLoss.of(10, lost=8, gained=3)
