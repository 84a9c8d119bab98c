"""What do taps and statistics cost beside the forward pass itself?

The rival is the bare forward pass: the same batches through the same network, in `eval` mode without gradients, outputs
thrown away. `tap` reads every site of ResNet18 (both grains) with a consumer that does nothing; `measure` takes all
statistics of all sites: every metric, null, intervals and coordinates. Pictures are drawn at random, since time does not
depend on them; the classes differ in their means, so that nothing is degenerate.
"""

from __future__ import annotations

from typing import Any

import torch

import equisep
from _record import finish, interleaved
from equisep.data import Batches
from equisep.models import build

SAMPLES, CLASSES, BATCH = 500, 10, 100
REPEATS = 5


def main() -> None:
    """Time all three in turns."""
    torch.manual_seed(0)
    network = build("resnet18", seed=0)
    y = torch.arange(SAMPLES) % CLASSES
    x = torch.randn(SAMPLES, 3, 32, 32) + torch.randn(CLASSES, 3, 32, 32)[y]
    batches = Batches(x, y, batch_size=BATCH)
    calls = 0

    def nothing(site: str, features: torch.Tensor) -> None:
        nonlocal calls
        calls += 1

    def bare() -> None:
        network.eval()
        with torch.no_grad():
            for part, _ in batches:
                network(part)

    def tapped() -> None:
        with equisep.tap(network, "auto", consume=nothing):
            for part, _ in batches:
                network(part)

    def measured() -> equisep.Profile:
        return equisep.measure(network, batches)

    seconds = interleaved({"bare": bare, "tap": tapped, "measure": measured}, repeats=REPEATS)
    calls = 0
    tapped()
    profile = measured()
    result: dict[str, Any] = {
        "ratio_tap": seconds["tap"] / seconds["bare"],
        "ratio_measure": seconds["measure"] / seconds["bare"],
        "seconds": seconds,
        "samples": SAMPLES,
        "batch_size": BATCH,
        "sites": calls // len(batches),
        "sites_of_grains": {grain: len(sites) for grain, sites in profile.grains.sites.items()}
        if profile.grains
        else None,
        "numbers_of_a_sample": sum(site.dim for site in profile.sites),
        "intervals_by": profile.settings["intervals_by"],
    }
    finish("taps", result)


if __name__ == "__main__":
    main()
