"""How long do the findings of a saved profile take, from a cold start?

Seconds of processor and clock, in a process of its own each time: importing, reading the JSON, all rules, the text. Two
profiles: a small one of ten classes, and one with rare classes and cosines between class means, for which the Layer-Peeled Model
is solved. Beside them the start of Python alone, and the share of the rules in a process that has them loaded. The promise is
0.2 s without torch.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import equisep
from _record import finish
from equisep.data import PREPARATIONS, prepare_split
from equisep.training import Recipe

REPEATS = 9
SCRIPT = """
import json, sys, time
clock, processor = time.perf_counter(), time.process_time()
from equisep.results import load_profile
profile = load_profile(sys.argv[1])
profile.explain()
cold = time.perf_counter() - clock, time.process_time() - processor
clock = time.perf_counter()
profile.explain()
print(json.dumps({"clock_s": cold[0], "processor_s": cold[1], "loaded_s": time.perf_counter() - clock,
                  "torch": "torch" in sys.modules, "numpy": "numpy" in sys.modules}))
"""


def profile_of(folder: Path, name: str, sizes: list[int]) -> Path:
    """A network of eight layers on so many samples per class."""
    data, preparation = equisep.load_data("embedded-10x10"), PREPARATIONS["he2023-10x10"]
    x, y = prepare_split(data, preparation)
    rows = torch.cat([(y == k).nonzero().flatten()[:size] for k, size in enumerate(sizes)])
    x, y = x[rows].flatten(1), y[rows]
    torch.manual_seed(0)
    network = equisep.Fnn(8)
    equisep.train(network, x, y, recipe=Recipe(epochs=15))
    profile = equisep.measure(network, (x, y), prepare_split(data, preparation, split="test"))
    return profile.save(folder / f"{name}.json")


def timed(path: Path) -> dict[str, Any]:
    """Medians over processes."""
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True, capture_output=True).stdout)
        for _ in range(REPEATS)
    ]
    medians = {name: statistics.median(run[name] for run in runs) for name in ("clock_s", "processor_s", "loaded_s")}
    return {**medians, "torch": runs[0]["torch"], "numpy": runs[0]["numpy"], "kilobytes": path.stat().st_size // 1000}


def main() -> None:
    """Both profiles."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            "ten equal classes": profile_of(Path(folder), "equal", [100] * 10),
            "five rare classes": profile_of(Path(folder), "rare", [200] * 5 + [4] * 5),
        }
        result = {name: timed(path) for name, path in paths.items()}
    finish("findings", {"profiles": result, "load_average": os.getloadavg()[0]})


if __name__ == "__main__":
    main()
