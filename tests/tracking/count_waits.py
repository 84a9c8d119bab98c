"""Run by a test as a process: what a light reading tells a GPU and waits for, and whether its numbers are the CPU's."""

from __future__ import annotations

import json

import torch

from equisep import Tracker
from equisep.models import build
from equisep.separation.gpu import runs
from pretend_gpu import Pretended, moved, pretended_gpu

DEPTH = 20


def main() -> None:
    """A network of 20 layers, on the CPU and on the pretended GPU."""
    torch.cuda.get_device_name = lambda device=None: "pretended"  # type: ignore[assignment]
    runs._there = lambda: False  # type: ignore[assignment]  # kernels of our own would be sent memory of the CPU
    y = torch.arange(600) % 10
    make = torch.Generator().manual_seed(0)
    x = torch.randn(600, 64, generator=make) + torch.randn(10, 64, generator=make)[y]
    model = build("fnn", seed=0, depth=DEPTH, width=30, inputs=64, classes=10)
    expected = Tracker(model, (x, y), test=(x.flip(0), y.flip(0))).epoch()
    with pretended_gpu() as counted:
        tracker = Tracker(moved(model), (Pretended(x), Pretended(y)), test=(x.flip(0), y.flip(0)))
        counted.steps.clear()
        counted.waits.clear()
        found = tracker.epoch()
    assert expected is not None and found is not None
    curves = ("fuzziness", "fuzziness_test", "nc1", "cdnv", "ncc_train", "ncc_test")
    pairs = [pair for name in curves for pair in zip(found.curve(name), expected.curve(name), strict=True)]
    assert all((a is None) == (b is None) for a, b in pairs)
    apart = max(abs(a / b - 1) for a, b in pairs if a is not None and b is not None)
    print(json.dumps({"steps": counted.steps.total(), "waits": counted.waits.total(), "apart": apart}))


if __name__ == "__main__":
    main()
