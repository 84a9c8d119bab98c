"""Sites worked off side by side: one thread a site is quicker than many threads a product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from equisep.measuring.options import FOLDS
from equisep.measuring.reading import Subject

T = TypeVar("T")
SHARE = 4  # of the memory budget that may go into sites under work


def side_by_side(
    work: Callable[[int], T], subject: Subject, places: Sequence[int], done: Callable[[int], None]
) -> list[T]:
    """`work(index)` for every site, in order; several at once on a CPU with several threads; `done(how many)` after each."""
    workers = _workers(subject, len(places))
    if workers == 1:
        results = []
        for count, place in enumerate(places):
            results.append(work(place))
            done(count + 1)
        return results

    def alone(place: int) -> T:
        with torch.no_grad():  # a setting of the thread
            return work(place)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # what a new thread begins with
    try:
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(alone, place) for place in places]
            results = []
            try:
                for count, future in enumerate(futures):
                    results.append(future.result())
                    done(count + 1)
            finally:
                for future in futures:
                    future.cancel()
            return results
    finally:
        torch.set_num_threads(threads)


def _workers(subject: Subject, places: int) -> int:
    """As many as there are threads, and as the memory of the widest site's statistics allows."""
    if next((p.device.type for p in subject.model.parameters()), "cpu") != "cpu":
        return 1
    numbers = 8 * (FOLDS + 6) * subject.probe.classes + 4 * (FOLDS + 1) * (subject.probe.classes - 1)  # a feature
    room = subject.options.memory // SHARE // max(1, numbers * max(subject.probe.dims))
    return max(1, min(torch.get_num_threads(), places, room))
