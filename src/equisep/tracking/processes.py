"""A training in several processes: which of them read, on whose BatchNorm statistics, and that all stop where one does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import torch
from torch import nn

from equisep.errors import InputError
from equisep.measuring.distributed.control import Call, in_group
from equisep.measuring.distributed.ranks import Ranks, processes
from equisep.measuring.fingerprint import Fingerprint
from equisep.taps import inner, is_spread
from equisep.tracking.history import Header
from equisep.tracking.metric import distributed

Readers = Literal["first", "all"]
TRACKER = Call(
    "Tracker",
    "With `ranks='all'` all ranks make the tracker, and call the same methods of it as often.",
    "With `ranks='all'` all ranks track one model with the same options, and call the same methods of the tracker as often.",
)


def is_first_process() -> bool:
    """Whether this process writes what is read: of several the first."""
    return not distributed() or torch.distributed.get_rank() == 0


def read_by_all(ranks: Readers) -> bool:
    """Whether all processes read, each its part; one process alone is the first."""
    if ranks not in get_args(Readers):
        raise InputError(f"`ranks` says which processes of a training read: `first` or `all`; found {ranks!r}.")
    return ranks == "all" and in_group()


@contextmanager
def all_processes(model: nn.Module, *, about: str) -> Iterator[Ranks]:
    """All processes read as one, the network of the first of them; `about` says what, the same in all.

    Their weights are the same; what BatchNorm keeps is not: each process has seen other batches since the wrapper of the
    training (DDP) made them alike, and `fully_shard` never does. It is that of the first for the while, and then each has its
    own again. Of ranks that hold one model together, each has a counterpart among the first ones that do.
    """
    with processes(model, dealt=True, call=TRACKER, facts={"reading": about}) as ranks:
        buffers = [_local(each) for each in inner(model).buffers()]
        first = ranks.division.first
        told = ranks.gather([each.cpu() for each in buffers] if first == ranks.control.rank else None)[first]
        other = [pair for pair in zip(buffers, told, strict=True) if not torch.equal(pair[0].cpu(), pair[1])]
        own = [(buffer, buffer.clone()) for buffer, _ in other]
        try:
            _put(other)
            yield ranks
        finally:
            _put(own)


def _local(buffer: torch.Tensor) -> torch.Tensor:
    """What this process holds of a buffer, the very numbers."""
    with torch.no_grad():
        return buffer.to_local() if is_spread(buffer) else buffer  # type: ignore[attr-defined]


def _put(values: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    with torch.no_grad():
        for buffer, value in values:
            buffer.copy_(value)


def refuse_other_samples(told: list[Header] | list[Fingerprint]) -> None:
    """Raise where processes are to read other samples than the first, of what each told: its first ones, or of all."""
    for rank, other in enumerate(told):
        why = None if other == told[0] else "it begins with other samples"
        if isinstance(other, Header) and isinstance(told[0], Header):
            why = told[0].why_other(other)
        if why is not None:
            raise InputError(
                f"With `ranks='all'` all processes read one subset of the same data, and that of rank {rank} differs from "
                f"that of rank 0 ({why}). Pass data that can be indexed, the same in every process; `ranks='first'` needs them "
                "in one alone, where that can run the model."
            )


def first_process_decides(decision: bool) -> bool:
    """What the first process decided, in all of them: where one ends a training, the others must not wait for it."""
    if not in_group():
        return decision
    told = [decision]
    torch.distributed.broadcast_object_list(told, src=0)
    return told[0]
