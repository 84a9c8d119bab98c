"""A command under torchrun: the process group, which device each rank has, and who speaks."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from equisep.errors import EquisepError, InputError, NumericalError

if TYPE_CHECKING:
    from torch import nn

    from equisep.results import Profile

P = ParamSpec("P")
MEETING = timedelta(minutes=5)  # in which all ranks must have begun


@dataclass(frozen=True, slots=True)
class Launched:
    """One process among those that torchrun started; alone where it started none."""

    rank: int = 0
    world: int = 1
    local: int = 0

    @staticmethod
    def here(**flags: object) -> Launched:
        """As the environment says; flags that were given and have no use for many processes are refused."""
        found = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]
        if not all(word.isdigit() for word in found) or "MASTER_ADDR" not in os.environ:
            return Launched()
        launched, asked = (
            Launched(*map(int, found)),
            [f"--{name}" for name, value in flags.items() if value is not None],
        )
        if launched.world > 1 and asked:
            raise InputError(
                f"`{asked[0]}` is read by one process, and torchrun started {launched.world}. Run `equisep` without torchrun."
            )
        return launched

    @property
    def speaks(self) -> bool:
        """Whether this process prints and writes: the first does for all."""
        return self.rank == 0

    def device(self, asked: str | None) -> str | None:
        """The device of this rank, once it is known to be there: of several GPUs its own."""
        from equisep.devices import usable_device

        own = f"cuda:{self.local}" if asked == "cuda" and self.world > 1 else asked
        if own is not None:
            usable_device(own, asked="--device")
        return own


def by_ranks(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose first rank speaks for all; the others are heard only where they lost it."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        launched = Launched.here()
        try:
            return command(*args, **kwargs)
        except EquisepError as error:
            if launched.speaks or isinstance(error, NumericalError):
                raise
            raise typer.Exit(error.exit_code) from error

    return run


def profile_by(launched: Launched, model: nn.Module, train: Any, test: Any, **options: Any) -> Profile:
    """The profile of a model: in this process, or by all that torchrun started, each of which is given the whole data.

    Loaders of the user's code that divide the data among ranks themselves are left to it.
    """
    from equisep.measuring.measure import answered, request_for

    request = request_for(model, train, test, **options)
    if launched.world == 1:
        return answered(request)
    with process_group(launched):
        divided = any(hasattr(getattr(data, "sampler", None), "num_replicas") for data in (train, test))
        return answered(request, dealt=not divided)


@contextmanager
def process_group(launched: Launched) -> Iterator[None]:
    """The group of all processes that torchrun started, unless the user's code has made one; none of a process alone."""
    import torch.distributed as dist

    made = launched.world > 1 and not dist.is_initialized()
    if made:
        dist.init_process_group("gloo", timeout=MEETING)
    try:
        yield
    finally:
        if made:
            dist.destroy_process_group()
