"""The processor's part of `limit.py`: the present engine with and without the passes that keep buffers, and its rivals."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from _limit import (
    EPOCHS,
    SAMPLES,
    ceilings,
    clocked,
    clouds,
    counts,
    floor,
    least,
    loop,
    members_of,
    on_threads,
    vmapped,
)
from equisep.training import Shape, Stage, Watch, train_ensemble
from equisep.training.ensemble import stepper as stepping
from equisep.training.ensemble.samples import draw_samples
from equisep.training.ensemble.stack import Stack

CPU = torch.device("cpu")
MEMBERS, DEPTHS = (1, 15, 57), (8, 4, 20)
UNREAD = Watch(sites=False)
REPEATS, ENOUGH = 3, 1.0  # seconds that the epochs of one timing take at least
PARTS = {  # operators of torch by what they are for; their own time, without that of others they call
    "products": ("aten::bmm", "aten::baddbmm"),
    "BatchNorm": ("native_group_norm", "native_batch_norm", "_foreach_lerp"),
    "ReLU": ("clamp_min", "threshold_backward"),
    "optimizer": ("_fused_adam",),
    "copies": ("aten::copy_", "index_select", "aten::cat", "index_copy", "aten::gather", "aten::clone"),
}


def cpu_ceilings() -> dict[str, Any]:
    """Rates of one core and of all: a large product, products of the size that an 8-layer network has, a large copy."""
    found: dict[str, Any] = {}
    for threads in sorted({1, torch.get_num_threads()}):
        with on_threads(threads):
            weights, inputs = torch.randn(30, 100, 100), torch.randn(30, 100, 128)
            out = torch.empty(30, 100, 128)
            small = least(lambda: [torch.bmm(weights, inputs, out=out) for _ in range(50)], CPU)  # noqa: B023 (run at once)
            found[f"{threads}_threads"] = {**ceilings(CPU), "small_products": 50 * 30 * 2 * 100 * 100 * 128 / small}
    return found


@contextmanager
def kept_buffers(*, kept: bool) -> Iterator[None]:
    """The passes that keep their buffers, `cpu_passes`, or those for any device."""
    before = stepping.in_place
    stepping.in_place = lambda device: kept
    try:
        yield
    finally:
        stepping.in_place = before


def engine_epoch(shape: Shape, count: int, epochs: int) -> Callable[[], float]:
    """Seconds an epoch of `train_ensemble`: what `epochs` more of them take, so that set-up has no part."""
    x, y = clouds(shape)

    def run() -> float:
        seconds = [
            clocked(lambda: train_ensemble(members_of(shape, count, epochs=many), x, y, watch=UNREAD), CPU)  # noqa: B023
            for many in (1, 1 + epochs)
        ]
        return (seconds[1] - seconds[0]) / epochs

    return run


def cell(depth: int, count: int, rates: dict[str, float]) -> dict[str, Any]:
    """Trainings a second of one depth and number of members; contestants take turns, and the median counts."""
    shape = Shape.deep(depth)
    counted = counts(shape)
    epochs = max(2, math.ceil(ENOUGH / (2 * count * counted["operations"] / rates["operations"])))
    engine = engine_epoch(shape, count, epochs)
    vmap = vmapped(shape, count, CPU)

    def passes() -> float:
        with kept_buffers(kept=False):
            return engine()

    def of_torch(threads: int) -> float:
        with on_threads(threads):
            return clocked(vmap, CPU)

    contestants = {"engine": engine, "engine_without_cpu_passes": passes}
    contestants |= {f"vmap_{threads}_threads": partial(of_torch, threads) for threads in {1, torch.get_num_threads()}}
    vmap()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(REPEATS):
        for name, run in contestants.items():
            times[name].append(run())
    seconds = {name: statistics.median(values) for name, values in times.items()}
    rate = {name: count / (EPOCHS * value) for name, value in seconds.items()}
    by = floor(shape, rates)
    small = EPOCHS * counted["operations"] / rates["small_products"]
    return {
        "depth": depth,
        "members": count,
        "epochs_timed": epochs,
        **{f"{name}_trainings_per_second": value for name, value in rate.items()},
        "seconds_an_epoch": times,
        "cpu_passes_gain": rate["engine"] / rate["engine_without_cpu_passes"],
        "floor_seconds_of_one_training": by,
        "engine_share_of_floor": rate["engine"] * max(by.values()),
        "engine_share_of_products_of_this_size": rate["engine"] * small,
    }


def alone(depth: int, *, compiled: bool) -> dict[str, Any]:
    """A loop over one network, by one thread and by all of torch's; networks one after the other, so of any number of them.

    A compiled one by one thread alone: it would be compiled again for two, and compiling is what takes time here.
    """
    result: dict[str, Any] = {"depth": depth}
    try:
        for threads in [1] if compiled else sorted({1, torch.get_num_threads()}):
            with on_threads(threads):
                torch.compiler.reset()
                epoch = loop(Shape.deep(depth), CPU, compiled=compiled)
                warm = clocked(epoch, CPU)
                runs = [clocked(lambda: [epoch() for _ in range(4)], CPU) / 4 for _ in range(REPEATS)]  # noqa: B023
                result[f"trainings_per_second_{threads}_threads"] = 1 / (EPOCHS * statistics.median(runs))
                result[f"first_epoch_seconds_{threads}_threads"] = warm
    except Exception as error:  # no compiler here: then it is no contestant
        print(f"equisep: depth {depth}: {type(error).__name__}: {error}", file=sys.stderr)
        result["why_not"] = type(error).__name__
    return result


@torch.no_grad()
def where_time_goes(depth: int, count: int) -> dict[str, Any]:
    """Shares of an epoch's time by what operators are for, on one thread; the rest is the interpreter and small operators."""
    from torch.profiler import ProfilerActivity, profile

    shape = Shape.deep(depth)
    members = members_of(shape, count)
    samples = draw_samples(members, *clouds(shape), per_class=None, sizes=None).on(CPU, torch.float32)
    states = {seed: shape.build(seed).state_dict() for seed in range(10)}
    stack = Stack.of([states[one.recipe.seed] for one in members], shape, device=CPU, dtype=torch.float32)
    with on_threads(1):
        epochs = stepping.Stepper(stack, samples, members, Stage(epochs=12)).epochs()
        for _ in range(2):
            next(epochs)
        plain = min(clocked(lambda: next(epochs), CPU) for _ in range(4))
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            watched = clocked(lambda: next(epochs), CPU)
    shares = dict.fromkeys([*PARTS, "other operators"], 0.0)
    for event in seen.key_averages():
        named = next(
            (part for part, names in PARTS.items() if any(one in event.key for one in names)), "other operators"
        )
        shares[named] += event.self_cpu_time_total / 1e6
    return {
        "depth": depth,
        "members": count,
        "seconds_an_epoch": plain,
        "seconds_an_epoch_while_watched": watched,
        "operations_per_second": count * counts(shape)["operations"] / plain,
        "shares": {name: value / watched for name, value in shares.items()},
        "rest": 1 - sum(shares.values()) / watched,
        "samples": SAMPLES,
    }
