"""The loss of logits against torch's own cross-entropy and derivatives, and against 60 digits where those have none left."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from closeness import close
from equisep.peeled.solvers.nonconvex import loss_and_gradient


def drawn(batch: int, classes: int, size: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    Z = size * torch.randn(batch, classes, classes, generator=generator, dtype=torch.float64)
    return Z, torch.rand(classes, generator=generator, dtype=torch.float64)


def plain_loss(Z: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    own = torch.arange(Z.shape[-1])
    each = [torch.nn.functional.cross_entropy(z, own, reduction="none") for z in Z]
    return (weights * torch.stack(each)).sum(dim=1)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
def test_value_and_gradient_are_those_of_torch(classes: int, size: float) -> None:
    Z, weights = drawn(3, classes, size)
    value, gradient = loss_and_gradient(Z, weights)
    logits = Z.clone().requires_grad_()
    plain = plain_loss(logits, weights)
    (by_torch,) = torch.autograd.grad(plain.sum(), logits)
    np.testing.assert_allclose(value, plain.detach(), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(gradient, by_torch, atol=1e-14)


def test_well_separated_classes_keep_all_their_digits() -> None:
    """At margins of 60 every loss is 1e-26: 1 − p, formed as a difference, would be 0 or noise."""
    Z, weights = drawn(1, 4, 1.0, seed=2)
    Z = Z + 60 * torch.eye(4, dtype=torch.float64)
    found, gradient = loss_and_gradient(Z, weights)
    with mpmath.workdps(60):
        for k in range(4):
            z = [mpmath.mpf(v) for v in Z[0, k].tolist()]
            w, total = mpmath.mpf(weights[k].item()), sum(mpmath.exp(v) for v in z)
            p = [mpmath.exp(v) / total for v in z]
            close(gradient[0, k], [float(w * (p[j] - (j == k))) for j in range(4)], rtol=1e-12)
        value = sum(
            mpmath.mpf(w) * mpmath.log(sum(mpmath.exp(mpmath.mpf(v) - mpmath.mpf(row[k])) for v in row))
            for k, (w, row) in enumerate(zip(weights.tolist(), Z[0].tolist(), strict=True))
        )
        close(found[0], float(value), rtol=1e-12)
