"""One stage of training by the kernel: launches of many epochs, the numbers of each epoch, the stack brought up to date."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from equisep.shapes import Float
from equisep.training.ensemble.kernel import layout
from equisep.training.ensemble.kernel.compile import device_obstacle, prepare
from equisep.training.ensemble.kernel.layout import Build, Layout
from equisep.training.ensemble.member import Member, Shape, Stage
from equisep.training.ensemble.passes import Plan
from equisep.training.ensemble.samples import Samples
from equisep.training.ensemble.stack import Stack
from equisep.training.ensemble.stepper import Orders

LAUNCH_SECONDS = 0.25  # so that an interruption waits no longer
FIRST = 2  # epochs of the first launch, which tells how long one takes
MOST_STEPS = 2**30  # from far fewer on Adam's corrections are 1
# operations of a whole task from which `auto` takes the kernel: the first build for a shape takes seconds, once a machine, and
# smaller tasks are done before by graphs. By the task alone, not by what is built: the same call has to choose the same again
WORTH_BUILDING = 10**12
GROUPS = 8  # parts of a Hopper, each an even number of multiprocessors; no cluster reaches from one into another


@runtime_checkable
class Launch(Protocol):
    """The kernel on its arguments, which follow the order of `train` in train.cu, for so many members."""

    def __call__(self, arguments: Sequence[Tensor], *, members: int, build: Build, depth: int) -> None:
        """Start it; on a device nothing is waited for."""


class Moments:
    """What the kernel's optimizers remember, kept and put back as torch's are."""

    def __init__(self, values: Sequence[Tensor]) -> None:
        self._values = values

    def state(self) -> list[dict[str, Tensor | None]]:
        """The moments, first and second, as far as any member has them."""
        return [{"moment": value} for value in self._values]

    def put_back(self, state: Sequence[dict[str, Tensor | None]]) -> None:
        """Remember what `state` gave."""
        for own, kept in zip(self._values, state, strict=True):
            if kept["moment"] is not None:
                own.copy_(kept["moment"])


class KernelStepper:
    """The counterpart of `Stepper`, stage by stage: the same members, the same steps, up to rounding."""

    def __init__(
        self,
        stack: Stack,
        samples: Samples,
        members: Sequence[Member],
        stage: Stage,
        *,
        build: Build,
        launch: Launch,
        reads: Collection[int] = (),
    ) -> None:
        """`reads` are epochs of the stage after which the stack has to be up to date, beside the last."""
        learning = stage.learning(stack.shape.depth)
        held = tuple(stage.frozen_norm == "hold" and not learns for learns in learning)
        self.stack, self.samples, self.stage, self.launch = stack, samples, stage, launch
        self.plan = Plan(learning, held)
        self.layout = Layout(stack.shape, build)
        self.batch_size = members[0].recipe.batch_size
        self.recipes = [stage.recipe(member.recipe) for member in members]
        self.reads = sorted({*(epoch for epoch in reads if 0 < epoch < stage.epochs), stage.epochs})
        theta = stack.theta
        self.orders = Orders([recipe.seed for recipe in self.recipes], samples.n, device=theta.device)
        self.rows = self.layout.pack(stack)
        kinds = {recipe.optimizer for recipe in self.recipes}
        self.first = torch.zeros_like(self.rows) if kinds != {"sgd"} else self.rows  # not touched where not needed
        self.second = torch.zeros_like(self.rows) if "adam" in kinds else self.rows
        self.optimizers = Moments([one for one in (self.first, self.second) if one is not self.rows])
        self.settled = True
        self.scratch = theta.new_empty(stack.members, self.layout.scratch)
        self._settings = theta.new_tensor(
            [
                [
                    recipe.optimizer == "adam",
                    recipe.momentum if recipe.optimizer == "momentum" else 0.0,
                    recipe.weight_decay,
                    0,
                ]
                for recipe in self.recipes
            ]
        )
        ones = theta.new_ones(stack.members, stack.shape.classes)
        weights = ones if samples.class_weights is None else samples.class_weights
        added = 0 * ones if samples.logit_adjustment is None else samples.logit_adjustment
        self._terms = torch.cat([weights, added], dim=1).contiguous()
        self._positions = samples.rows.to(torch.int32)
        self._labels = samples.labels.to(torch.int32)
        self._order_of = self.orders.of_member.to(torch.int32)

    def warm_up(self) -> None:
        """Nothing: what `Stepper` does before it captures graphs, and a kernel has no need of."""

    def epochs(self, begin: int = 0) -> Iterator[tuple[Float[Tensor, " m"], Float[Tensor, " m"]]]:
        """Train; after each epoch its mean loss and accuracy of every member. The stack is up to date where it is `settled`.

        `begin` epochs were trained before, in a process that is gone: only their orders are drawn.
        """
        done, ahead = begin, FIRST
        steps = -(-self.samples.n // self.batch_size)
        norms = [layer for layer in range(len(self.stack.running_mean)) if not self.plan.held[layer]]
        clock = _Clock(self.stack.theta.device)
        self.orders.skip(begin)
        told = self._arguments(done, self._count(done, ahead), steps)
        while told is not None:
            clock.begin()
            self.launch(told, members=self.stack.members, build=self.layout.build, depth=self.stack.shape.depth)
            clock.end()
            count = len(told[-1])
            done += count
            following = self._arguments(done, self._count(done, ahead), steps)  # drawn while the device works
            ahead = max(1, min(8 * ahead, int(count * LAUNCH_SECONDS / max(clock.seconds(), 1e-9))))
            self.layout.unpack(self.rows, self.stack)
            for index, (loss, hits) in enumerate(zip(*told[-2:], strict=True), start=1):
                self.stack.tracked[norms] += steps
                self.settled = index == count
                yield loss / self.samples.n, hits / self.samples.n
            told = following

    def _count(self, done: int, ahead: int) -> int:
        """Epochs of the next launch: as many as wanted, up to where the stack is read; orders of two launches are held."""
        until = next((epoch for epoch in self.reads if epoch > done), done)
        return min(ahead, until - done, max(1, self.orders.most // 2))

    def _arguments(self, done: int, count: int, steps: int) -> list[Tensor] | None:
        """What the kernel is told for the next `count` epochs; None where there are none left."""
        if count == 0:
            return None
        theta, members = self.stack.theta, self.stack.members
        orders = self.orders.draw(count).to(torch.int32).to(theta.device)
        rates = theta.new_tensor(
            [[recipe.rate_at(epoch) for recipe in self.recipes] for epoch in range(done, done + count)]
        )
        numbers = {
            "n": self.samples.n,
            "batch": min(self.batch_size, self.samples.n),
            "epochs": count,
            "members": members,
            "orders": orders.shape[1],
            "weighted": int(self.samples.class_weights is not None),
            "weighted_mean": int(self.samples.weighted_mean),
            "adjusted": int(self.samples.logit_adjustment is not None),
            "steps_before": min(done * steps, MOST_STEPS),
        }
        plan = self.layout.plan(self.plan, numbers).to(theta.device)
        sums = theta.new_zeros(2, count, members)
        return [
            plan, self.rows, self.first, self.second, self.scratch, self.samples.pool, self._positions, self._labels, orders,
            self._order_of, rates, self._settings, self._terms, sums[0], sums[1],
        ]  # fmt: skip


class _Clock:
    """Seconds that a launch takes on its device, which waiting for it tells."""

    def __init__(self, device: torch.device) -> None:
        cuda = device.type == "cuda"
        self.stream = torch.cuda.current_stream(device) if cuda else None
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if cuda else []

    def begin(self) -> None:
        """Just before the launch."""
        if self.events:
            self.events[0].record(self.stream)

    def end(self) -> None:
        """Just after it."""
        if self.events:
            self.events[1].record(self.stream)

    def seconds(self) -> float:
        """Once the device has come to the end."""
        if not self.events:
            return 0.0
        self.events[1].synchronize()
        return float(self.events[0].elapsed_time(self.events[1])) / 1000


def operations(members: Sequence[Member], stages: Sequence[Stage], *, samples: int) -> int:
    """Multiplications and additions of the products of a whole task: forward, and backward twice as many."""
    weights = sum(inputs * outputs for inputs, outputs in members[0].shape.layers)
    return 6 * weights * samples * len(members) * sum(stage.epochs for stage in stages)


def kernel_obstacle(
    shape: Shape,
    stages: Sequence[Stage],
    *,
    members: int,
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
    tf32: bool,
) -> str | None:
    """Why the kernel is not made for such members or this device, or None; then it is built and loaded.

    `KernelError` where it should run here but cannot be built: without NVRTC, say.
    """
    if dtype is not torch.float32:
        return f"it computes in float32, and members train in {dtype}"
    if any(stage.leaky for stage in stages):
        return "it begins every stage with a new optimizer, and a stage is leaky"
    found = layout.obstacle(shape, batch_size)
    if found is not None:
        return found
    build = build_for(shape, members=members, device=device, tf32=tf32)
    found = device_obstacle(build, shape.depth, device)
    if found is None:
        prepare(build, shape.depth, device)
    return found


def build_for(shape: Shape, *, members: int, device: torch.device, tf32: bool = False) -> Build:
    """As many blocks for each member as leave none waiting; two on a multiprocessor where there are more members."""
    if device.type != "cuda":
        return Build.of(shape, tf32=tf32)
    known = torch.cuda.get_device_properties(device)
    if known.major >= 9:
        for cluster in (4, 2):
            # a cluster of four leaves up to two multiprocessors of each group alone; one that waits costs all the time again
            if members * cluster <= known.multi_processor_count - GROUPS * (cluster - 2):
                return Build.of(shape, cluster=cluster, tf32=tf32)
    shared = Build.of(shape, resident=2, tf32=tf32)
    fits = 2 * (shared.shared_bytes(shape.depth) + 1024) <= known.shared_memory_per_multiprocessor
    return shared if fits and members > known.multi_processor_count else Build.of(shape, tf32=tf32)
