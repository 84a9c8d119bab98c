"""From how many operations a step do torch's threads pay in `equisep.train`?

Milliseconds of one step, as seconds of all processors together and by the clock, with one and two threads in turns, for
8-layer networks of growing width in batches of 128; the load of the machine stands beside them, since threads that wait for
one another suffer from it most. `equisep.training.threads` takes its limit from here.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

import torch

from _record import finish
from equisep.training import Recipe, Shape, threads, train

WIDTHS = (30, 100, 200, 400, 800)
DEPTH, BATCH, REPEATS = 8, 128, 5


def one_step(width: int, count: int, *, steps: int) -> tuple[float, float]:
    """Processor and clock milliseconds of one step on so many threads."""
    generator = torch.Generator("cpu").manual_seed(0)
    x, y = torch.randn(steps * BATCH, width, generator=generator), torch.arange(steps * BATCH) % 10
    model = Shape.deep(DEPTH, width=width, inputs=width).build(0)
    torch.set_num_threads(count)
    processor, clock = time.process_time(), time.perf_counter()
    train(model, x, y, recipe=Recipe(epochs=1, batch_size=BATCH))
    return 1e3 * (time.process_time() - processor) / steps, 1e3 * (time.perf_counter() - clock) / steps


def measured(width: int) -> dict[str, Any]:
    """One width: medians over turns."""
    steps = max(2, 800 // width)
    turns = [{count: one_step(width, count, steps=steps) for count in (1, 2)} for _ in range(REPEATS)]
    medians = {
        f"{name}_{count}_threads": statistics.median(turn[count][at] for turn in turns)
        for at, name in enumerate(("processor_ms", "clock_ms"))
        for count in (1, 2)
    }
    weights = sum(a * b for a, b in Shape.deep(DEPTH, width=width, inputs=width).layers)
    return {"width": width, "operations": 6 * weights * BATCH, **medians}


def main() -> None:
    """All widths, without the rule that is measured here."""
    threads.WORTH_SHARING = 1
    begun = os.getloadavg()[0]
    rows = []
    for width in WIDTHS:
        rows.append(measured(width))
        print(rows[-1], file=sys.stderr)
    finish("threads", {"steps": rows, "load_average": [begun, os.getloadavg()[0]]})


if __name__ == "__main__":
    main()
