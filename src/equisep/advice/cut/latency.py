"""Measured latency: forward passes of several models timed in turns, so that a busy moment hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import torch

from equisep.progress import Progress, silent

WARM_UPS = 1
LEAST_ROUNDS, MOST_ROUNDS = 5, 51
SECONDS = 10.0  # after which no further round begins, once there are enough


def timed_in_turns(
    runs: Mapping[str, Callable[[], object]], device: torch.device, *, progress: Progress = silent
) -> dict[str, list[float]]:
    """Seconds of each call, one a round; every round calls all of them, beginning with another each time."""
    names = list(runs)
    for _ in range(WARM_UPS):
        for name in names:
            _seconds(runs[name], device)
    taken: dict[str, list[float]] = {name: [] for name in names}
    began = time.perf_counter()
    for turn in range(MOST_ROUNDS):
        if turn >= LEAST_ROUNDS and time.perf_counter() - began > SECONDS:
            break
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            taken[name].append(_seconds(runs[name], device))
        progress("timing", turn + 1, MOST_ROUNDS)
    return taken


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    _wait(device)
    began = time.perf_counter()
    run()
    _wait(device)
    return time.perf_counter() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def median_ratio(times: Sequence[float], beside: Sequence[float]) -> float:
    """The median of the ratios, round by round: both of a round ran at the same moment."""
    return median(one / two for one, two in zip(times, beside, strict=True))
