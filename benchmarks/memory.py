"""How much memory does a profile need beside the model and its data?

Every site of VGG13 wide at 32×32, of 500 and of 2,000 images, each in a process of its own: the greatest resident memory
while `measure` runs, less that before it began. The rival keeps every feature of every site, as published scripts do. The
bare forward pass is measured likewise, since its activations are no matter of ours.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

from _record import finish

SAMPLES = (500, 2000)
WAYS = ("bare", "measure", "keep")
MODEL, CLASSES, BATCH = "vgg13-wide", 10, 100


def run(way: str, samples: int) -> dict[str, float]:
    """One way in this process."""
    import torch

    import equisep
    from equisep.data import Batches
    from equisep.models import build

    torch.manual_seed(0)
    network = build(MODEL, seed=0, colors=3).eval()
    y = torch.arange(samples) % CLASSES
    x = torch.randn(samples, 3, 32, 32) + torch.randn(CLASSES, 3, 32, 32)[y]
    batches = Batches(x, y, batch_size=BATCH)
    with torch.no_grad():
        network(x[:1])  # what torch loads when first used
    before = _peak()
    sites = 0
    if way == "measure":
        sites = len(equisep.measure(network, batches).sites)
    elif way == "keep":
        kept: dict[str, list[torch.Tensor]] = {}
        with equisep.tap(network, "auto", consume=lambda site, rows: kept.setdefault(site, []).append(rows.clone())):
            for part, _ in batches:
                network(part)
        sites = len(kept)
    else:
        with torch.no_grad():
            for part, _ in batches:
                network(part)
    return {"mebibytes": (_peak() - before) / 1024, "sites": sites}


def _peak() -> int:
    """The greatest resident memory so far, in KiB (as Linux counts)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """All ways and sizes, each in a new process."""
    rows: list[dict[str, Any]] = []
    for samples in SAMPLES:
        row: dict[str, Any] = {"samples": samples}
        for way in WAYS:
            done = subprocess.run(
                [sys.executable, __file__, way, str(samples)], check=True, capture_output=True, text=True
            )
            row[way] = json.loads(done.stdout)
        rows.append(row)
    largest = max(row["measure"]["mebibytes"] for row in rows)
    finish("memory", {"model": MODEL, "batch_size": BATCH, "largest_mebibytes": largest, "rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in WAYS:
        print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
