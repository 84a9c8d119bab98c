"""The thread pool: results in order, settings of torch kept, errors as a loop would raise them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from equisep.workers import Stopped, parallel_map


@pytest.fixture(autouse=True)
def two_torch_threads() -> Iterator[None]:
    """Torch with two threads, which it has to have still when this is over, in new threads too."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
        with ThreadPoolExecutor(1) as fresh:
            assert fresh.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order_and_each_is_counted(threads: int) -> None:
    heard: list[int] = []

    def work(item: int) -> int:
        time.sleep(0.01 * (5 - item))
        return item * item

    assert parallel_map(work, range(5), threads=threads, done=heard.append) == [0, 1, 4, 9, 16]
    assert heard == [1, 2, 3, 4, 5]
    assert parallel_map(work, [], threads=threads) == []


@pytest.mark.parametrize("grad", [False, True])
def test_each_thread_has_one_of_torchs_and_the_callers_gradient_mode(grad: bool) -> None:
    both = threading.Barrier(2)

    def work(item: int) -> tuple[int, bool, str]:
        both.wait(10)  # both items are under way at once
        return torch.get_num_threads(), torch.is_grad_enabled(), threading.current_thread().name

    with torch.set_grad_enabled(grad):
        results = parallel_map(work, range(2), threads=2)
    assert [result[:2] for result in results] == [(1, grad)] * 2
    assert len({name for *_, name in results} - {threading.current_thread().name}) == 2


def test_one_thread_is_this_one_with_all_of_torchs_threads() -> None:
    here = threading.current_thread()
    assert parallel_map(lambda _: (torch.get_num_threads(), threading.current_thread()), [0], threads=4) == [(2, here)]


def test_the_earliest_error_is_raised_and_what_has_not_begun_is_dropped() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        time.sleep(0.1 if item == 0 else 0)
        if item < 2:
            raise ValueError(item)
        time.sleep(0.1)

    with pytest.raises(ValueError, match="0"):
        parallel_map(work, range(50), threads=2)
    assert len(begun) < 10


def test_long_work_is_told_to_stop_and_its_word_for_it_is_not_heard() -> None:
    stop = threading.Event()

    def work(item: int) -> None:
        if item:
            raise KeyError(item)
        while not stop.is_set():
            time.sleep(0.001)
        raise Stopped

    with pytest.raises(KeyError):
        parallel_map(work, range(2), threads=2, stop=stop)


@pytest.mark.parametrize("where", ["done", "meanwhile"])
def test_an_interrupt_stops_all(where: str) -> None:
    stop = threading.Event()

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    def work(item: int) -> None:
        while item and not stop.is_set():
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        parallel_map(work, range(3), threads=2, stop=stop, **{where: interrupt})
    assert stop.is_set()


def test_somebody_is_told_meanwhile() -> None:
    told = threading.Event()
    assert parallel_map(lambda _: told.wait(10), range(2), threads=2, meanwhile=told.set) == [True, True]
