"""Peak memory does not grow with the number of samples: four times as many take less than 5 % more, by a model or stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

WIDTH, ROWS = 512, 16_000  # 31 MiB of float32; four times as many are 125 MiB, half of all that the process has
CHILD = """
import sys
from pathlib import Path
import torch
import equisep

torch.set_num_threads(1)
kind, n, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class Drawn:
    def __iter__(self):
        generator = torch.Generator().manual_seed(0)
        for begin in range(0, n, 1000):
            y = torch.arange(begin, begin + 1000) % 10
            yield torch.randn(1000, width, generator=generator) + y.unsqueeze(1), y

    def __len__(self):
        return n // 1000


options = {"memory": 0, "metrics": ("fuzziness", "null", "cdnv", "ncc"), "coordinates": 30}
if kind == "model":
    model = torch.nn.Sequential(torch.nn.Linear(width, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    profile = equisep.measure(model, Drawn(), **options)
else:
    profile = equisep.measure_features(Path(kind), **options)
assert sum(profile.counts) == n
status = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""


def peak(kind: str, n: int) -> int:
    """KiB that a process of its own had at most."""
    words = [sys.executable, "-c", CHILD, kind, str(n), str(WIDTH)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the peak")
@pytest.mark.parametrize("kind", ["model", "stored"])
def test_four_times_the_samples_take_less_than_five_percent_more(kind: str, tmp_path: Path) -> None:
    peaks = []
    for n in (ROWS, 4 * ROWS):
        folder = tmp_path / str(n)
        if kind == "stored":
            folder.mkdir()
            rng, y = np.random.default_rng(0), np.arange(n) % 10
            np.save(folder / "x.npy", rng.standard_normal((n, WIDTH), dtype=np.float32) + y[:, None].astype(np.float32))
            np.save(folder / "labels.npy", y)
        peaks.append(peak("model" if kind == "model" else str(folder), n))
    assert peaks[1] < 1.05 * peaks[0], peaks
