"""Work on several threads of this process that share nothing: on a CPU, one part of an ensemble each.

Members are independent, so that threads which train some of them each need no barrier between operations. Torch's own
threads split every operation instead, wait for one another hundreds of times a step, and crawl on a busy machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import torch

POLL_SECONDS = 0.1

Result = TypeVar("Result")
Tick = Callable[[int], None]


class _StoppedError(Exception):
    """Raised inside a worker whose result nobody wants any more."""


def run_parts(parts: Sequence[Callable[[Tick], Result]], *, report: Callable[[Sequence[int]], None]) -> list[Result]:
    """Every part's result, in order. A part calls its tick with how far it is; `report` hears of all, on this thread.

    The first error stops all parts and is raised here, an interrupt too.
    """
    reached = [0] * len(parts)
    stop = threading.Event()

    def started(index: int) -> Result:
        torch.set_num_threads(1)

        def tick(done: int) -> None:
            if stop.is_set():
                raise _StoppedError
            reached[index] = done

        return parts[index](tick)

    with _threads_kept(), ThreadPoolExecutor(len(parts), thread_name_prefix="equisep") as pool:
        futures = [pool.submit(started, index) for index in range(len(parts))]
        try:
            pending = set(futures)
            while pending:
                done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                report(reached)
        except BaseException:
            stop.set()
            raise
    return [future.result() for future in futures]


@contextmanager
def _threads_kept() -> Iterator[None]:
    """Torch's own number of threads, given back."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
