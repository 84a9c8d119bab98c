"""A training that takes milliseconds: three clouds, a network of three layers, and whether two networks are equal."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from equisep.models import build


def data(n: int = 70) -> tuple[Tensor, Tensor]:
    """Samples in three clouds on a line, and their labels."""
    generator = torch.Generator().manual_seed(4)
    y = torch.arange(n) % 3
    return torch.randn(n, 6, generator=generator) + 2 * y.unsqueeze(1), y


def fresh(seed: int = 0) -> nn.Module:
    """The untrained network of a seed."""
    return build("fnn", seed=seed, depth=3, width=8, inputs=6, classes=3)


def equal(one: nn.Module, two: nn.Module) -> bool:
    """Whether two networks have the same weights and statistics, to the bit."""
    pairs = zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)
