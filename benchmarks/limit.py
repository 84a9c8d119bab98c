"""How near to what the device can do are trainings of small networks, and to what a user would write instead?

Trainings a second (600 epochs of 1,000 samples in batches of 128, Adam) against the number of members, depth and width, all in
one run. On a GPU: `kernel` (equisep's CUDA kernel, in float32 and TF32, by the build that is taken; with `--every-build` all
builds of depth 8, and more of the next two), `graphs` (captured passes, at depth 8 also in TF32), the hardware counters of
the kernel, and the grid of Fig. 1 from process start. On a processor,
without a GPU or with `--cpu`: `engine` (`train_ensemble`), and the same without the passes that keep their buffers. Beside them
what a user would write: `plain`, a loop over one network; `compiled`, the same with the network compiled; `vmap`,
`torch.func.vmap` over stacked parameters. Each is timed over whole epochs after a warm-up, without set-up, so that a training is
600 such epochs.

The floor is counted, not measured: operations of the products over the device's float32 rate, and bytes that weights, moments
and linear outputs must move over its bandwidth where they do not stay in a cache; the larger counts. Both ceilings are
measured first: a large product and a large copy.

The record is written after every measurement (`--save`, or `--into FOLDER`), and no new one begins after `--minutes`: a run that
is cut off loses only what it was at. On a GPU one that takes longer than 75 seconds is given up.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

import _limit_cpu as cpu
from _limit import EPOCHS, ceilings, counts, floor, least, loop, vmapped
from _record import RESULTS, save
from equisep.training import Shape

LONGEST = 75.0  # seconds of one measurement on a GPU
MEMBERS = (264, 132, 57, 19, 1, 1056)
SHAPES = (Shape.deep(8), Shape.deep(20), Shape.deep(4), Shape.deep(8, width=50), Shape.deep(8, width=128))
# after the first, of most members of depth 8: every other shape, full and nearly empty, and fewer members and more
ROWS = [(shape, count) for count in (264, 19) for shape in SHAPES[1:]] + [(SHAPES[0], count) for count in MEMBERS[1:]]


@contextmanager
def given_up_after(seconds: float | None) -> Iterator[None]:
    """`TimeoutError` after so long; a process that is waited for is ended by whoever waits."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds or 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Limit:
    """The record of one run, kept on disk as it grows; `longest` are the seconds that one measurement may take."""

    def __init__(self, folder: Path | None, *, device: str, minutes: float, longest: float | None = None) -> None:
        self.folder, self.device, self.longest = folder, device, longest
        self.until = time.monotonic() + 60 * minutes
        self.record: dict[str, Any] = {}

    @property
    def left(self) -> float:
        """Seconds in which measurements may begin."""
        return self.until - time.monotonic()

    def take(
        self, what: str, measure: Callable[[], Any], *, into: dict[str, Any] | None = None, flat: bool = False
    ) -> Any:
        """Measure, note down under a name (`flat`: all the names it has), and write everything.

        None where time is up or it failed, which is noted too.
        """
        notes = self.record if into is None else into
        begun, value = time.monotonic(), None
        if self.left <= 0:
            self.record.setdefault("not_reached", []).append(what)
        else:
            try:
                with given_up_after(self.longest):
                    value = measure()
                notes.update(value if flat else {what: value})
            except Exception as error:  # no compiler, no memory: then it is no contestant, and the others go on
                self.record.setdefault("failed", {})[what] = f"{type(error).__name__}: {error}"[:500]
        print(f"equisep: {what} ({time.monotonic() - begun:.1f} s)", file=sys.stderr)
        self.keep()
        return value

    def keep(self) -> None:
        """Write everything."""
        if self.folder is not None:
            save("limit", self.record, device=self.device, folder=self.folder)

    def row(self, key: str, **names: Any) -> dict[str, Any]:
        """A new row of a table, to be filled."""
        row = dict(names)
        self.record.setdefault(key, []).append(row)
        return row


def trainings(count: int, seconds: Callable[[], float]) -> float:
    """Trainings a second, where so many members take so many seconds an epoch."""
    return count / (EPOCHS * seconds())


def on_cpu(limit: Limit) -> None:
    """The processor's tables, the most telling first."""
    rates = limit.take("ceilings_per_second", cpu.cpu_ceilings)
    best = rates[f"{torch.get_num_threads()}_threads"]
    limit.record["counted_per_epoch"] = {f"depth {depth}": counts(Shape.deep(depth)) for depth in cpu.DEPTHS}
    plain, compiled = limit.record.setdefault("plain", {}), limit.record.setdefault("compiled", {})
    for depth in cpu.DEPTHS:
        for count in cpu.MEMBERS:
            row = limit.row("rows", depth=depth, members=count)
            limit.take(f"depth {depth}, {count} members", partial(cpu.cell, depth, count, best), into=row, flat=True)
        limit.take(f"depth {depth}", partial(cpu.alone, depth, compiled=False), into=plain)
    parts = limit.record.setdefault("where_time_goes", {})
    for count in cpu.MEMBERS:
        limit.take(f"{count} members of depth 8", partial(cpu.where_time_goes, 8, count), into=parts)
    for depth in cpu.DEPTHS:
        limit.take(f"depth {depth}", partial(cpu.alone, depth, compiled=True), into=compiled)


