"""The GPU's part of `limit.py`: every build of the training kernel, captured passes, and the kernel's hardware counters.

As a program it launches the kernel once for `ncu` to watch: `--members`, `--depth`, `--cluster`, `--resident`, `--tf32`.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from _limit import EPOCHS, SAMPLES, STEPS, clocked, clouds, least, members_of
from equisep.devices import precision
from equisep.training import Member, Shape, Stage
from equisep.training.ensemble.kernel.compile import launch
from equisep.training.ensemble.kernel.layout import Build
from equisep.training.ensemble.kernel.stage import KernelStepper
from equisep.training.ensemble.samples import Samples, draw_samples
from equisep.training.ensemble.stack import Stack
from equisep.training.ensemble.stepper import Stepper

DEVICE = torch.device("cuda")
SECTIONS = (
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
    "Occupancy",
    "LaunchStats",
)


def prepared(shape: Shape, count: int) -> tuple[Stack, Samples, list[Member]]:
    """A stack on the device."""
    members = members_of(shape, count)
    samples = draw_samples(members, *clouds(shape), per_class=None, sizes=None).on(DEVICE, torch.float32)
    states = {seed: shape.build(seed).state_dict() for seed in range(10)}
    stack = Stack.of([states[one.recipe.seed] for one in members], shape, device=DEVICE, dtype=torch.float32)
    return stack, samples, members


@torch.no_grad()
def kernel_run(shape: Shape, count: int, build: Build, epochs: int) -> Callable[[], None]:
    """One launch of so many epochs."""
    stack, samples, members = prepared(shape, count)
    stepper = KernelStepper(stack, samples, members, Stage(epochs=EPOCHS), build=build, launch=launch)
    arguments = stepper._arguments(0, epochs, STEPS)
    assert arguments is not None
    return lambda: launch(arguments, members=count, build=build, depth=shape.depth)


def by_kernel(shape: Shape, count: int, build: Build) -> float:
    """Seconds an epoch of all members by one build."""
    epochs = 2 if count > 300 else 4
    return least(kernel_run(shape, count, build, epochs), DEVICE) / epochs


@torch.no_grad()
def by_graphs(shape: Shape, count: int, *, tf32: bool = False) -> float:
    """Seconds an epoch of all members by captured passes."""
    stack, samples, members = prepared(shape, count)
    with precision(tf32=tf32):
        epochs = Stepper(stack, samples, members, Stage(epochs=8), captured=True).epochs()
        for _ in range(3):
            next(epochs)
        return clocked(lambda: [next(epochs) for _ in range(4)], DEVICE) / 4


def drawing_orders(count: int) -> float:
    """Seconds in which the host draws the orders of one epoch, every member its own: the kernel must not wait for it."""
    from equisep.training.ensemble.stepper import Orders

    orders = Orders(list(range(count)), SAMPLES, device=torch.device("cpu"))
    return least(lambda: orders.draw(1), torch.device("cpu"))


def builds_of(shape: Shape, count: int, *, tf32: bool = False) -> list[Build]:
    """Every build that could train so many members."""
    most = torch.cuda.get_device_properties(0).multi_processor_count
    pairs = [(1, 1), (1, 2), *((cluster, 1) for cluster in (2, 4) if count <= most)]
    return [Build.of(shape, cluster=cluster, resident=resident, tf32=tf32) for cluster, resident in pairs]


def name_of(build: Build) -> str:
    """A build by what differs among those of one shape."""
    return f"cluster {build.cluster}, resident {build.resident}{', TF32' if build.tf32 else ''}"


def counters(shape: Shape, count: int, build: Build, *, timeout: float) -> dict[str, Any]:
    """What `ncu` reads while the kernel trains one epoch, by name and unit; or why it could not."""
    if shutil.which("ncu") is None:
        return {"why_not": "there is no ncu here"}
    words = [
        "ncu",
        "--clock-control",
        "none",
        "--kernel-name",
        "train",
        "--launch-count",
        "1",
        "--csv",
        "--page",
        "raw",
    ]
    for section in SECTIONS:
        words += ["--section", section]
    words += [sys.executable, str(Path(__file__)), "--members", str(count), "--depth", str(shape.depth)]
    words += ["--width", str(shape.widths[0]), "--cluster", str(build.cluster), "--resident", str(build.resident)]
    words += ["--tf32"] if build.tf32 else []
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"why_not": f"ncu took more than {timeout:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or len(lines) < 3:
        return {"why_not": (done.stdout + done.stderr)[-1000:]}
    names, units, values = csv.reader(lines[:3])
    return {
        f"{name} [{unit}]" if unit else name: value
        for name, unit, value in zip(names, units, values, strict=False)
        if "__" in name
    }


def main() -> None:
    """Launch the kernel once."""
    parser = argparse.ArgumentParser()
    for name, value in (("members", 264), ("depth", 8), ("width", 100), ("cluster", 1), ("resident", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--tf32", action="store_true")
    asked = parser.parse_args()
    shape = Shape.deep(asked.depth, width=asked.width)
    build = Build.of(shape, cluster=asked.cluster, resident=asked.resident, tf32=asked.tf32)
    clocked(kernel_run(shape, asked.members, build, 1), DEVICE)


if __name__ == "__main__":
    main()
