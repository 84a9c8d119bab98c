"""Division: which ranks hold one model together by tensor parallelism, and so read one part of the data, all of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from torch import nn

from equisep.errors import InputError
from equisep.measuring.distributed.control import Control
from equisep.taps import is_spread, sharded_by

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


@dataclass(frozen=True, slots=True)
class Division:
    """The ranks in teams, each with one model that is divided among them by its features; without tensor parallelism of one.

    All ranks of a team pass the same data: the team's part. They run each batch together, and take turns in adding it up.
    """

    teams: tuple[tuple[int, ...], ...]
    rank: int

    @staticmethod
    def of(model: nn.Module, control: Control) -> Division:
        """How the ranks of a group divide this model; all of them ask together."""
        meshes = tensor_meshes(model) if any(map(is_spread, model.parameters())) else []
        mine = {tuple(mesh.mesh.flatten().tolist()) for mesh in meshes}
        if len(mine) > 1 or any(mesh.ndim > 1 for mesh in meshes):
            shown = ", ".join(sorted({str(mesh) for mesh in meshes}))
            raise InputError(
                f"The parameters of the model are divided by tensor parallelism over {shown}. `measure` reads a model that is "
                'divided over one mesh of one dimension: pass `mesh["tp"]` to `parallelize_module`.'
            )
        told = control.meet(next(iter(mine), (control.rank,)))
        teams = tuple(dict.fromkeys(told))
        if sorted(rank for team in teams for rank in team) != list(range(control.world)):
            raise InputError(
                f"The ranks disagree on how the model is divided by tensor parallelism: they name the groups {list(teams)}. "
                "Every rank must be in one of them."
            )
        return Division(tuple(sorted(teams, key=min)), control.rank)

    @property
    def part(self) -> int:
        """Which part of the data is read here, of `parts`."""
        return next(index for index, team in enumerate(self.teams) if self.rank in team)

    @property
    def parts(self) -> int:
        """Into how many parts the data are divided."""
        return len(self.teams)

    @property
    def team(self) -> tuple[int, ...]:
        """The ranks that hold one model with this one."""
        return self.teams[self.part]

    @property
    def first(self) -> int:
        """The rank of the first team that holds the part of the model that this one holds of its own."""
        head = self.teams[0]
        return head[self.team.index(self.rank) % len(head)]

    def counts(self, number: int) -> bool:
        """Whether it is this rank's turn to add up a batch."""
        return self.team[number % len(self.team)] == self.rank

    def heads(self, heard: list[Any]) -> list[Any]:
        """What the first rank of every team said, of what all ranks said."""
        return [heard[team[0]] for team in self.teams]

    def refuse_other(self, marks: list[Any], what: str) -> None:
        """Raise where ranks of one team read other samples."""
        for team in self.teams:
            for first, second in pairwise(team):
                if marks[first] != marks[second]:
                    raise self.other(first, second, what)

    def other(self, first: int, second: int, what: str) -> InputError:
        """The error of two ranks of one team that read other samples."""
        cure = "All ranks of a tensor-parallel group pass the same data, here the whole."
        if self.parts > 1:
            sampler = f'DistributedSampler(data, num_replicas={self.parts}, rank=mesh["dp"].get_local_rank())'
            cure = f"All ranks of a tensor-parallel group pass the same part: `{sampler}`, say."
        return InputError(
            f"Ranks {first} and {second} hold one model together (tensor parallelism), and read different {what} data. {cure}"
        )

    def refuse_unlike(self, sites: tuple[str, ...], sums: list[Any], slack: float) -> None:
        """Raise where ranks of one team do not see the same features of the same samples."""
        for team in (each for each in self.teams if len(each) > 1):
            for index, site in enumerate(sites):
                heads, size = sums[team[0]][index], slack * sums[team[0]][index][2]
                if any(abs(a - b) > size for rank in team for a, b in zip(sums[rank][index], heads, strict=True)):
                    raise InputError(
                        f"Site `{site}` gives other features of the same samples on each of the ranks {list(team)}, which hold "
                        "one model together (tensor parallelism), and not by a layer that `parallelize_module` divided. Leave "
                        "it out, or let it give DTensors."
                    )


def tensor_meshes(model: nn.Module) -> list[DeviceMesh]:
    """The meshes over which parameters are divided while their layer runs: those of tensor parallelism, not of `fully_shard`.

    `fully_shard` over tensor parallelism makes parameters of several mesh dimensions; only a layer whose parameters are
    gathered tells which of them are its own. All ranks ask together.
    """
    gathered = {module: owner for module, owner in sharded_by(model).items() if _own(module)}
    found: dict[DeviceMesh, None] = {}
    for owner in dict.fromkeys(gathered.values()):
        owned = [module for module, other in gathered.items() if other is owner]
        before = [each.device_mesh for module in owned for each in _own(module)]
        owner.unshard()
        after = [each.device_mesh for module in owned for each in _own(module)]
        if after != before:  # they may have been gathered already
            owner.reshard()
        found |= dict.fromkeys(after)
    for module in model.modules():
        if module not in gathered:
            found |= {each.device_mesh: None for each in _own(module)}
    return list(found)


def _own(module: nn.Module) -> list[Any]:
    return [each for each in module.parameters(recurse=False) if is_spread(each)]