def measured_ceilings(limit: Limit, device: torch.device) -> dict[str, float] | None:
    """What the device reaches in float32, beside TF32 and the floors that follow; None where there was no time."""
    rates: dict[str, float] | None = limit.take("ceilings_per_second", partial(ceilings, device))
    limit.take("ceilings_per_second_tf32", partial(ceilings, device, tf32=True))
    limit.record["counted_per_epoch"] = {str(shape): counts(shape) for shape in SHAPES}
    if rates is not None:
        limit.record["floor_seconds_of_one_training"] = {str(shape): floor(shape, rates) for shape in SHAPES}
    return rates


def on_gpu(limit: Limit, *, every_build: bool) -> None:
    """The GPU's tables: what is asked first is measured first, what may take long comes last."""
    import _limit_gpu as gpu
    from ensemble import from_process_start
    from equisep.training.ensemble.kernel.stage import build_for

    device, first = gpu.DEVICE, SHAPES[0]
    for seeds in (1, 10):
        limit.take(f"fig1_grid_{seeds}_seeds", partial(from_process_start, seeds))
    rates = measured_ceilings(limit, device)

    def kernel(shape: Shape, count: int) -> dict[str, Any]:
        row = limit.row("rows", depth=shape.depth, width=shape.widths[0], members=count, builds={})
        for tf32, ending in ((False, ""), (True, "_tf32")):
            taken = build_for(shape, members=count, device=device, tf32=tf32)
            row[f"build{ending}"] = gpu.name_of(taken)
            # every new build takes seconds of the run; the one that is taken is measured first
            others = gpu.builds_of(shape, count, tf32=tf32) if every_build and shape == first else []
            for build in dict.fromkeys([taken, *others]):
                seconds = partial(gpu.by_kernel, shape, count, build)
                limit.take(gpu.name_of(build), partial(trainings, count, seconds), into=row["builds"])
            chosen = row["builds"].get(row[f"build{ending}"])
            if chosen is not None:
                row[f"kernel{ending}_trainings_per_second"] = chosen
                row[f"tera_operations_per_second{ending}"] = chosen * EPOCHS * counts(shape)["operations"] / 1e12
                if shape == first:
                    name = f"seconds_of_100000_trainings_of_depth_8{ending}"
                    limit.record[name] = min(1e5 / chosen, limit.record.get(name, float("inf")))
        if rates is not None and "kernel_trainings_per_second" in row:
            row["kernel_share_of_floor"] = row["kernel_trainings_per_second"] * max(floor(shape, rates).values())
        return row

    def graphs(shape: Shape, count: int, row: dict[str, Any]) -> None:
        both = (("graphs", False), ("graphs_tf32", True))
        for name, tf32 in both if every_build or shape == first else both[:1]:
            seconds = partial(gpu.by_graphs, shape, count, tf32=tf32)
            limit.take(f"{name}_trainings_per_second", partial(trainings, count, seconds), into=row)

    def counted(count: int) -> None:
        known = limit.record.setdefault("counters", {})
        for tf32 in (False, True):
            build = build_for(first, members=count, device=device, tf32=tf32)
            what = f"{count} members of depth 8, {gpu.name_of(build)}"
            limit.take(what, partial(gpu.counters, first, count, build, timeout=60), into=known)

    users = limit.record.setdefault("users", {"depth": first.depth, "width": first.widths[0]})

    def user(name: str, count: int, make: Callable[[], Callable[[], None]]) -> None:
        limit.take(name, partial(trainings, count, lambda: least(make(), device)), into=users)

    row = kernel(first, MEMBERS[0])
    counted(MEMBERS[0])
    graphs(first, MEMBERS[0], row)
    user("plain_trainings_per_second", 1, partial(loop, first, device, compiled=False))
    user("compiled_trainings_per_second", 1, partial(loop, first, device, compiled=True))
    for count in (57, 264):
        user(f"vmap_{count}_trainings_per_second", count, partial(vmapped, first, count, device))
    for shape, count in ROWS:
        graphs(shape, count, kernel(shape, count))
    limit.take("seconds_of_drawing_264_orders", partial(gpu.drawing_orders, 264))
    if every_build:
        counted(19)
    limit.keep()


def main() -> None:
    """The GPU's record where there is one, the processor's otherwise or with `--cpu`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    parser.add_argument("--into", type=Path, help="keep the result in this folder")
    parser.add_argument("--cpu", action="store_true", help="measure the processor, even where there is a GPU")
    parser.add_argument(
        "--every-build", action="store_true", help="of depth 8 all builds of the kernel, not the one taken"
    )
    parser.add_argument("--minutes", type=float, default=8, help="begin no measurement later than this")
    asked = parser.parse_args()
    cuda = torch.cuda.is_available() and not asked.cpu
    device = torch.cuda.get_device_name() if cuda else "cpu"
    folder = asked.into or (RESULTS if asked.save else None)
    limit = Limit(folder, device=device, minutes=asked.minutes, longest=LONGEST if cuda else None)
    if cuda:
        on_gpu(limit, every_build=asked.every_build)
    else:
        on_cpu(limit)
    limit.keep()
    print(json.dumps(limit.record, indent=None if asked.json else 1, ensure_ascii=False))


if __name__ == "__main__":
    main()
