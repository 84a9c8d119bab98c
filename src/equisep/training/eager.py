"""Torch's Adam and SGD without the way through its compiler, whose import takes longer than many a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.optim import Optimizer

Kind = TypeVar("Kind", bound=type[Optimizer])
GUARDED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
GUARDS = ("torch._compile", "torch.optim.optimizer")  # the modules whose functions stand around these methods


def eager(kind: Kind) -> Kind:
    """A class of `torch.optim` whose steps are torch's own, called as they are.

    Torch guards these methods for `torch.compile`: the first call of any imports `torch._dynamo` and sympy, 1.5 to 2 seconds,
    though nothing here is compiled. Both guards keep what they guard as `__wrapped__`; `step` is called without gradients, as
    its guard would. What others have put around a method stays, with all that is inside it.
    """
    for name in GUARDED:
        setattr(kind, name, _unguarded(getattr(kind, name)))
    setattr(kind, "step", torch.no_grad()(_unguarded(kind.step)))  # noqa: B010 (mypy knows no assignment to a method)
    return kind


def _unguarded(method: Callable[..., Any]) -> Callable[..., Any]:
    # `__module__` is that of what is wrapped; globals are those of the wrapper itself
    while hasattr(method, "__wrapped__") and getattr(method, "__globals__", {}).get("__name__") in GUARDS:
        method = method.__wrapped__
    return method


@eager
class Adam(torch.optim.Adam):
    """Torch's Adam."""


@eager
class Sgd(torch.optim.SGD):
    """Torch's SGD."""
