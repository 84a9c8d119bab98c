"""Control: a gloo group beside the user's own, where processes meet, hear of each other's errors, and notice who is gone."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch import Tensor

from equisep.errors import EquisepError, InputError, NumericalError
from equisep.files import encode

BEAT = 2.0  # seconds between two signs of life
DEAD = 40.0  # seconds without one, after which a process counts as gone
BARRIER = timedelta(seconds=15)  # once all have arrived, they pass it at once
LONGEST = timedelta(minutes=30)  # of one exchange of numbers
BEGIN = 300.0  # seconds in which all processes must have called
SHORT = 60  # characters of what ranks disagree on that are shown
_calls = [0]  # all processes measure equally often, so that each call has a name of its own


@dataclass(frozen=True, slots=True)
class Call:
    """What all processes of a group call together, as users write it; `alike` says how, to those who did not."""

    asked: str
    alone: str
    alike: str


MEASURE = Call(
    "measure",
    "In a process group all ranks call it, each with its part of the data; `group=False` measures in one process alone.",
    "All ranks measure one model with the same options.",
)


class Control:
    """The processes of the default group, met one step after the other.

    A slow process is waited for as long as it lives: each gives a sign of life every two seconds, whatever it computes. One that
    gives none for 40 seconds, or whose connection breaks, ends the others.
    """

    def __init__(self, call: Call = MEASURE) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.call = call
        self._store, self._beats = _named_store(call), _named_store(call, apart=True)
        self._ended = threading.Event()
        self._steps = itertools.count()
        self._heard: EquisepError | None = None
        with self._lost():
            self._begin()
            self.group = dist.new_group(backend="gloo", timeout=LONGEST)
        _calls[0] += 1
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        """Wait until all processes have called: one that measures alone would wait for ever."""
        self._store.add(f"begin/{self.rank}", 1)
        since, waited = time.monotonic(), 0.001
        while missing := [rank for rank in range(self.world) if not self._store.add(f"begin/{rank}", 0)]:
            for rank in missing:
                if self._store.add(f"declined/{rank}", 0):
                    _calls[0] += 1
                    raise InputError(
                        f"Rank {rank} stopped, and the others with it: {self._store.get(f'why/{rank}').decode()}"
                    )
            if time.monotonic() - since > BEGIN:
                self._store.delete_key(f"begin/{self.rank}")
                raise InputError(
                    f"`{self.call.asked}` was called on {self.world - len(missing)} of {self.world} ranks within {BEGIN:.0f} "
                    f"seconds, not on rank {missing[0]}. {self.call.alone}"
                )
            time.sleep(waited)
            waited = min(2 * waited, 0.5)

    def _beat(self) -> None:
        while not self._ended.is_set():
            try:
                self._beats.add(f"beat/{self.rank}", 1)
            except RuntimeError:  # who holds the store is gone: whoever meets next will say so
                return
            self._ended.wait(BEAT)

    def close(self) -> None:
        """No more signs of life; the group is given back."""
        self._ended.set()
        self._thread.join()
        with suppress(Exception):  # on the way out, what goes wrong is no news
            dist.destroy_process_group(self.group)

    def meet(self, said: Any = None, *, error: str | None = None) -> list[Any]:
        """Wait for all processes, and hear what each said; where one has failed, all others end with its sentence."""
        with self._lost():
            self._arrive(next(self._steps))
            dist.monitored_barrier(self.group, timeout=BARRIER, wait_all_ranks=True)
            heard: list[Any] = [None] * self.world
            dist.all_gather_object(heard, (said, error), group=self.group)
        failed = [(rank, text) for rank, (_, text) in enumerate(heard) if text is not None]
        if failed and error is None:
            rank, text = failed[0]
            self._heard = InputError(f"Rank {rank} stopped, and the others with it: {text}")
            raise self._heard
        return [each for each, _ in heard]

    def same(self, facts: Mapping[str, Any]) -> None:
        """Raise where processes differ in what must be one, by name."""
        heard = self.meet({name: json.dumps(encode(fact), sort_keys=True) for name, fact in facts.items()})
        for rank, other in enumerate(heard):
            for name, fact in heard[0].items():
                if other[name] != fact:
                    shown = "" if len(fact) > SHORT or len(other[name]) > SHORT else f": {fact} and {other[name]}"
                    raise InputError(f"Ranks 0 and {rank} disagree on the {name}{shown}. {self.call.alike}")

    def fail(self, error: BaseException) -> None:
        """Tell the others why this process stops, unless it is because of one of them."""
        if error is not self._heard:
            text = str(error) if isinstance(error, EquisepError) else f"{type(error).__name__}: {error}"
            with suppress(Exception):  # on the way out, what goes wrong is no news
                self.meet(error=text)

    def add(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in the place of the tensor's own numbers where it is on the CPU."""
        there = tensor.cpu().contiguous()
        with self._lost():
            dist.all_reduce(there, group=self.group)
        return there.to(tensor.device)

    def least(self, tensor: Tensor) -> Tensor:
        """The least over all processes, number by number."""
        there = tensor.cpu().contiguous()
        with self._lost():
            dist.all_reduce(there, op=dist.ReduceOp.MIN, group=self.group)
        return there.to(tensor.device)

    def _arrive(self, step: int) -> None:
        """Wait until all have come to this step; who gives no sign of life is gone."""
        name, waited = f"step/{step}", 0.001
        self._store.add(name, 1)
        self._store.add(f"{name}/{self.rank}", 1)
        lives = {rank: (0, time.monotonic()) for rank in range(self.world)}
        while self._store.add(name, 0) < self.world:
            time.sleep(waited)
            waited = min(2 * waited, 0.1)
            if waited < 0.1:
                continue
            for rank, (beats, since) in lives.items():
                now = self._store.add(f"beat/{rank}", 0)
                if now != beats:
                    lives[rank] = now, time.monotonic()
                elif time.monotonic() - since > DEAD and not self._store.add(f"{name}/{rank}", 0):
                    raise self._gone(f"rank {rank} has given no sign of life for {DEAD:.0f} seconds")

    @contextmanager
    def _lost(self) -> Iterator[None]:
        """Turns what a broken connection says into one sentence."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().split("\n")[0][:200]
            raise self._gone(f"the connection to another rank broke ({reason})") from error

    def _gone(self, why: str) -> EquisepError:
        self._heard = NumericalError(
            f"Rank {self.rank} of {self.world} stops, since {why}. Look at what the other ranks said first, and start all again."
        )
        return self._heard


def _named_store(call: Call, *, apart: bool = False) -> Any:
    """What the processes of this call leave each other word in; `apart` by a connection of its own."""
    store = dist.distributed_c10d._get_default_store()
    named: Any = dist.PrefixStore  # type: ignore[attr-defined]
    return named(f"equisep/{call.asked}/{_calls[0]}", store.clone() if apart else store)  # type: ignore[attr-defined]


@contextmanager
def declining(call: Call = MEASURE, *, group: bool = True) -> Iterator[None]:
    """Tell processes that wait for this one to begin why it will not, where its own arguments are refused."""
    try:
        yield
    except EquisepError as error:
        if group and in_group():
            with suppress(Exception):  # on the way out, what goes wrong is no news
                store, rank = _named_store(call), dist.get_rank()
                store.set(f"why/{rank}", str(error))
                store.add(f"declined/{rank}", 1)
            _calls[0] += 1
        raise


def in_group() -> bool:
    """Whether this process is one of several that torch knows of."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
