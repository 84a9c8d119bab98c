"""Noise on the weights of a model: what it does to test accuracy and the law, and which layer bears it least.

The answer is read and shown without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.advice.noise.answer import NoiseAnswer as NoiseAnswer
    from equisep.advice.noise.noise import noisy_weights as noisy_weights
    from equisep.advice.noise.noise import weight_noise as weight_noise

__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "answer": "NoiseAnswer",
        "noise": "noisy_weights weight_noise",
    },
)
