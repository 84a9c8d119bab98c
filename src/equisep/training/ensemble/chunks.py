"""One chunk of an ensemble, from first weights to last reading, on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from equisep.devices import provenance
from equisep.training.ensemble.member import Member, Stage
from equisep.training.ensemble.reading import Reading, Watch, read_ensemble
from equisep.training.ensemble.record import Ensemble
from equisep.training.ensemble.samples import Samples
from equisep.training.ensemble.stack import Stack, Weights
from equisep.training.ensemble.stepper import Stepper


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that training some members takes; `of` is the task of fewer of them."""

    members: tuple[Member, ...]
    weights: tuple[Weights, ...]
    samples: Samples
    test: tuple[Tensor, Tensor] | None
    stages: tuple[Stage, ...]
    watch: Watch
    place: torch.device
    dtype: torch.dtype
    captured: bool
    settings: Mapping[str, Any]

    def of(self, members: Sequence[int]) -> Task:
        """The same task for some of its members."""
        return Task(
            members=tuple(self.members[index] for index in members),
            weights=tuple(self.weights[index] for index in members),
            samples=self.samples.of(members),
            test=self.test,
            stages=self.stages,
            watch=self.watch,
            place=self.place,
            dtype=self.dtype,
            captured=self.captured,
            settings=self.settings,
        )

    @property
    def epochs(self) -> int:
        """Epochs of all stages together."""
        return sum(stage.epochs for stage in self.stages)


@torch.no_grad()
def train_chunk(task: Task, tick: Callable[[int], None]) -> Ensemble:
    """Train and read the members of a task; `tick` hears of every epoch."""
    stack = Stack.of(task.weights, task.members[0].shape, device=task.place, dtype=task.dtype)
    samples = task.samples.on(task.place, task.dtype)
    held = None if task.test is None else (task.test[0].to(task.place, task.dtype), task.test[1].to(task.place))
    wanted = {*task.watch.epochs, task.epochs}
    loss, accuracy = (stack.theta.new_zeros(task.epochs, stack.members, dtype=torch.float32) for _ in range(2))
    readings: list[Reading] = []

    def read(epoch: int) -> None:
        if epoch in wanted:
            modes = task.watch.modes
            readings.extend(read_ensemble(stack, samples, held, task.watch, epoch=epoch, mode=mode) for mode in modes)

    read(0)
    epoch, before = 0, None
    for stage in task.stages:
        stepper = Stepper(stack, samples, task.members, stage, before=before, captured=task.captured)
        for mean_loss, share in stepper.epochs():
            loss[epoch], accuracy[epoch] = mean_loss, share
            epoch += 1
            read(epoch)
            tick(epoch)
        before = stepper.optimizers
        del stepper  # and its buffers, before the next stage takes its own
    return Ensemble(
        members=task.members,
        stages=task.stages,
        loss=loss.t().cpu().numpy(),
        accuracy=accuracy.t().cpu().numpy(),
        readings=tuple(readings),
        stack=stack.on(torch.device("cpu")),
        settings=task.settings,
        provenance=provenance(task.place, task.dtype),
    )
