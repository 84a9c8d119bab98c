"""What every benchmark shares: interleaved repeats, and a result that says what it was measured on."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import torch

import equisep
from equisep.files import write_whole

RESULTS = Path(__file__).parent / "results"


def interleaved(contestants: Mapping[str, Callable[[], Any]], *, repeats: int) -> dict[str, float]:
    """Median seconds of each contestant; they take turns, so that a noisy minute hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()  # warm up
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def machine(device: str = "cpu") -> dict[str, Any]:
    """Hardware and versions, for the result and for its file name."""
    return {
        "device": device,
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "equisep": equisep.__version__,
    }


def finish(name: str, result: Mapping[str, Any], *, device: str = "cpu") -> None:
    """Print the result, as JSON with `--json`; keep it in benchmarks/results with `--save`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    asked = parser.parse_args()
    record = {"benchmark": name, **result, "machine": machine(device)}
    print(json.dumps(record, indent=None if asked.json else 1, ensure_ascii=False))
    if asked.save:
        save(name, result, device=device)


def save(name: str, result: Mapping[str, Any], *, device: str = "cpu", folder: Path = RESULTS) -> None:
    """Keep a result, under the name of the benchmark, the device and the versions; again and again while it grows."""
    known = machine(device)
    record = {"benchmark": name, **result, "machine": known}
    place = known["device"].lower().replace(" ", "-")
    target = folder / f"{name}-{place}-{known['processor']}-torch{known['torch'].split('+')[0]}.json"
    write_whole(target, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
