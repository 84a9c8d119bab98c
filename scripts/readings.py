"""What D depends on besides the network: one training, read three ways (docs/readings.md).

    python scripts/readings.py --out DIR [--seeds 10] [--data-dir FOLDER]    trains, reads, writes DIR/readings.json
    python scripts/readings.py --draw results/readings/readings.json         writes the page's tables and drawing

He & Su's feed-forward networks (10 × 10 pixels, width 100, 600 epochs, 100 samples of each class) are trained once and read in
`eval`, `mixed` and `drawn`; seed s makes the weights and draws the samples. Fashion-MNIST is the embedded part; MNIST and
CIFAR-10 are read where FOLDER holds `mnist.npz` and `cifar10.npz` (or a part, `cifar10_7k.npz`), and are left out where not.
Needs torch and numpy to run, matplotlib to draw.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equisep.data import Dataset, draw, full_per_class, load_data, prepare
from equisep.data.sampling import order_among
from equisep.devices import provenance
from equisep.errors import DataError
from equisep.files import write_whole
from equisep.law import fit_law
from equisep.training import Ensemble, Member, Recipe, Shape, Watch, train_ensemble

READINGS = ("eval", "mixed", "drawn")
RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)  # Adam's grid in the paper
AUTHORS = {  # the rates of the authors' program, 4, 8 and 20 layers
    "adam": {4: 3e-3, 8: 1e-3, 20: 3e-4},
    "momentum": {4: 0.3, 8: 0.01, 20: 0.001},
    "sgd": {4: 0.3, 8: 0.03, 20: 0.01},
}
DEPTHS = {  # those of the paper's Fig. 5 and, where another reading has its least D deeper, some beyond
    "mnist": (*range(3, 13), 14, 16, 18),
    "fashion-mnist": (*range(3, 13), 14, 16, 18, 20),
    "cifar10": (3, 4, *range(8, 15), 16, 18, 20),
}
EQUAL, LARGE = 100, 500  # samples per class; of each of the five large classes where the others have fewer
SMALL = (500, 250, 100, 50, 20)  # … and of each of the five small ones
BATCHES = (25, 50, 100, 200, 500, 1000)  # of the reading; networks train on batches of 128
EPOCHS = 600
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Source:
    """A data set with the pool that a walk goes through: `pool_per_class` of the full set, where this is a part of it."""

    name: str
    dataset: Dataset
    preparation: str
    pool_per_class: int | None


@dataclass(frozen=True, slots=True)
class Samples:
    """For each seed its samples, ascending, their labels, and the order of the walk among them, in one prepared pool."""

    x: Tensor
    y: Tensor
    pairs: tuple[tuple[Tensor, Tensor], ...]
    orders: tuple[Tensor, ...]


def sources(data_dir: str | None) -> Iterator[Source]:
    """Fashion-MNIST, and the others where they are at hand."""
    fashion = load_data("embedded-10x10")
    yield Source("fashion-mnist", fashion, "he2023-10x10", full_per_class(fashion))
    wanted = {
        "mnist": (("mnist",), "he2023-10x10", None),
        "cifar10": (("cifar10", "cifar10_7k"), "he2023-10x10-cifar", 5000),
    }
    for name, (stored, preparation, full) in wanted.items():
        for each in stored if data_dir else ():
            try:
                dataset = load_data(each, data_dir=data_dir, download=False)
            except DataError:
                continue
            whole = full is None or len(dataset.y_train) >= full * dataset.classes
            yield Source(name, dataset, preparation, None if whole else full)
            break
        else:
            print(f"{name}: not at hand, left out")


def samples_of(source: Source, sizes: Sequence[int], seeds: int) -> Samples:
    """The draws of all seeds, of which only what is drawn is prepared."""
    labels = source.dataset.y_train
    walks = [
        draw(labels, sizes=sizes, seed=seed, order="walk", pool_per_class=source.pool_per_class)
        for seed in range(seeds)
    ]
    used = np.unique(np.concatenate(walks))
    y = torch.from_numpy(labels[used])
    rows = [torch.from_numpy(np.searchsorted(used, np.sort(walk))) for walk in walks]
    return Samples(
        x=prepare(source.dataset.x_train[used], source.preparation),
        y=y,
        pairs=tuple((own, y[own]) for own in rows),
        orders=tuple(torch.from_numpy(order_among(walk)) for walk in walks),
    )


def trained(
    samples: Samples, depth: int, optimizer: str, rates: Sequence[float], *, epochs: int, device: str
) -> dict[float, Ensemble]:
    """Every seed at every rate, all side by side, read three ways after the last epoch."""
    seeds = range(len(samples.pairs))
    shape = Shape.deep(depth, inputs=samples.x[0].numel())
    asked = [(rate, seed) for rate in rates for seed in seeds]
    found = train_ensemble(
        [Member(Recipe(optimizer=optimizer, rate=rate, epochs=epochs, seed=seed), shape, seed) for rate, seed in asked],
        samples.x, samples.y, samples=[samples.pairs[seed] for _, seed in asked],
        drawn=[samples.orders[seed] for _, seed in asked], watch=Watch(readings=READINGS), device=device,  # type: ignore[arg-type]
    )  # fmt: skip
    return {rate: found.taken([index for index, (each, _) in enumerate(asked) if each == rate]) for rate in rates}


def read_again(ensemble: Ensemble, samples: Samples, batch_size: int, *, device: str) -> Ensemble:
    """The same weights in batches of another size: members that train for no epoch."""
    members = [replace(member, recipe=replace(member.recipe, epochs=0)) for member in ensemble.members]
    return train_ensemble(
        members, samples.x, samples.y, samples=samples.pairs, drawn=samples.orders,
        starts=[ensemble.weights(index) for index in range(len(members))],
        watch=Watch(readings=READINGS, batch_size=batch_size), device=device,  # type: ignore[arg-type]
    )  # fmt: skip


def entry_of(ensemble: Ensemble, *, curves: bool, **about: Any) -> dict[str, Any]:
    """What one group of seeds gave: of each reading the law of every seed, and its last D; None where there is none."""
    recipe, shape = ensemble.members[0].recipe, ensemble.members[0].shape
    accuracy = ensemble.reading(reading="eval").accuracy
    entry: dict[str, Any] = {
        **about, "optimizer": recipe.optimizer, "depth": shape.depth, "rate": recipe.rate,
        "accuracy": [_short(value) for value in accuracy], "readings": {},
    }  # fmt: skip
    for reading in READINGS:
        table: dict[str, list[Any]] = {"r": [], "rho": [], "half_life": [], "last": []}
        for index in range(len(ensemble)):
            curve = ensemble.curve(index, reading=reading)
            law = fit_law(curve) if all(math.isfinite(value) and value > 0 for value in curve) else None
            for name in ("r", "rho", "half_life"):
                table[name].append(_short(None if law is None else getattr(law, name)))
            table["last"].append(_short(curve[-1]))
            if curves:
                table.setdefault("curves", []).append([_short(value) for value in curve])
        entry["readings"][reading] = table
    return entry


def _short(value: float | None) -> float | None:
    """A number to as many digits as are worth keeping."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def run(data_dir: str | None, seeds: int, device: str, *, epochs: int = EPOCHS) -> dict[str, Any]:
    """All trainings and readings, as one record."""
    found, data = [], {}
    begun = time.perf_counter()

    def told(words: str) -> None:
        print(f"{time.perf_counter() - begun:6.1f} s  {words}", flush=True)

    for source in sources(data_dir):
        data[source.name] = {"stored": source.dataset.name, "sha256": source.dataset.checksum}
        equal = samples_of(source, (EQUAL,) * 10, seeds)
        for depth in DEPTHS[source.name]:
            by_rate = trained(equal, depth, "adam", RATES, epochs=epochs, device=device)
            for rate, ensemble in by_rate.items():
                own = source.name == "fashion-mnist" and AUTHORS["adam"].get(depth) == rate
                about = {"data": source.name, "large": EQUAL, "small": EQUAL}
                found.append(entry_of(ensemble, curves=own, batch_size=100, **about))
                if own:
                    found += _batch_sizes(ensemble, equal, device=device, **about)
            told(f"{source.name}, {depth} layers, {len(by_rate)} rates")
        if source.name == "fashion-mnist":
            found += _optimizers(equal, epochs=epochs, device=device)
            told("the other optimizers")
            for small in SMALL:
                found += _unequal(source, small, seeds, epochs=epochs, device=device)
                told(f"5 × {LARGE} + 5 × {small} samples")
    settings = {
        "seeds": seeds,
        "epochs": epochs,
        "readings": READINGS,
        "rates": RATES,
        "authors_rates": AUTHORS,
        "data": data,
    }
    made = provenance(torch.device(device), torch.float32)
    return {
        "settings": settings,
        "provenance": {**made, "seconds": round(time.perf_counter() - begun)},
        "entries": found,
    }


