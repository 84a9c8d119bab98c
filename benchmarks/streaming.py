"""How much memory and time does `Separation` need for a million features in a stream?

10⁶ × 512 float32 features of 1,000 classes in batches of 1,000, drawn as they come and never kept, in one pass: the greatest
resident memory less that of the bare import (`import torch, equisep` and the class itself), in a process of its own. The
rival keeps all features in a list, as metrics of embeddings commonly do, for a tenth of the samples. Seconds are those of the
processor, without drawing the features.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

from _record import finish

SAMPLES, DIM, CLASSES, BATCH = 1_000_000, 512, 1000, 1000
RIVAL_SAMPLES = 100_000


def run(way: str) -> dict[str, float]:
    """One way in this process."""
    import torch

    import equisep

    metric = equisep.Separation(CLASSES, DIM)
    before, start = _peak(), time.process_time()
    samples = SAMPLES if way == "stream" else RIVAL_SAMPLES
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(CLASSES, DIM, generator=generator)
    kept, drawing = [], 0.0
    for _ in range(samples // BATCH):
        drawn = time.process_time()
        y = torch.randint(CLASSES, (BATCH,), generator=generator)
        x = means[y] + torch.randn(BATCH, DIM, generator=generator)
        drawing += time.process_time() - drawn
        if way == "stream":
            metric.update(x, y)
        else:
            kept.append((x, y))
    if way == "stream":
        value = float(metric.compute()["fuzziness"])
    else:
        value = equisep.fuzziness(torch.cat([x for x, _ in kept]), torch.cat([y for _, y in kept]))
    seconds = time.process_time() - start - drawing
    return {
        "samples": samples,
        "fuzziness": value,
        "processor_seconds": seconds,
        "mebibytes": (_peak() - before) / 1024,
    }


def _peak() -> int:
    """The greatest resident memory so far, in KiB (as Linux counts)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Both ways, each in a new process."""
    rows: dict[str, Any] = {}
    for way in ("stream", "keep"):
        done = subprocess.run([sys.executable, __file__, way], check=True, capture_output=True, text=True)
        rows[way] = json.loads(done.stdout)
    finish("streaming", {"dim": DIM, "classes": CLASSES, "batch_size": BATCH, **rows})


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ("stream", "keep"):
        print(json.dumps(run(sys.argv[1])))
    else:
        main()
