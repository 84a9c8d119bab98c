"""Torch's Adam and SGD without the way through its compiler, whose import takes longer than many a training."""

from __future__ import annotations

import inspect
from typing import TypeVar

import torch
from torch.optim import Optimizer

Kind = TypeVar("Kind", bound=type[Optimizer])
GUARDED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def eager(kind: Kind) -> Kind:
    """A class of `torch.optim` whose steps are torch's own, called as they are.

    Torch guards these methods for `torch.compile`: the first call of any imports `torch._dynamo` and sympy, 1.5 to 2 seconds,
    though nothing here is compiled. Both guards keep what they guard as `__wrapped__`; without gradients, as they would be
    called. Where torch has other guards, its methods stay.
    """
    for name in GUARDED:
        setattr(kind, name, inspect.unwrap(getattr(Optimizer, name)))
    setattr(kind, "step", torch.no_grad()(inspect.unwrap(kind.step)))  # noqa: B010 (mypy knows no assignment to a method)
    return kind


@eager
class Adam(torch.optim.Adam):
    """Torch's Adam."""


@eager
class Sgd(torch.optim.SGD):
    """Torch's SGD."""