def _batch_sizes(ensemble: Ensemble, samples: Samples, *, device: str, **about: Any) -> list[dict[str, Any]]:
    return [
        entry_of(read_again(ensemble, samples, size, device=device), curves=False, batch_size=size, **about)
        for size in BATCHES
        if size != 100
    ]


def _optimizers(samples: Samples, *, epochs: int, device: str) -> list[dict[str, Any]]:
    """The other two at the authors' rates."""
    about = {"data": "fashion-mnist", "large": EQUAL, "small": EQUAL, "batch_size": 100}
    return [
        entry_of(ensemble, curves=False, **about)
        for optimizer, rates in AUTHORS.items()
        for depth, rate in rates.items()
        if optimizer != "adam"
        for ensemble in trained(samples, depth, optimizer, (rate,), epochs=epochs, device=device).values()
    ]


def _unequal(source: Source, small: int, seeds: int, *, epochs: int, device: str) -> list[dict[str, Any]]:
    """Five large classes and five small ones, Adam at the authors' rates; all depths and batch sizes at the paper's sizes."""
    samples = samples_of(source, (LARGE,) * 5 + (small,) * 5, seeds)
    about = {"data": source.name, "large": LARGE, "small": small}
    found = []
    for depth in AUTHORS["adam"] if small == EQUAL else (8,):
        rate = AUTHORS["adam"][depth]
        ensemble = trained(samples, depth, "adam", (rate,), epochs=epochs, device=device)[rate]
        found.append(entry_of(ensemble, curves=small == EQUAL, batch_size=100, **about))
        if small == EQUAL:
            found += _batch_sizes(ensemble, samples, device=device, **about)
    return found


