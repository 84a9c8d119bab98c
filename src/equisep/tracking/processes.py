"""A training in several processes: which of them read, on whose BatchNorm statistics, and that all stop where one does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import torch
from torch import nn

from equisep.errors import EquisepError, InputError
from equisep.measuring.distributed.control import Control, in_group
from equisep.measuring.distributed.ranks import Ranks, processes
from equisep.taps import inner
from equisep.tracking.history import Entry, Header, History
from equisep.tracking.metric import distributed

Readers = Literal["first", "all"]


def is_first_process() -> bool:
    """Whether this process writes what is read: of several the first."""
    return not distributed() or torch.distributed.get_rank() == 0


def read_by_all(ranks: Readers) -> bool:
    """Whether all processes read, each its part; one process alone is the first."""
    if ranks not in get_args(Readers):
        raise InputError(f"`ranks` says which processes of a training read: `first` or `all`; found {ranks!r}.")
    return ranks == "all" and in_group()


@contextmanager
def all_processes(model: nn.Module) -> Iterator[Ranks]:
    """All processes read as one, the network of the first of them.

    Their weights are the same; what BatchNorm keeps is not: each process has seen other batches since the wrapper of the
    training (DDP) made them alike. It is that of the first for the while, and then each has its own again.
    """
    with processes(model, dealt=True) as ranks:
        buffers = list(inner(model).buffers())
        own = [each.clone() for each in buffers]
        told = ranks.control.meet([each.cpu() for each in buffers] if ranks.control.rank == 0 else None)[0]
        try:
            _put(buffers, told)
            yield ranks
        finally:
            _put(buffers, own)


def _put(buffers: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for buffer, value in zip(buffers, values, strict=True):
            buffer.copy_(value)


def agreed(header: Header, opened: History | None, error: EquisepError | None) -> tuple[Entry, ...]:
    """What the first process has read before, for all of them; raise where they are to read other samples or networks.

    `opened` is its history, or `error` says why there is none: then no process begins.
    """
    control = Control()
    try:
        if error is not None:
            control.fail(error)
            raise error
        known = control.meet((header, () if opened is None else opened.entries))
        for rank, (other, _) in enumerate(known):
            why = known[0][0].why_other(other)
            if why is not None:
                raise InputError(
                    f"With `ranks='all'` all processes read one subset of the same data, and that of rank {rank} differs from "
                    f"that of rank 0 ({why}). Pass data that can be indexed, the same in every process, or `ranks='first'`."
                )
        entries: tuple[Entry, ...] = known[0][1]
        return entries
    finally:
        control.close()


def first_process_decides(decision: bool) -> bool:
    """What the first process decided, in all of them: where one ends a training, the others must not wait for it."""
    if not in_group():
        return decision
    told = [decision]
    torch.distributed.broadcast_object_list(told, src=0)
    return told[0]
