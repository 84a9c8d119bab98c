"""What noise puts into D, q = Tr SΠSΠ, against docs/intervals.md in plain words: of rows alike, of rows as turned, of both."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from equisep.separation.noise.noise_rows import NoiseRows
from equisep.separation.noise.population import (
    Matrices,
    NoisyMeans,
    _Resolvent,
    _rows_error,
    _second_moments,
    stretched,
)

CLASSES, EACH, DIM = 4, 5, 30
OWNERS = np.repeat(np.arange(CLASSES), EACH)
N = 200.0


def by_hand(rows: np.ndarray, v: np.ndarray, s: np.ndarray, q: np.ndarray, z: float, pull: float) -> float:
    """With d × d matrices, one pair of rows at a time."""
    free = EACH - 1
    # rows alike: Tr (W − t)⁻¹ = δ gives Tr SΠ = t + m/δ, and its derivative by −δ is q
    off = rows @ (np.eye(DIM) - v @ v.T)
    spectrum = np.linalg.eigvalsh(off @ off.T)[-CLASSES * free :] / N
    delta, lengths = np.trace(q), np.trace(q @ q)

    def first(at: float) -> float:
        t = brentq(lambda t: (1 / (spectrum - t)).sum() - at, -1e9, spectrum[0] - 1e-12, xtol=1e-15, rtol=1e-15)
        return float(t + len(spectrum) / at)

    step = 1e-4 * delta
    alike = (first(delta - step) - first(delta + step)) / (2 * step)
    alike *= min(1.0, z / first(delta)) ** 2
    # rows as turned: T = I − B̂ᵀQB̂
    b = np.diag(s) @ v.T
    t = np.eye(DIM) - b.T @ q @ b
    trace = square = 0.0
    for k in range(CLASSES):
        own = rows[k == OWNERS]
        trace += NOISE[k] * np.trace(own @ t @ own.T) / free
        for other in range(CLASSES):
            pairs = sum((x @ t @ y) ** 2 for x in own for y in rows[other == OWNERS])
            if k == other:
                pairs = (pairs - np.trace(own @ t @ own.T) ** 2 / free) / (free * (free + 1) - 2)
            else:
                pairs /= free * free
            square += NOISE[k] * SCATTER[other] * pairs
    turned = min(1.0, z / (trace / N)) ** 2 * square / N**2
    # q = m (1 + x)²/(1 + …): m = q (1 + x)²/(1 + q Tr Q²) solved for q, then believed as far as it is known
    room = pull**2 - turned * lengths
    ratio = min(turned / room / alike, 2.0) if room > 0 else 2.0
    return float(alike * max(ratio, 0.5) ** (1 / (1 + (2 * alike * lengths) ** 2)))


NOISE, SCATTER = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("length", [0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])  # z₀: below, near and above what rows say
@pytest.mark.parametrize(
    "along", [0.5, 1.0, 3.0]
)  # the first class along the means: by little and by much, ratios at their limits
def test_second_moments_are_those_of_the_page(length: float, noise: float, along: float) -> None:
    rng = np.random.default_rng(int(10 * length + 100 * along))
    v = np.linalg.qr(rng.standard_normal((DIM, CLASSES - 1)))[0]
    rows = rng.standard_normal((CLASSES * EACH, DIM))
    rows += (along - 1) * (OWNERS == 0)[:, None] * (rows @ v @ v.T)
    for k in range(CLASSES):
        rows[k == OWNERS] -= rows[k == OWNERS].mean(axis=0)
    s = length * np.array([1.5, 1.0, 0.4])
    z = noise * DIM / N
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    q = turn @ np.diag(1 / (s**2 + DIM / N)) @ turn.T
    eye: Matrices = np.eye(CLASSES - 1)[None]
    means = NoisyMeans(s[None], eye, eye * DIM / N, np.array([float(DIM)]))
    assert means.n == pytest.approx(N)
    given = NoiseRows(
        (rows @ rows.T)[None], (rows @ v)[None], OWNERS, np.full(CLASSES, EACH - 1), np.stack([NOISE, SCATTER])[None]
    )
    found = _second_moments(
        means,
        given,
        _Resolvent(np.array([z]), q[None], np.ones(1)),
        off=given.off(),
        delta=np.array([np.trace(q)]),
        lengths=np.array([np.trace(q @ q)]),
        pull=np.array([1.3]),
    )
    assert found == pytest.approx(by_hand(rows, v, s, q, z, 1.3), rel=1e-5)


def test_the_rows_of_noise_add_their_error_to_that_of_the_folds_where_few_directions_vary() -> None:
    """`stretched` estimates have both in their jackknife; the rows' error is that of Tr Σ² over many draws of such rows."""
    left_out = np.array([1.0, 1.2, 0.9, 1.05, 1.1])

    def variance(values: np.ndarray) -> float:
        return float(4 / 5 * np.square(values - values.mean()).sum()) / 1.5  # an excess of a half

    both = stretched(left_out, 0.7, 0.5)
    assert variance(both) == pytest.approx(variance(left_out) + 0.49, rel=1e-12)
    assert both.mean() == pytest.approx(left_out.mean(), rel=1e-12)
    assert stretched(left_out, 0.0, 0.5) is left_out
    rng = np.random.default_rng(0)
    m, owners, free = 60, np.zeros(60, dtype=int), np.array([60])
    told, squares = {}, []
    for name, spread in {"one": np.r_[20.0, np.ones(99)], "even": np.ones(100)}.items():
        errors = []
        for _ in range(200):
            rows = rng.standard_normal((m, 100)) * np.sqrt(spread)
            gram = rows @ rows.T
            errors.append(_rows_error(NoiseRows(gram[None], np.zeros((1, m, 2)), owners, free, np.ones((1, 2, 1))))[0])
            if name == "one":  # Tr Σ² without bias
                squares.append((np.square(gram).sum() - np.trace(gram) ** 2 / m) / (m * (m + 1) - 2))
        told[name] = float(np.median(errors))
    assert told["even"] == 0
    assert told["one"] == pytest.approx(np.std(squares) / np.mean(squares), rel=0.25)
