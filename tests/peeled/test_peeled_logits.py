"""The loss of logits against torch's own cross-entropy and derivatives, and against 60 digits where those have none left."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from closeness import close
from equisep.peeled.certificate import dense_gap
from equisep.peeled.solvers.logits import curvature_along, gaps_of, losses_of


def drawn(batch: int, classes: int, size: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    Z = size * torch.randn(batch, classes, classes, generator=generator, dtype=torch.float64)
    return Z, torch.rand(batch, classes, generator=generator, dtype=torch.float64)


def plain_loss(Z: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    own = torch.arange(Z.shape[-1])
    each = [torch.nn.functional.cross_entropy(z, own, reduction="none") for z in Z]
    return (weights * torch.stack(each)).sum(dim=1)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
def test_value_gradient_and_curvature_are_those_of_torch(classes: int, size: float) -> None:
    Z, weights = drawn(3, classes, size)
    move, _ = drawn(3, classes, 1.0, seed=1)
    found = losses_of(Z, weights)
    logits = Z.clone().requires_grad_()
    value = plain_loss(logits, weights)
    (gradient,) = torch.autograd.grad(value.sum(), logits, create_graph=True)
    (bent,) = torch.autograd.grad((gradient * move).sum(), logits)
    np.testing.assert_allclose(found.value, value.detach(), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(found.gradient, gradient.detach(), atol=1e-14)
    np.testing.assert_allclose(curvature_along(move, losses=found, weights=weights), bent, atol=1e-14)


def test_well_separated_classes_keep_all_their_digits() -> None:
    """At margins of 60 every loss is 1e-26: 1 − p, formed as a difference, would be 0 or noise."""
    Z, weights = drawn(1, 4, 1.0, seed=2)
    Z = Z + 60 * torch.eye(4, dtype=torch.float64)
    move, _ = drawn(1, 4, 1.0, seed=3)
    found = losses_of(Z, weights)
    bent = curvature_along(move, losses=found, weights=weights)
    with mpmath.workdps(60):
        for k in range(4):
            z, d = ([mpmath.mpf(v) for v in array[0, k].tolist()] for array in (Z, move))
            w, total = mpmath.mpf(weights[0, k].item()), sum(mpmath.exp(v) for v in z)
            p = [mpmath.exp(v) / total for v in z]
            mean = sum(a * b for a, b in zip(p, d, strict=True))
            close(found.gradient[0, k], [float(w * (p[j] - (j == k))) for j in range(4)], rtol=1e-12)
            close(bent[0, k], [float(w * p[j] * (d[j] - mean)) for j in range(4)], rtol=1e-12)
        value = sum(
            mpmath.mpf(w) * mpmath.log(sum(mpmath.exp(mpmath.mpf(v) - mpmath.mpf(row[k])) for v in row))
            for k, (w, row) in enumerate(zip(weights[0].tolist(), Z[0].tolist(), strict=True))
        )
        close(found.value[0], float(value), rtol=1e-12)


@pytest.mark.parametrize("depth", [0.0, 60.0, 300.0])
def test_the_batched_gap_is_the_certificates(depth: float) -> None:
    """At depth 300 the squares of the gradient are below the smallest number there is."""
    Z, weights = drawn(4, 6, 1.0, seed=4)
    Z = Z + depth * torch.eye(6, dtype=torch.float64)
    budgets = torch.linalg.matrix_norm(Z, ord="nuc") * 1.1
    found = gaps_of(Z, gradient=losses_of(Z, weights).gradient, budgets=budgets)
    expected = [dense_gap(w.numpy(), z.numpy(), float(t))[1].gap for w, z, t in zip(weights, Z, budgets, strict=True)]
    close(found, expected)