def saved(record: Mapping[str, Any], path: Path) -> None:
    """The record as JSON, an entry a line."""
    entries = ",\n".join(json.dumps(entry) for entry in record["entries"])
    head = {name: value for name, value in record.items() if name != "entries"}
    text = json.dumps(head, indent=1)[:-2] + f',\n "entries": [\n{entries}\n]\n}}\n'
    write_whole(path, text)


def main() -> None:
    """Run, or draw."""
    from readings_page import checks, write_page

    parser = argparse.ArgumentParser(description="Networks read three ways: run everything, or draw what was run.")
    parser.add_argument("--out", type=Path, help="folder for readings.json")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="fewer for a try")
    parser.add_argument("--data-dir", help="folder with mnist.npz and cifar10.npz or cifar10_7k.npz")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--draw", type=Path, help="a readings.json, for the page's tables and drawing")
    asked = parser.parse_args()
    if asked.draw is not None:
        record = json.loads(asked.draw.read_text(encoding="utf-8"))
        for path in write_page(record):
            print(f"wrote {path}")
    elif asked.out is not None:
        record = run(asked.data_dir, asked.seeds, asked.device, epochs=asked.epochs)
        saved(record, asked.out / "readings.json")
        print(f"wrote {asked.out / 'readings.json'}")
    else:
        parser.error("give --out, a folder to write to, or --draw, a file to draw")
    print("\n".join(checks(record)))


if __name__ == "__main__":
    main()
