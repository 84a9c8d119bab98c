"""A small training with everything that a tracker must not disturb: dropout, BatchNorm, momentum, a shuffling loader."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

CLASSES, FEATURES = 4, 6


def samples(n: int = 120, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Gaussian classes of equal size."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(9))
    y = torch.arange(n) % CLASSES
    return centers[y] + 0.6 * torch.randn(n, FEATURES, generator=generator), y


def network(seed: int = 0) -> nn.Sequential:
    """Linear, BatchNorm, ReLU and dropout, twice, and a classifier."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for width in (FEATURES, 10):
        layers += [nn.Linear(width, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Dropout(0.2)]
    return nn.Sequential(*layers, nn.Linear(10, CLASSES))


def loader(data: Dataset[Any] | None = None, **options: Any) -> DataLoader[Any]:
    """A shuffling loader, by the global random state unless it has a generator."""
    options = {"batch_size": 20, "shuffle": True, **options}
    return DataLoader(TensorDataset(*samples()) if data is None else data, **options)


def train(
    model: nn.Module,
    batches: DataLoader[Any],
    *,
    epochs: int = 3,
    after_step: Callable[[], Any] | None = None,
    after_epoch: Callable[[], Any] | None = None,
) -> tuple[torch.optim.Optimizer, list[list[int]]]:
    """A plain loop; the optimizer, and the labels of every batch in order."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    seen = []
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            seen.append(y.tolist())
            np.random.rand()  # noqa: NPY002 (as a training with augmentation draws)
            random.random()
            if after_step is not None:
                after_step()
        if after_epoch is not None:
            after_epoch()
    return optimizer, seen


def everything(model: nn.Module, optimizer: torch.optim.Optimizer, batches: DataLoader[Any]) -> dict[str, object]:
    """All that a training is, as comparable values."""
    state: dict[str, object] = {"torch": torch.get_rng_state().numpy().tobytes(), "python": random.getstate()}
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    state["numpy"] = (kind, keys.tobytes(), *rest)
    if batches.generator is not None:
        state["generator"] = batches.generator.get_state().numpy().tobytes()
    for name, value in model.state_dict().items():
        state[name] = value.numpy().tobytes()
    for index, value in enumerate(model.parameters()):
        state[f"grad {index}"] = None if value.grad is None else value.grad.numpy().tobytes()
        moment = optimizer.state[value].get("momentum_buffer")
        state[f"moment {index}"] = None if moment is None else moment.numpy().tobytes()
    for name, module in model.named_modules():
        state[f"{name} flags"] = (module.training, len(module._forward_hooks), len(module._forward_pre_hooks))
    state["grad mode"] = torch.is_grad_enabled()
    state["autocast"] = torch.is_autocast_enabled("cpu")
    return state
