"""Gaussian noise on weight tensors, which are put back bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from equisep.errors import ModelError


def weight_tensors(model: nn.Module) -> dict[str, nn.Parameter]:
    """Every weight matrix and kernel by name, each once: parameters of two dimensions or more, so no biases and scales."""
    weights = {name: p for name, p in model.named_parameters() if p.ndim >= 2 and p.is_floating_point() and p.numel()}
    if not weights:
        raise ModelError(f"`{type(model).__name__}` has no weight matrix to which noise could be added.")
    return weights


@contextmanager
def noisy_weights(weights: Mapping[str, nn.Parameter], sigma: float, *, seed: int) -> Iterator[None]:
    """W + σ ‖W‖_F N / √(numbers of W) while the `with` lasts: noise of the norm σ‖W‖_F in expectation.

    The same seed draws the same N for every σ, and for every tensor whichever others get noise too.
    """
    kept = {name: weight.detach().clone() for name, weight in weights.items()}
    try:
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(_noisy(kept[name], sigma, seed=_mixed(seed, name)))
        yield
    finally:
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(kept[name])


def _mixed(seed: int, name: str) -> int:
    """A seed of the tensor's own, by its name."""
    number = seed
    for byte in name.encode():
        number = (number * 1_000_003 + byte) % (2**61 - 1)
    return number


def _noisy(weight: Tensor, sigma: float, *, seed: int) -> Tensor:
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.randn(weight.shape, generator=generator, dtype=torch.float32, device="cpu").to(weight.device)
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    size = torch.linalg.vector_norm(wide) / wide.numel() ** 0.5
    result: Tensor = (wide + sigma * size * noise).to(weight.dtype)
    return result
