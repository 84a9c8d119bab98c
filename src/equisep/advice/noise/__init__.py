"""Noise on the weights of a model: what it does to test accuracy and the law, and which layer bears it least.

The answer is read and shown without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equisep.advice.noise.answer import NoiseAnswer as NoiseAnswer
    from equisep.advice.noise.noise import weight_noise as weight_noise
    from equisep.advice.noise.weights import noisy_weights as noisy_weights

_HOMES = {
    "NoiseAnswer": "equisep.advice.noise.answer",
    "noisy_weights": "equisep.advice.noise.weights",
    "weight_noise": "equisep.advice.noise.noise",
}

__all__ = ["NoiseAnswer", "noisy_weights", "weight_noise"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equisep.advice.noise' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
