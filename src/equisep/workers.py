"""Work on several threads of this process that share nothing: one site or one part of an ensemble each.

Torch's own threads split every operation instead, wait for one another hundreds of times a step, and crawl on a busy
machine: one thread for each piece of work is quicker than many threads for each product.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import torch

POLL_SECONDS = 0.1

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):  # noqa: N818  (nobody outside hears of it)
    """Raised by work that has seen its `stop` event set: nobody wants its result any more."""


def parallel_map(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    threads: int,
    done: Callable[[int], None] | None = None,
    meanwhile: Callable[[], None] | None = None,
    stop: threading.Event | None = None,
) -> list[Result]:
    """`work(item)` for every item, results in order; at most `threads` at once, each with one thread of torch's.

    done        called with the number of finished items after each, on the calling thread.
    meanwhile   called there too, about ten times a second.
    stop        set as soon as the results are no longer wanted; long work looks at it now and then and raises `Stopped`.

    The first error, or an interrupt, drops what has not begun, waits for what has, and is raised here; of several the
    one of the earliest item, as a loop would. One thread, or one item, is a loop on the calling thread.
    """
    done, stop = done or (lambda _: None), stop or threading.Event()
    if min(threads, len(items)) <= 1:
        results = []
        for count, item in enumerate(items, start=1):
            results.append(work(item))
            done(count)
        return results
    grad = torch.is_grad_enabled()

    def alone(item: Item) -> Result:
        with torch.set_grad_enabled(grad):  # a setting of the thread
            return work(item)

    with (
        torch_threads(torch.get_num_threads()),
        ThreadPoolExecutor(threads, "equisep", torch.set_num_threads, (1,)) as pool,
    ):
        futures = [pool.submit(alone, item) for item in items]
        try:
            _watch(futures, done, meanwhile or (lambda: None))
        finally:
            if not all(future.done() for future in futures):
                stop.set()
            for future in futures:
                future.cancel()
    for future in futures:  # begun in this order, so that whatever was dropped comes after the first error
        if not isinstance(future.exception(), Stopped):
            future.result()
    return [future.result() for future in futures]


def _watch(futures: Sequence[Future[Result]], done: Callable[[int], None], meanwhile: Callable[[], None]) -> None:
    """Wait until all have ended, or one with an error."""
    pending, count = set(futures), 0
    while pending:
        finished, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        if any(future.exception() for future in finished):
            return
        for _ in finished:
            count += 1
            done(count)
        meanwhile()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """So many threads of torch's for the calling thread; what there were before are given back."""
    before = torch.get_num_threads()
    try:
        if count != before:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)
