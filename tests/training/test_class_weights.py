"""Weights of classes from their sizes, and a classifier that does not learn, against the formulas of their papers."""

from __future__ import annotations

import math

import pytest
import torch

from equisep.errors import InputError
from equisep.training.class_weights import effective_number, inverse_frequency, logit_adjustment
from equisep.training.initialization import simplex_etf

SIZES = (500, 50, 5)


def test_inverse_frequency_gives_every_class_the_same_say() -> None:
    weights = inverse_frequency(SIZES)
    assert weights[0] == 1
    assert [weight * size for weight, size in zip(weights, SIZES, strict=True)] == pytest.approx([500] * 3)


@pytest.mark.parametrize("beta", [0.9, 0.999])
def test_the_effective_number_is_a_geometric_sum(beta: float) -> None:
    """E_n = 1 + β + … + β^{n−1} (Cui et al. 2019, proposition 1)."""
    numbers = [sum(beta**power for power in range(size)) for size in SIZES]
    assert effective_number(SIZES, beta) == pytest.approx([numbers[0] / each for each in numbers], rel=1e-9)


def test_the_adjustment_is_the_log_of_the_shares() -> None:
    assert logit_adjustment(SIZES) == pytest.approx([math.log(size / 555) for size in SIZES])
    assert logit_adjustment(SIZES, 2.0) == pytest.approx([2 * math.log(size / 555) for size in SIZES])


@pytest.mark.parametrize("sizes", [(), (5,), (5, 0)])
def test_sizes_that_cannot_be_weighed(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="a sample of each of 2 classes or more"):
        inverse_frequency(sizes)


def test_a_strange_beta() -> None:
    with pytest.raises(InputError, match="between 0 and 1; found 1"):
        effective_number(SIZES, 1.0)


@pytest.mark.parametrize(("classes", "dimension"), [(2, 1), (3, 2), (10, 100)])
def test_a_simplex_etf_in_any_direction(classes: int, dimension: int) -> None:
    rows = simplex_etf(classes, dimension, seed=3)
    wanted = torch.full((classes, classes), -1 / (classes - 1), dtype=torch.float64).fill_diagonal_(1.0)
    assert torch.allclose(rows @ rows.T, wanted, rtol=0, atol=1e-12)
    assert torch.equal(rows, simplex_etf(classes, dimension, seed=3))
    assert dimension == 1 or not torch.equal(rows, simplex_etf(classes, dimension, seed=4))


def test_no_room_for_a_simplex_etf() -> None:
    with pytest.raises(InputError, match="found 10 classes in 8 dimensions"):
        simplex_etf(10, 8)
