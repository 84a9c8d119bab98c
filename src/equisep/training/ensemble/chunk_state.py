"""A chunk between two epochs, kept on disk and put back: weights, moments, what was seen and read so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from equisep.shapes import Float
from equisep.training.checkpoint import Checkpoint
from equisep.training.ensemble.kernel.stage import Moments
from equisep.training.ensemble.optimizers import Optimizers
from equisep.training.ensemble.reading import EnsembleReading
from equisep.training.ensemble.stack import Stack


@dataclass(frozen=True, slots=True)
class ChunkState:
    """What changes while a chunk trains, beside its optimizers; chance is the order of batches, which seeds draw anew."""

    stack: Stack
    loss: Float[Tensor, "e m"]
    accuracy: Float[Tensor, "e m"]
    readings: list[EnsembleReading]

    def keep(self, checkpoint: Checkpoint, epochs: int, optimizers: Optimizers | Moments) -> None:
        """Keep the chunk after so many epochs of all its stages, where the last time was long enough ago."""
        stack = self.stack
        checkpoint.keep(lambda: {
            "epochs": epochs,
            "stack": [stack.theta, stack.tracked, *stack.running_mean, *stack.running_var],
            "seen": [self.loss[:epochs], self.accuracy[:epochs]],
            "optimizers": optimizers.state(),
            "readings": [
                {"epoch": one.epoch, "reading": one.reading, "arrays": _tensors(one)} for one in self.readings
            ],
        })  # fmt: skip

    def put_back(self, kept: dict[str, Any]) -> int:
        """Everything but the optimizers as it was kept: after how many epochs."""
        stack, epochs = self.stack, int(kept["epochs"])
        for own, value in zip(
            (stack.theta, stack.tracked, *stack.running_mean, *stack.running_var), kept["stack"], strict=True
        ):
            own.copy_(value)
        for seen, value in zip((self.loss, self.accuracy), kept["seen"], strict=True):
            seen[:epochs] = value
        self.readings[:] = [
            EnsembleReading(
                one["epoch"], one["reading"], **{name: value.numpy() for name, value in one["arrays"].items()}
            )
            for one in kept["readings"]
        ]
        return epochs


def _tensors(reading: EnsembleReading) -> dict[str, Tensor]:
    return {name: torch.from_numpy(values) for name, values in reading.arrays().items()}
