"""Steps of a stack of networks: autograd over all, torch's own optimizers over the slices of each member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from equisep.shapes import Float, Int
from equisep.training.ensemble.batch_order import Orders
from equisep.training.ensemble.optimizers import added_group, setting
from equisep.training.grouped import StackedModule
from equisep.training.recipe import Recipe


class MemberOptimizers:
    """Adam for the members that ask for it, SGD for the others, both torch's fused ones, each member at its own rate.

    Members of equal settings form one parameter group; where they are neighbors they share a slice of every stacked
    parameter. A slice lies on the memory of the whole, and so does its gradient. Parameters that got no gradient are
    left alone, as an optimizer of one network leaves them.
    """

    def __init__(self, network: StackedModule, recipes: Sequence[Recipe], *, capturable: bool) -> None:
        self._capturable = capturable
        self._optimizers: dict[bool, torch.optim.Optimizer] = {}
        self._groups: list[tuple[dict[str, Any], Recipe]] = []
        whole = [value for value in network.parameters() if value.grad is not None]
        for runs in _runs(recipes):
            slices = [_slice(value, run, network.members) for value in whole for run in runs]
            if slices:
                self._add(recipes[runs[0].start], slices)

    def set_epoch(self, epoch: int) -> None:
        """Every group at the rate its schedule gives for this epoch."""
        for group, recipe in self._groups:
            rate = recipe.rate_at(epoch)
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def zero_grad(self) -> None:
        """Gradients to zero; their memory stays."""
        for optimizer in self._optimizers.values():
            optimizer.zero_grad(set_to_none=False)

    def step(self) -> None:
        """One step of every member."""
        for optimizer in self._optimizers.values():
            optimizer.step()

    def _add(self, recipe: Recipe, slices: list[nn.Parameter]) -> None:
        group = added_group(self._optimizers, recipe, slices, capturable=self._capturable)
        self._groups.append((group, recipe))


class StackedStepper:
    """Everything that training a stack works on; `epochs` runs it.

    `loss` and `hits` collect, member by member, what an epoch saw: Σ loss·batch and the number of right answers.
    """

    def __init__(
        self,
        network: StackedModule,
        x: Float[Tensor, "n ..."],
        y: Int[Tensor, " n"],
        recipes: Sequence[Recipe],
        *,
        captured: bool = False,
    ) -> None:
        self.network = network.train()
        self.x, self.y = x, y
        self.recipes = list(recipes)
        self.captured = captured and recipes[0].epochs > 1
        self.loss = x.new_zeros(network.members)
        self.hits = torch.zeros(network.members, dtype=torch.int64, device=x.device)
        self._optimizers: MemberOptimizers | None = None
        self._stream = torch.cuda.Stream(x.device) if self.captured else None

    def epochs(self) -> Iterator[tuple[Float[Tensor, " m"], Int[Tensor, " m"]]]:
        """Train epoch by epoch; after each, its mean loss and number of right answers of every member, on the device."""
        n, size = len(self.y), self.recipes[0].batch_size
        orders = Orders([recipe.seed for recipe in self.recipes], n, device=self.x.device)
        graphs: dict[int, _Captured] = {}
        for epoch, order in enumerate(orders.epochs(self.recipes[0].epochs)):
            with self._own_stream():
                if self._optimizers is not None:
                    self._optimizers.set_epoch(epoch)
                self.loss.zero_()
                self.hits.zero_()
                for rows in order.t().contiguous().split(size):  # b m
                    if self._stream is None or epoch == 0:  # optimizers make their state in the first epoch
                        self.step(rows)
                        continue
                    if len(rows) not in graphs:
                        graphs[len(rows)] = _Captured(self, len(rows), beside=next(iter(graphs.values()), None))
                    graphs[len(rows)].replay(rows)
                found = self.loss / n, self.hits.clone()
            yield found

    def step(self, rows: Int[Tensor, "b m"]) -> None:
        """One batch of every member: scores, loss, gradients, optimizer."""
        with torch.enable_grad():
            x = self.x.index_select(0, rows.flatten()).unflatten(0, tuple(rows.shape))  # b m …
            y = self.y.index_select(0, rows.flatten())  # b·m
            scores = self.network(x)  # b m k
            losses = cross_entropy(scores.flatten(0, 1), y, reduction="none").view_as(rows)
            if self._optimizers is not None:
                self._optimizers.zero_grad()
            losses.mean(dim=0).sum().backward()
        if self._optimizers is None:
            self._optimizers = MemberOptimizers(self.network, self.recipes, capturable=self.captured)
            self._optimizers.set_epoch(0)
        self._optimizers.step()
        self.loss += losses.detach().sum(dim=0)
        self.hits += (scores.detach().argmax(dim=2) == y.view_as(rows)).sum(dim=0)

    @contextmanager
    def _own_stream(self) -> Iterator[None]:
        """The eager epoch runs on the stream that is captured later: autograd ties gradients to a stream."""
        if self._stream is None:
            yield
            return
        outside = torch.cuda.current_stream(self.x.device)
        self._stream.wait_stream(outside)
        with torch.cuda.stream(self._stream):
            yield
        outside.wait_stream(self._stream)


class _Captured:
    """One step of a fixed batch size as a CUDA graph: hundreds of kernels for the price of one launch."""

    def __init__(self, stepper: StackedStepper, size: int, *, beside: _Captured | None) -> None:
        self.rows = torch.zeros(size, stepper.network.members, dtype=torch.int64, device=stepper.x.device)
        self.graph = torch.cuda.CUDAGraph()
        # graphs that never run at the same time can share their memory
        pool = None if beside is None else beside.graph.pool()
        with torch.cuda.graph(self.graph, pool=pool, stream=stepper._stream):
            stepper.step(self.rows)

    def replay(self, rows: Int[Tensor, "b m"]) -> None:
        """The step on this batch."""
        self.rows.copy_(rows)
        self.graph.replay()


def _runs(recipes: Sequence[Recipe]) -> list[list[slice]]:
    """Members of equal settings, neighbors among them as one slice."""
    found: dict[str, list[slice]] = {}
    for member, recipe in enumerate(recipes):
        runs = found.setdefault(setting(recipe), [])
        if runs and runs[-1].stop == member:
            runs[-1] = slice(runs[-1].start, member + 1)
        else:
            runs.append(slice(member, member + 1))
    return list(found.values())


def _slice(value: nn.Parameter, run: slice, members: int) -> nn.Parameter:
    """Some members of a stacked parameter, on its memory and on that of its gradient."""
    assert value.grad is not None
    found = nn.Parameter(value.detach().view(members, -1)[run])
    found.grad = value.grad.view(members, -1)[run]
    return found
