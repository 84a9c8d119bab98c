"""The networks of the papers by name; each declares its sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from equisep.errors import ModelError, did_you_mean
from equisep.models.fnn import Fnn
from equisep.models.load import load_model, load_weights

MODELS: dict[str, Callable[..., nn.Module]] = {"fnn": Fnn}


def build(name: str, *, seed: int, **options: Any) -> nn.Module:
    """The named network with the weights it gets after `torch.manual_seed(seed)`; the global generator stays as it was."""
    if name not in MODELS:
        raise ModelError(f"No network `{name}`.{did_you_mean(name, MODELS)} Known: {', '.join(sorted(MODELS))}.")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the same weights; `torch.manual_seed` would reseed the GPUs too
        return MODELS[name](**options)


__all__ = ["MODELS", "Fnn", "build", "load_model", "load_weights"]
