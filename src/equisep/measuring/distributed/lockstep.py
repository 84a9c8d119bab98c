"""Lockstep: a model that is spread over processes runs a batch in all of them or in none."""

from __future__ import annotations

import zlib
from itertools import count

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.measuring.distributed.control import Control
from equisep.measuring.distributed.division import Division
from equisep.measuring.distributed.together import Batches, Check
from equisep.measuring.fingerprint import Fingerprint

STOPPED, RUNNING, IDLE = -2, -1, 0  # what a process does next
NOTHING = 2**40  # more than any mark of a batch


def batches_in_step(feed: Feed, check: Check, spare: Inputs, *, control: Control, division: Division) -> Batches:
    """As many batches as the longest part of the data has; who has fewer runs `spare` ones, which do not count.

    Ranks that hold one model together (tensor parallelism) all run each batch of their part, and it counts in one of them.
    """
    own = iter(feed)
    for number in count():
        try:
            batch = next(own, None)
            if batch is not None:
                check(number, batch[1])
        except Exception:
            _step(STOPPED, None, feed.what, control, division)  # the others come to hear why
            raise
        if not _step(IDLE if batch is None else RUNNING, batch, feed.what, control, division):
            return
        try:
            if batch is None:
                yield spare, torch.zeros(0, dtype=torch.int64), False
            else:
                yield *batch, division.counts(number)
        except GeneratorExit:  # something was wrong with what the model gave
            _step(STOPPED, None, feed.what, control, division)
            raise


def _step(state: int, batch: tuple[Inputs, Tensor] | None, what: str, control: Control, division: Division) -> bool:
    """Whether any process has a batch; raise where one has stopped, or where a team is about to run two of them as one."""
    told = torch.full((1 + 2 * division.parts,), NOTHING)
    told[0] = state
    if len(division.team) > 1:
        seen = None if batch is None else Fingerprint().after(batch[0], batch[1].cpu())
        mark = -1 if seen is None else zlib.crc32(repr(seen).encode())
        told[1 + 2 * division.part : 3 + 2 * division.part] = torch.tensor([mark, -mark])  # the least and the largest
    heard = control.least(told)
    if heard[0] == STOPPED:
        if state != STOPPED:
            control.meet()  # which raises what the other has to say
        return False
    for team, least, most in zip(division.teams, heard[1::2].tolist(), heard[2::2].tolist(), strict=True):
        if len(team) > 1 and least != -most:
            raise division.other(team[0], team[-1], what)
    return int(heard[0]) == RUNNING
