"""Torch's own optimizers over the rows of a stack: one parameter group for each setting among the members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from equisep.training.eager import Adam, Sgd
from equisep.training.ensemble.member import Stage
from equisep.training.ensemble.stack import Stack, segments
from equisep.training.recipe import Recipe


@dataclass(frozen=True, slots=True)
class _Piece:
    """A parameter of an optimizer: a stretch of the rows of some neighboring members."""

    parameter: nn.Parameter
    members: slice
    stretch: tuple[int, int]


class Optimizers:
    """Adam for the members that ask for it, SGD for the others, both torch's fused ones, each member at its own rate.

    Members of equal settings form one group, which the fused kernels update in one go; where whole rows of neighbors
    learn, they are one parameter. `grad` has the shape of the stack and is what `step` reads.
    """

    def __init__(
        self,
        stack: Stack,
        recipes: Sequence[Recipe],
        stage: Stage,
        *,
        before: Optimizers | None = None,
        capturable: bool = False,
    ) -> None:
        self.grad = torch.zeros_like(stack.theta)
        self.recipes = [stage.recipe(recipe) for recipe in recipes]
        self._capturable = capturable
        self._pieces: list[_Piece] = [] if before is None else list(before._pieces)
        self._optimizers: dict[bool, torch.optim.Optimizer] = {} if before is None else dict(before._optimizers)
        self._groups: list[tuple[dict[str, Any], int]] = [] if before is None else list(before._groups)
        for piece in self._pieces:  # a leaky stage: old parameters and moments, gradients of this stage
            piece.parameter.grad = self.grad[piece.members, slice(*piece.stretch)]
        held = {piece.stretch for piece in self._pieces}
        fresh = _without(segments(stack.shape, stage.learning(stack.shape.depth)), held)
        for members in _by_setting(recipes):  # not as the stage has them: a leaky one after it may tell them apart
            new = [self._piece(stack, run, stretch) for stretch in fresh for run in _runs(members, stack, stretch)]
            self._pieces += new
            if new:
                self._add(members[0], [piece.parameter for piece in new])

    def set_epoch(self, epoch: int) -> None:
        """Every group at the rate its schedule gives for this epoch of the stage."""
        for group, member in self._groups:
            rate = self.recipes[member].rate_at(epoch)
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def step(self) -> None:
        """One step of every member."""
        for optimizer in self._optimizers.values():
            optimizer.step()

    def state(self) -> list[dict[str, torch.Tensor | None]]:
        """What the optimizers remember of every piece, as moments, in the order of the pieces."""
        owners = self._owners()
        return [dict(owners[id(piece.parameter)].state.get(piece.parameter, {})) for piece in self._pieces]

    def put_back(self, state: Sequence[dict[str, torch.Tensor | None]]) -> None:
        """Remember what `state` gave, of optimizers made alike."""
        owners = self._owners()
        for piece, own in zip(self._pieces, state, strict=True):
            there = {name: None if value is None else value.to(self.grad.device) for name, value in own.items()}
            if there:
                owners[id(piece.parameter)].state[piece.parameter] = there

    def _owners(self) -> dict[int, torch.optim.Optimizer]:
        return {
            id(parameter): optimizer
            for optimizer in self._optimizers.values()
            for group in optimizer.param_groups
            for parameter in group["params"]
        }

    def _piece(self, stack: Stack, members: slice, stretch: tuple[int, int]) -> _Piece:
        parameter = nn.Parameter(stack.theta[members, slice(*stretch)])
        parameter.grad = self.grad[members, slice(*stretch)]
        return _Piece(parameter, members, stretch)

    def _add(self, member: int, parameters: list[nn.Parameter]) -> None:
        """A group of parameters that are set as `member` is, in the optimizer of its kind (True: Adam, False: SGD)."""
        recipe, optimizers = self.recipes[member], self._optimizers
        adam = recipe.optimizer == "adam"
        # a rate that captured kernels read has to live on the device, where the fused ones take float32
        home, capturable = parameters[0].device, self._capturable
        rate = torch.tensor(recipe.rate, dtype=torch.float32, device=home) if capturable else recipe.rate
        group: dict[str, Any] = {"params": parameters, "lr": rate, "weight_decay": recipe.weight_decay}
        if not adam:
            group["momentum"] = recipe.momentum if recipe.optimizer == "momentum" else 0.0
        group["capturable"] = capturable  # SGD does not know the word, but capturing asks every group for it
        if adam in optimizers:
            optimizers[adam].add_param_group(group)
        else:
            make = Adam if adam else Sgd
            optimizers[adam] = make([group], lr=recipe.rate, fused=True)
        self._groups.append((optimizers[adam].param_groups[-1], member))


def setting(recipe: Recipe) -> str:
    """What members of one parameter group have in common: all of the recipe but its seed, and its length."""
    return repr(replace(recipe, seed=0, epochs=0, milestones=tuple(recipe.milestones)))


def _by_setting(recipes: Sequence[Recipe]) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for member, recipe in enumerate(recipes):
        groups.setdefault(setting(recipe), []).append(member)
    return list(groups.values())


def _runs(members: Sequence[int], stack: Stack, stretch: tuple[int, int]) -> list[slice]:
    """Neighbors together where whole rows learn, since their rows then are one piece of memory; single rows otherwise."""
    whole = stretch == (0, stack.theta.shape[1])
    runs: list[slice] = []
    for member in members:
        if whole and runs and runs[-1].stop == member:
            runs[-1] = slice(runs[-1].start, member + 1)
        else:
            runs.append(slice(member, member + 1))
    return runs


def _without(wanted: Sequence[tuple[int, int]], held: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The wanted stretches without those that an optimizer already holds."""
    free: list[tuple[int, int]] = []
    for start, stop in wanted:
        at = start
        for first, last in sorted(held):
            if first < stop and last > at:
                if first > at:
                    free.append((at, first))
                at = max(at, last)
        if at < stop:
            free.append((at, stop))
    return free
