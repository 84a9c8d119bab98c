"""One stage of training for a stack of members: epochs of steps, eager or replayed from captured CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from equisep.shapes import Float, Int
from equisep.training.captured import CapturedSteps
from equisep.training.ensemble.cpu_passes import CpuPasses
from equisep.training.ensemble.member import Member, Stage
from equisep.training.ensemble.optimizers import Optimizers
from equisep.training.ensemble.passes import Plan, backward, forward, vectors_of
from equisep.training.ensemble.samples import Samples
from equisep.training.ensemble.stack import Stack, vector_positions

BLOCK_NUMBERS = 16 * 2**20  # positions drawn ahead at once: 128 MiB


class Orders:
    """One `randperm` per epoch and seed, from a CPU generator of its own, as `train` draws it.

    Members of one seed share an order, so that a sweep over rates draws it once.
    """

    def __init__(self, seeds: Sequence[int], n: int, *, device: torch.device) -> None:
        self.distinct = list(dict.fromkeys(seeds))
        self.of_member = torch.tensor([self.distinct.index(seed) for seed in seeds], device="cpu").to(device)
        self.n = n
        self.device = device
        self._generators = [torch.Generator("cpu").manual_seed(seed) for seed in self.distinct]

    def epochs(self, count: int) -> Iterator[Int[Tensor, "m n"]]:
        """The positions of every member's samples, epoch after epoch."""
        for start in range(0, count, self.most):
            for epoch in self.draw(min(self.most, count - start)).to(self.device):
                yield epoch[self.of_member]

    @property
    def most(self) -> int:
        """The most epochs that are drawn at once."""
        return max(1, BLOCK_NUMBERS // (len(self.distinct) * self.n))

    def skip(self, count: int) -> None:
        """As if so many epochs had been drawn."""
        for _ in range(count):
            self.draw(1)

    def draw(self, count: int) -> Int[Tensor, "e s n"]:
        """The next epochs of every distinct seed, on the CPU."""
        block = torch.empty(count, len(self.distinct), self.n, dtype=torch.int64, device="cpu")
        for epoch in block:
            for row, generator in zip(epoch, self._generators, strict=True):
                torch.randperm(self.n, generator=generator, out=row, device="cpu")
        return block


def in_place(device: torch.device) -> bool:
    """Whether passes keep their buffers; elsewhere torch's own allocator keeps them, and graphs are captured from it."""
    return device.type == "cpu"


class Stepper:
    """Everything that one stage of training works on; `epochs` runs it.

    `loss` and `hits` collect, member by member, what an epoch saw: Σ loss·batch and the number of right answers.
    """

    def __init__(
        self,
        stack: Stack,
        samples: Samples,
        members: Sequence[Member],
        stage: Stage,
        *,
        before: Optimizers | None = None,
        captured: bool = False,
    ) -> None:
        learning = stage.learning(stack.shape.depth)
        held = tuple(stage.frozen_norm == "hold" and not learns for learns in learning)
        self.stack = stack
        self.samples = samples
        self.stage = stage
        self.batch_size = members[0].recipe.batch_size
        self.plan = Plan(learning, held)
        self.positions = vector_positions(stack.shape, stack.members, learning).to(stack.theta.device)
        self.loss = stack.theta.new_zeros(stack.members)
        self.hits = stack.theta.new_zeros(stack.members)
        self.captured = captured and stage.epochs > 1
        recipes = [member.recipe for member in members]
        kept = before if stage.leaky else None
        self.optimizers = Optimizers(stack, recipes, stage, before=kept, capturable=captured)
        self.in_place: CpuPasses | None = None
        if in_place(stack.theta.device):
            size = min(self.batch_size, samples.n)
            self.in_place = CpuPasses(stack, self.optimizers.grad, self.plan, self.positions, batch=size)
        self.orders = Orders([recipe.seed for recipe in recipes], samples.n, device=stack.theta.device)

    @property
    def settled(self) -> bool:
        """Whether the stack is as the last epoch left it, so that it can be kept: always."""
        return True

    def epochs(self, begin: int = 0) -> Iterator[tuple[Float[Tensor, " m"], Float[Tensor, " m"]]]:
        """Train epoch by epoch; after each, its mean loss and accuracy of every member, on the device.

        `begin` epochs were trained before, in a process that is gone: only their orders are drawn, see `warm_up`.
        """
        starts = range(0, self.samples.n, self.batch_size)
        norms = [layer for layer in range(len(self.stack.running_mean)) if not self.plan.held[layer]]
        graphs = CapturedSteps(self.step)
        for epoch, order in islice(enumerate(self.orders.epochs(self.stage.epochs)), begin, None):
            self.optimizers.set_epoch(epoch)
            self.loss.zero_()
            self.hits.zero_()
            rows = self.samples.rows.gather(1, order).t().contiguous()  # n m
            labels = self.samples.labels.gather(1, order).t().contiguous()  # n m
            for start in starts:
                batch = slice(start, start + self.batch_size)
                # the first epoch runs eagerly: optimizers make their state in it
                step = graphs if self.captured and epoch > 0 else self.step
                step(rows[batch], labels[batch])
            self.stack.tracked[norms] += len(starts)
            yield self.loss / self.samples.n, self.hits / self.samples.n

    def warm_up(self) -> None:
        """A step of every batch size, before graphs are captured where no epoch ran; what it changes is to be put back."""
        whole, rest = divmod(self.samples.n, self.batch_size)
        for size in ([self.batch_size] if whole else []) + ([rest] if rest else []):
            rows, labels = (part[:, :size].t().contiguous() for part in (self.samples.rows, self.samples.labels))
            self.step(rows, labels)

    def step(self, rows: Int[Tensor, "b m"], labels: Int[Tensor, "b m"]) -> None:
        """One batch of every member: scores, loss, gradients, optimizer."""
        stack, samples = self.stack, self.samples
        if self.in_place is not None:
            self.in_place.backward(self._loss(self.in_place.forward(samples.pool, rows), labels))
        else:
            x = samples.pool.index_select(0, rows.view(-1)).view(*rows.shape, -1)
            vectors = vectors_of(stack)
            scores, traces = forward(stack, x, vectors, self.plan)
            slope = self._loss(scores, labels)
            top = traces[-1].output if traces else x
            backward(stack, self.optimizers.grad, slope, top, traces, vectors, self.plan, self.positions)
        self.optimizers.step()

    def _loss(self, scores: Float[Tensor, "b m k"], labels: Int[Tensor, "b m"]) -> Float[Tensor, "b m k"]:
        """∂/∂scores of each member's mean cross-entropy, softmax − one-hot over the batch; the loss is noted down."""
        size = len(scores)
        own = labels.unsqueeze(2)
        # written out: torch's log_softmax takes four times as long on so few classes, and is no more exact
        highest, guess = scores.max(dim=2, keepdim=True)
        if self.samples.logit_adjustment is not None:
            scores = scores + self.samples.logit_adjustment
            highest = scores.max(dim=2, keepdim=True).values
        shifted = scores - highest
        chosen = shifted.gather(2, own)
        slope = shifted.exp_()
        total = slope.sum(dim=2, keepdim=True)
        losses = total.log() - chosen  # b m 1
        slope /= total
        slope.scatter_add_(2, own, torch.full_like(losses, -1))
        weights = self.samples.class_weights
        if weights is None:
            slope /= size
        else:
            share = weights.gather(1, labels.t()).t().unsqueeze(2)  # b m 1
            share = share / (share.sum(dim=0) if self.samples.weighted_mean else size)
            slope *= share
            losses = losses * share * size
        self.loss += losses.sum(dim=(0, 2))
        self.hits += (guess == own).sum(dim=(0, 2))
        return slope
