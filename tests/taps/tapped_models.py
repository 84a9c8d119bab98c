"""Small networks that the tests of the taps read, and everything about a model and its surroundings that must not change."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class Small(nn.Module):
    """Dropout, BatchNorm, an in-place ReLU and one activation called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.second = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop(self.relu(self.norm(self.first(x))))
        return self.head(self.relu(self.second(h)))


class Pair(nn.Module):
    """Returns (hidden state, attention), as recurrent and attention layers do."""

    def forward(self, x: Tensor) -> tuple[dict[str, Any], Tensor]:
        return {"mask": None, "state": 2 * x}, x.new_zeros(1)


def small(seed: int = 0) -> Small:
    torch.manual_seed(seed)
    return Small()


def batch(n: int = 8, d: int = 4, seed: int = 1) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def snapshot(model: nn.Module) -> dict[str, Any]:
    """Flags, buffers, parameters, gradients and hooks of every module, as values."""
    found: dict[str, Any] = {}
    for name, module in model.named_modules():
        found[f"{name} training"] = module.training
        found[f"{name} tracking"] = getattr(module, "track_running_stats", None)
        found[f"{name} hooks"] = (len(module._forward_hooks), len(module._forward_pre_hooks))
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        found[f"{name} value"] = tensor.detach().clone()
        found[f"{name} identity"] = id(tensor)
        found[f"{name} requires_grad"] = tensor.requires_grad
        found[f"{name} grad"] = None if tensor.grad is None else tensor.grad.clone()
    return found


def random_states() -> list[Any]:
    """The states of torch's and numpy's global generators.

    Python's is left to `test_python_random_state…`: beartype, which checks the types in these tests, draws from it.
    """
    kind, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return [torch.get_rng_state(), kind, torch.from_numpy(keys.copy()), position, has_gauss, gauss]


def same(one: Any, two: Any) -> bool:
    """Equality to the bit, NaN equal to itself."""
    if isinstance(one, Tensor) and isinstance(two, Tensor):
        return one.dtype == two.dtype and one.shape == two.shape and one.numpy().tobytes() == two.numpy().tobytes()
    return bool(one == two)


def differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is no longer as it was."""
    return sorted(key for key in before.keys() | after.keys() if not same(before.get(key), after.get(key)))
