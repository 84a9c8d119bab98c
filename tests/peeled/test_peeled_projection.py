"""The nearest point of a q-norm ball: by its optimality conditions, by 30 digits, and by what nearest means."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import close
from equisep.peeled.solvers.descent import project_on_ball, scale_to_edge

POWERS = [1.05, 1.2, 1.5, 1.9, 2.0, 2.1, 3.0, 4.0, 10.0]


def drawn(seed: int, *, size: float = 1.0, batch: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(batch, 3, 5, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("q", POWERS)
@pytest.mark.parametrize("size", [1.01, 3.0, 1e4])
def test_outside_the_optimality_conditions_hold(q: float, size: float) -> None:
    """On the edge, the signs of y, and y − x = λ q |x|^{q−1} with one λ ≥ 0."""
    y = size * scale_to_edge(drawn(0), q=q, total=7.0)
    x = project_on_ball(y, q=q, total=7.0)
    close(x.abs().pow(q).sum(dim=(1, 2)), [7.0] * 4, rtol=1e-12)
    assert (x * y >= 0).all()
    for near, far in zip(x.flatten(1).abs(), y.flatten(1).abs(), strict=True):
        normal = q * near ** (q - 1)
        rate = float(normal @ (far - near) / (normal @ normal))
        assert rate > 0
        assert float((near + rate * normal - far).abs().max()) < 1e-11 * float(far.max())


@pytest.mark.parametrize("q", [1.3, 3.5])
def test_it_agrees_with_thirty_digits(q: float) -> None:
    y = [3.0, 1e-3, 0.5, 0.0, -2.0, 1e-9]
    found = project_on_ball(torch.tensor([[y]], dtype=torch.float64), q=q, total=1.0)[0, 0]
    with mpmath.workdps(30):
        power = mpmath.mpf(q)

        def shrunk(rate: mpmath.mpf, value: float) -> mpmath.mpf:
            low, high = mpmath.mpf(0), abs(mpmath.mpf(value))
            for _ in range(110):
                middle = (low + high) / 2
                low, high = (
                    (middle, high) if middle + rate * power * middle ** (power - 1) < abs(value) else (low, middle)
                )
            return low

        low, high = mpmath.mpf(0), mpmath.mpf(100)
        for _ in range(80):
            rate = (low + high) / 2
            outside = sum(shrunk(rate, value) ** power for value in y) > 1
            low, high = (rate, high) if outside else (low, rate)
        expected = [float(np.sign(value) * shrunk(low, value)) for value in y]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-30)


@pytest.mark.parametrize("q", POWERS)
def test_inside_nothing_moves(q: float) -> None:
    inside = 0.99 * scale_to_edge(drawn(1), q=q, total=7.0)
    assert torch.equal(project_on_ball(inside, q=q, total=7.0), inside)
    mixed = torch.cat([inside, 5 * inside])
    assert torch.equal(project_on_ball(mixed, q=q, total=7.0)[:4], inside)
    zero = torch.zeros(1, 2, 2, dtype=torch.float64)
    assert torch.equal(project_on_ball(zero, q=q, total=7.0), zero)


def test_for_two_it_is_scaling() -> None:
    y = drawn(2, size=9.0)
    close(project_on_ball(y, q=2.0, total=1.0), scale_to_edge(y, q=2.0, total=1.0), rtol=1e-14)
    close(project_on_ball(y, q=2 + 1e-9, total=1.0), scale_to_edge(y, q=2.0, total=1.0), rtol=1e-7)


def test_zeros_stay_zero_and_points_do_not_mix() -> None:
    y = drawn(3, size=4.0)
    y[:, 0] = 0
    together = project_on_ball(y, q=1.5, total=2.0)
    assert not together[:, 0].any()
    for row in range(4):
        close(together[row], project_on_ball(y[row : row + 1], q=1.5, total=2.0)[0], rtol=1e-12)


@settings(max_examples=60)
@given(
    q=st.floats(1.05, 8.0),
    numbers=st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=3, max_size=3),
    others=st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    total=st.floats(0.01, 100),
)
def test_no_other_point_of_the_ball_is_nearer(
    q: float, numbers: list[float], others: list[float], total: float
) -> None:
    """⟨y − x, z − x⟩ ≤ 0 for every z of a convex set is what nearest means."""
    y = torch.tensor([[numbers]], dtype=torch.float64)
    x = project_on_ball(y, q=q, total=total)
    assert float(x.abs().pow(q).sum()) <= total * (1 + 1e-12)
    z = project_on_ball(torch.tensor([[others]], dtype=torch.float64), q=q, total=total)
    size = float(y.abs().max()) + float(z.abs().max())
    assert float(((y - x) * (z - x)).sum()) <= 1e-9 * size**2
    again = project_on_ball(x, q=q, total=total)
    assert float((again - x).abs().max()) <= 1e-9 * float(x.abs().max())
