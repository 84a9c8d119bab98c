"""Does D of the population stay, on trained networks, when samples grow fivefold?

The published ResNet-20 and ResNet-56 of CIFAR-10, flattened blocks in the reading `eval`, on 500 images per class; D of the
population from all of them, and from each fifth, 100 per class. Nothing is known to be true here: what is asked is that values
from fewer samples agree with those from more, and how often there is none. The limits of `corrected_fuzziness` were chosen
with a look at the fifths in the images' own order (`sites`), so that the fifths of two shuffles (`others`), which nothing was
chosen by, say how well it does elsewhere.

    PYTHONPATH=src EQUISEP_DATA=FOLDER python simulations/published.py --save

FOLDER as in examples/cifar_resnet.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from _table import Job, Rows, finish_jobs
from equisep import load_data, measure
from equisep.data import Preparation, prepare_split
from equisep.models import load_model

FILES = {"resnet20": "resnet20-12fca82f.th", "resnet56": "resnet56-4bfd9763.th"}
IMAGENET = Preparation(normalize=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
PARTS = 5
OTHERS = (11, 12)  # seeds of shuffles


def sites_of(network: str, part: int | None, seed: int | None = None) -> Rows:
    """D of every block, plain and of the population, from all images or from one of the fifths, by order or shuffled."""
    folder = Path(os.environ["EQUISEP_DATA"])
    model = load_model(network, checkpoint=folder / "resnet_cifar10" / FILES[network])
    x, y = prepare_split(load_data("cifar10_7k", data_dir=folder), IMAGENET)
    if part is not None:
        make = None if seed is None else torch.Generator().manual_seed(seed)
        turn = torch.zeros_like(y)  # the number of every image inside its class
        for k in y.unique():
            size = int((y == k).sum())
            turn[y == k] = torch.arange(size) if make is None else torch.randperm(size, generator=make)
        x, y = x[turn % PARTS == part], y[turn % PARTS == part]
    device = "cuda" if torch.cuda.is_available() else None
    profile = measure(
        model, (x, y), sites="blocks", whole=False, coordinates=0, device=device, metrics=("fuzziness", "null")
    )
    rows: list[dict[str, Any]] = []

    def digits(number: float | None) -> float | None:
        return None if number is None else float(f"{number:.6g}")

    for site in profile.sites:
        found = site.corrected
        assert found is not None
        rows.append(
            {
                "network": network, **({} if seed is None else {"seed": seed}), "part": part, "n": len(y),
                "site": site.index, "name": site.name, "dim": site.dim,
                "plain": digits(site.fuzziness), "chance": digits(found.chance), "value": digits(found.value),
                "low": digits(found.low), "high": digits(found.high),
                "reason": found.reason,
            }
        )  # fmt: skip
    return rows


def jobs(draws: int) -> list[Job]:
    """Both networks; `--draws` says how many fifths."""
    parts = range(min(draws, PARTS))
    listed: list[tuple[str, tuple[Any, ...]]] = [
        ("sites", (network, part)) for network in FILES for part in (None, *parts)
    ]
    listed += [("others", (network, part, seed)) for seed in OTHERS for network in FILES for part in parts]
    return [Job(table, sites_of, given, cost=float(given[1] is None)) for table, given in listed]


if __name__ == "__main__":
    finish_jobs("published", jobs, draws=PARTS)
