"""The whole grid of He & Su's Fig. 1 as one program: started by `ensemble.py`, which times it from process start.

Three depths × (7 rates of SGD, 7 of momentum, 5 of Adam) × seeds; all sites read after the last epoch.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import time

START = time.perf_counter()
# modules are no garbage, and looking through those of torch again and again takes a sixth of the imports' time
gc.disable()

import torch  # noqa: E402 (the import belongs to the time that is measured)

TORCH = time.perf_counter()

from equisep.data import load_data, prepare_split  # noqa: E402
from equisep.law import fit_law  # noqa: E402
from equisep.training import Member, Recipe, Shape, train_ensemble  # noqa: E402

DEPTHS = (4, 8, 20)
STEEP = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
RATES = {"sgd": STEEP, "momentum": STEEP, "adam": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)}


def members(depth: int, seeds: int, epochs: int) -> list[Member]:
    """One depth of the grid."""
    return [
        Member(Recipe(optimizer=name, rate=rate, seed=seed, epochs=epochs), Shape.deep(depth), data_seed=seed)
        for name, rates in RATES.items()
        for rate in rates
        for seed in range(seeds)
    ]


def main() -> None:
    """Train, read, and print seconds, floating-point operations and the laws that were found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    pool = prepare_split(load_data("embedded-10x10"), "he2023-10x10")
    gc.freeze()
    gc.enable()
    imported = time.perf_counter()
    rows = []
    for depth in DEPTHS:
        begun = time.perf_counter()
        grid = members(depth, asked.seeds, asked.epochs)
        ensemble = train_ensemble(grid, *pool, per_class=100, device=asked.device)
        seconds = time.perf_counter() - begun
        weights = sum(a * b for a, b in grid[0].shape.layers)
        operations = 6 * weights * 1000 * asked.epochs * len(grid)  # 2 a weight and sample forward, 4 backward
        curves = [ensemble.curve(index) for index in range(len(grid))]
        laws = [fit_law(curve).r for curve in curves if all(map(math.isfinite, curve))]
        rows.append(
            {
                "depth": depth,
                "members": len(grid),
                "seconds": seconds,
                "tera_operations_per_second": operations / seconds / 1e12,
                "diverged": sum(at is not None for at in ensemble.diverged),
                "without_curve": len(grid) - len(laws),
                "most_negative_r": min(r for r in laws if r is not None),
            }
        )
    device = torch.device(asked.device)
    print(
        json.dumps(
            {
                "seeds": asked.seeds,
                "trainings": sum(row["members"] for row in rows),
                "epochs": asked.epochs,
                "seconds_imports_and_data": imported - START,
                "seconds_of_them_importing_torch": TORCH - START,
                "compiler_of_torch_imported": "torch._dynamo" in sys.modules,
                "depths": rows,
                "peak_bytes": torch.cuda.max_memory_allocated() if device.type == "cuda" else None,
            }
        )
    )


if __name__ == "__main__":
    main()
