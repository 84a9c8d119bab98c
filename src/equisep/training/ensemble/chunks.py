"""Members in chunks: as many side by side as memory allows, fewer where it runs out, on a CPU shared out among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from equisep.devices import out_of_memory, precision, provenance
from equisep.errors import InputError, NumericalError
from equisep.progress import Progress
from equisep.shapes import Float
from equisep.training.checkpoint import Checkpoint
from equisep.training.ensemble.kernel.stage import KernelStepper, Moments
from equisep.training.ensemble.member import Member, Stage
from equisep.training.ensemble.memory import SHARE, bytes_per_member, free_bytes
from equisep.training.ensemble.optimizers import Optimizers, setting
from equisep.training.ensemble.reading import EnsembleReading, Watch, read_ensemble
from equisep.training.ensemble.record import Ensemble, joined
from equisep.training.ensemble.samples import Samples
from equisep.training.ensemble.stack import Stack, Weights
from equisep.training.ensemble.stepper import Stepper
from equisep.training.threads import StepThreads
from equisep.workers import Stopped, parallel_map

EnsembleEngine = Literal["eager", "graphs", "kernel"]
CPU_CHUNK = 32  # more members side by side only push each other out of the processor's cache


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


Kept = Callable[["Task"], Checkpoint]


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that training some members takes; `of` is the task of fewer of them."""

    members: tuple[Member, ...]
    weights: tuple[Weights, ...]
    samples: Samples
    test: tuple[Tensor, Tensor] | None
    stages: tuple[Stage, ...]
    watch: Watch
    device: torch.device
    dtype: torch.dtype
    tf32: bool
    engine: EnsembleEngine
    settings: Mapping[str, Any]

    def of(self, members: Sequence[int]) -> Task:
        """The same task for some of its members."""
        return replace(
            self,
            members=tuple(self.members[index] for index in members),
            weights=tuple(self.weights[index] for index in members),
            samples=self.samples.of(members),
        )

    @property
    def epochs(self) -> int:
        """Epochs of all stages together."""
        return sum(stage.epochs for stage in self.stages)

    @property
    def operations_per_step(self) -> int:
        """Multiplications and additions of one step of all members: forward, and backward twice as many."""
        weights = sum(inputs * outputs for inputs, outputs in self.members[0].shape.layers)
        batch = min(self.members[0].recipe.batch_size, self.samples.n)
        return 6 * weights * batch * len(self.members)

    @property
    def bytes_per_member(self) -> int:
        """Memory of the member that needs most."""
        kinds = {member.recipe.optimizer: member for member in self.members}
        return max(
            bytes_per_member(member, self.samples.n, self.dtype, epochs=self.epochs) for member in kinds.values()
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be used at once: bytes and members, by default what is free; threads of a CPU, by default torch's."""

    memory: int | None = None
    chunk: int | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.chunk is not None and self.chunk < 1:
            raise InputError(f"`chunk` was {self.chunk}; at least one member has to train at a time.")
        if self.workers is not None and self.workers < 1:
            raise InputError(f"`workers` was {self.workers}; at least one thread has to train.")

    def members_of(self, task: Task) -> int:
        """How many members of a task train at once, each taken for the one that needs most."""
        budget = SHARE * free_bytes(task.device) if self.memory is None else self.memory
        fits = max(1, int(budget // task.bytes_per_member))
        if self.chunk is not None:
            return min(self.chunk, fits)
        return min(fits, CPU_CHUNK) if task.device.type == "cpu" else fits


def train_in_chunks(
    task: Task, todo: Sequence[int], limits: Limits, progress: Progress, kept: Kept | None = None
) -> Iterator[tuple[Sequence[int], Ensemble]]:
    """Chunk after chunk, the members it holds and what they became; smaller ones from where memory runs out on.

    `kept` says where the members of a task are kept while they train, and go on from.
    """
    # neighbors of one setting share an optimizer's step
    order = sorted(todo, key=lambda index: setting(task.members[index].recipe))
    queue = _pieces(order, limits.members_of(task)) if todo else []
    finished = 0
    while queue:
        indices = queue.pop(0)

        def report(epochs: float | int, share: int = len(indices), before: int = finished) -> None:
            progress("training", int((before * task.epochs + epochs * share) / len(todo)), task.epochs)

        part = _trained_if_it_fits(task.of(indices), report, workers=limits.workers, kept=kept)
        if part is None:
            queue = _pieces([index for piece in (indices, *queue) for index in piece], (len(indices) + 1) // 2)
            continue
        finished += len(indices)
        yield indices, part


def _pieces(indices: Sequence[int], size: int) -> list[Sequence[int]]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]


def _trained_if_it_fits(
    task: Task, report: Callable[[float], None], *, workers: int | None, kept: Kept | None
) -> Ensemble | None:
    """A chunk, or None where memory ran out for more than one member."""
    try:
        with precision(tf32=task.tf32):
            return _trained(task, report, workers=workers, kept=kept)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if len(task.members) == 1:
            raise NumericalError(
                f"One member of {task.members[0].shape} needs about {task.bytes_per_member / 2**20:.0f} MiB on "
                f"{task.device}, which is not free there. Use another device or a smaller network."
            ) from error
    if task.device.type == "cuda":  # out of the handler, whose error held on to the tensors of the chunk
        torch.cuda.empty_cache()
    return None


def _trained(task: Task, report: Callable[[float], None], *, workers: int | None, kept: Kept | None) -> Ensemble:
    """A chunk, on the CPU divided among threads; who sits with whom matters by rounding only."""
    width = len(task.members)
    threads = min(workers or torch.get_num_threads(), width) if task.device.type == "cpu" else 1
    if threads == 1:
        with StepThreads(task.device) as own:
            own.decide(task.operations_per_step)
            return train_chunk(task, report, None if kept is None else kept(task))
    edges = [width * worker // threads for worker in range(threads + 1)]
    parts = [task.of(range(start, end)) for start, end in pairwise(edges)]
    reached, stop = [0] * threads, threading.Event()

    def part_trained(index: int) -> Ensemble:
        def tick(epochs: int) -> None:
            if stop.is_set():
                raise Stopped
            reached[index] = epochs

        return train_chunk(parts[index], tick, None if kept is None else kept(parts[index]))

    return joined(
        parallel_map(
            part_trained,
            range(threads),
            threads=threads,
            meanwhile=lambda: report(sum(reached) / threads),
            stop=stop,
        )
    )


@torch.no_grad()
def train_chunk(task: Task, tick: Callable[[int], None], checkpoint: Checkpoint | None = None) -> Ensemble:
    """Train and read the members of a task, from first weights to last reading; `tick` hears of every epoch.

    With a checkpoint the training is kept from time to time, and goes on from where it was kept before.
    """
    stack = Stack.of(task.weights, task.members[0].shape, device=task.device, dtype=task.dtype)
    samples = task.samples.on(task.device, task.dtype)
    test = None if task.test is None else (task.test[0].to(task.device, task.dtype), task.test[1].to(task.device))
    wanted = {*task.watch.epochs, task.epochs}
    loss, accuracy = (stack.theta.new_zeros(task.epochs, stack.members, dtype=torch.float32) for _ in range(2))
    readings: list[EnsembleReading] = []

    def read(epoch: int) -> None:
        if epoch in wanted:
            readings.extend(
                read_ensemble(stack, samples, test, task.watch, epoch=epoch, reading=name, last=epoch == task.epochs)
                for name in task.watch.names
            )

    state = ChunkState(stack, loss, accuracy, readings)
    held = None if checkpoint is None else checkpoint.read()
    done = 0 if held is None else state.put_back(held)
    if not done:
        read(0)
    epoch, before = 0, None
    for stage in task.stages:
        stepper = _stepper(task, stack, samples, stage, before=before, reads=[one - epoch for one in wanted])
        behind = min(stage.epochs, done - epoch)  # epochs of this stage that were trained before
        if held is not None and epoch + behind == done:
            stepper.warm_up()
            state.put_back(held)
            stepper.optimizers.put_back(held["optimizers"])
            held = None
        epoch += behind
        for mean_loss, share in stepper.epochs(behind):
            loss[epoch], accuracy[epoch] = mean_loss, share
            epoch += 1
            read(epoch)
            if checkpoint is not None and epoch < task.epochs and stepper.settled:
                state.keep(checkpoint, epoch, stepper.optimizers)
            tick(epoch)
        done = max(done, epoch)
        before = stepper.optimizers if isinstance(stepper, Stepper) else None
        del stepper  # and its buffers, before the next stage takes its own
    return Ensemble(
        members=task.members,
        stages=task.stages,
        loss=loss.t().cpu().numpy(),
        accuracy=accuracy.t().cpu().numpy(),
        readings=tuple(readings),
        stack=stack.on(torch.device("cpu")),
        settings=task.settings,
        provenance=provenance(task.device, task.dtype),
    )


def _stepper(
    task: Task, stack: Stack, samples: Samples, stage: Stage, *, before: Optimizers | None, reads: Sequence[int]
) -> Stepper | KernelStepper:
    """Who trains a stage; `reads` are epochs of it after which the stack is read."""
    if task.engine != "kernel":
        return Stepper(stack, samples, task.members, stage, before=before, captured=task.engine == "graphs")
    from equisep.training.ensemble.kernel.compile import launch
    from equisep.training.ensemble.kernel.stage import build_for

    build = build_for(stack.shape, members=stack.members, device=task.device, tf32=task.tf32)
    return KernelStepper(stack, samples, task.members, stage, build=build, launch=launch, reads=reads)
