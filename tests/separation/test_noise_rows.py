"""What rows of noise say of the noise's covariance: without bias, whatever the classes' own covariances."""

from __future__ import annotations

import numpy as np
import pytest

from equisep.separation.noise.noise_rows import NoiseRows, rows_side_by_side

DIM, OWNERS = 12, np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
FREE = np.array([3, 2, 3])  # rows of a class sum up to nothing
NOISE, SCATTER = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])


def rows_of(rng: np.random.Generator, factors: list[np.ndarray], v: np.ndarray) -> NoiseRows:
    """Rows of three classes of covariance F Fᵀ, less the mean of their class, scaled so that their covariance stays."""
    rows = np.concatenate([rng.standard_normal((4 if k != 1 else 3, DIM)) @ f.T for k, f in enumerate(factors)])
    for k in range(3):
        rows[k == OWNERS] -= rows[k == OWNERS].mean(axis=0)
    return NoiseRows((rows @ rows.T)[None], (rows @ v)[None], OWNERS, FREE, np.stack([NOISE, SCATTER])[None])


def test_traces_and_second_moments_are_unbiased_for_classes_unlike_each_other() -> None:
    rng = np.random.default_rng(0)
    factors = [
        np.diag(np.arange(1, DIM + 1.0) ** power) @ np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
        for power in (0, -0.5, -1)
    ]
    v = np.linalg.qr(rng.standard_normal((DIM, 2)))[0]
    turn = np.array([[1.3, 0.2], [0.2, 0.6]])
    t = np.eye(DIM) - v @ turn @ v.T
    spread = [f @ f.T for f in factors]
    noise, scatter = (sum(w * s for w, s in zip(shares, spread, strict=True)) for shares in (NOISE, SCATTER))
    # each draw's two numbers, of the noise and of the noise with the scatter
    found = np.array([np.concatenate(rows_of(rng, factors, v).turned(turn[None])) for _ in range(4000)])
    wanted = np.array([np.trace(noise @ t), np.trace(noise @ t @ scatter @ t)])
    assert np.all(abs(found.mean(axis=0) - wanted) < 4 * found.std(axis=0) / np.sqrt(len(found)))
    assert np.all(found.std(axis=0) / np.sqrt(len(found)) < 0.02 * wanted)


def test_sites_side_by_side_are_those_sites() -> None:
    rng = np.random.default_rng(1)
    v = np.linalg.qr(rng.standard_normal((DIM, 2)))[0]
    alone = [rows_of(rng, [np.eye(DIM)] * 3, v) for _ in range(3)]
    turn = rng.standard_normal((3, 2, 2))
    turn = turn + turn.swapaxes(1, 2)
    both = rows_side_by_side(alone)
    for number in range(2):
        expected = np.concatenate([each.turned(turn[i : i + 1])[number] for i, each in enumerate(alone)])
        assert both.turned(turn)[number] == pytest.approx(expected, rel=1e-12)
    assert both.off() == pytest.approx(np.concatenate([each.off() for each in alone]), rel=1e-9)
    assert both.independent == 8 and both.off().shape == (3, 8)
