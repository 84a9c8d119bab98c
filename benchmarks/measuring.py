"""How much faster is a whole profile than the published way, layer by layer?

The rival `published` is how the scripts of this field do it: for every layer run the network again from the input up to
that layer, form SSw and SSb as d×d matrices, and multiply by `pinv(SSb)`; here in float64, where it is right. `fuzziness`
is `equisep.measure` with D alone, `everything` with all metrics, the permuted-label null and 200 bootstrap resamples.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import equisep
from _record import finish, interleaved
from equisep.data import Batches, load_data, prepare_split
from equisep.models import Fnn, build
from fuzziness import by_matrices

WIDTHS = (100, 1000)
DEPTH = 8


def published(network: Fnn, x: Tensor, y: Tensor) -> list[float]:
    """D of the input and of every hidden layer, each from a forward pass of its own."""
    network.eval()
    values = []
    with torch.no_grad():
        for depth in range(len(network.blocks) + 1):
            features = [network.blocks[:depth](part.flatten(1)) for part in x.split(100)]
            values.append(by_matrices(torch.cat(features).to(torch.float64), y))
    return values


def main() -> None:
    """Time all three on an untrained network, since time does not depend on the weights; check that D agrees."""
    x, y = prepare_split(load_data("embedded-10x10"), "he2023-10x10", per_class=100)
    batches = Batches(x, y)
    rows: list[dict[str, Any]] = []
    for width in WIDTHS:
        network = build("fnn", seed=0, depth=DEPTH, width=width)
        assert isinstance(network, Fnn)

        def alone(network: Fnn = network) -> Any:
            return equisep.measure(network, batches, metrics=["fuzziness"], intervals="none", coordinates=0)

        seconds = interleaved(
            {
                "fuzziness": alone,
                "everything": lambda network=network: equisep.measure(network, batches),  # type: ignore[misc]
                "published": lambda network=network: published(network, x, y),  # type: ignore[misc]
            },
            repeats=3,
        )
        theirs = published(network, x, y)
        rows.append(
            {
                "n": len(y),
                "width": width,
                "sites": DEPTH,
                "seconds": seconds,
                "ratio": seconds["published"] / seconds["fuzziness"],
                "ratio_everything": seconds["published"] / seconds["everything"],
                "relative_difference": max(abs(a / b - 1) for a, b in zip(alone().curve(), theirs, strict=True)),
            }
        )
    finish("measuring", {"ratio": rows[-1]["ratio"], "sizes": rows})


if __name__ == "__main__":
    main()
