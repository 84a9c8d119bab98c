"""Training every depth, width and rate with several seeds side by side, and what is read of each network."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equisep.advice.depth.records import FAMILIES, DepthSettings, Trial
from equisep.advice.standings import Hits
from equisep.law import fit_law
from equisep.law.effective_depth import effective_depth
from equisep.progress import Progress, silent
from equisep.results.readings import reading_named
from equisep.training import Ensemble, EnsembleReading, Member, Recipe, Shape, Watch, train_ensemble

WORKERS = 2  # not the number of cores: who trains with whom decides the last digits
TEST_ROWS = 4096  # test samples that go through a network at a time
Finished = Callable[[Trial], None]
"""Called with each trial as it is finished."""


@dataclass(frozen=True, slots=True)
class SweepData:
    """What all networks share: the pool that every seed draws from, how much of each class, and the test samples."""

    pool: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    classes: int
    sizes: tuple[int, ...] | None = None
    batch_size: int = 128


@dataclass(frozen=True, slots=True)
class Sweep:
    """Trials in the order trained, and which test samples each seed's network classifies rightly; None where one diverged."""

    trials: tuple[Trial, ...]
    hits: tuple[Hits | None, ...]


def train_depths(
    data: SweepData,
    settings: DepthSettings,
    *,
    device: str | torch.device | None = None,
    store: str | Path | None = None,
    progress: Progress = silent,
    finished: Finished | None = None,
) -> Sweep:
    """Every depth × width × rate, the cheapest first; with a `store`, what an earlier call finished is taken from there."""
    shapes = dict.fromkeys(
        _shape(data, settings, depth, width) for depth in settings.depths for width in settings.widths
    )
    plan = sorted(product(shapes, settings.rates), key=lambda each: (each[0].depth, each[0].parameters, each[1]))
    work = [shape.parameters * settings.epochs for shape, _ in plan]
    trials, hits = [], []
    for index, (shape, rate) in enumerate(plan):

        def share(what: str, done: int, total: int | None, at: int = index) -> None:
            reached = sum(work[:at]) + work[at] * done / (total or 1)
            progress("training, percent", int(100 * reached / sum(work)), 100)

        trial, own = _trial(
            _trained(data, settings, shape, rate, device=device, store=store, progress=share), data, settings
        )
        trials.append(trial)
        hits.append(own)
        if finished is not None:
            finished(trial)
    return Sweep(tuple(trials), tuple(hits))


def _shape(data: SweepData, settings: DepthSettings, depth: int, width: int) -> Shape:
    inputs = data.pool[0][0].numel()
    return Shape.deep(depth, width=width, inputs=inputs, classes=data.classes, **FAMILIES[settings.family])


def _trained(data: SweepData, settings: DepthSettings, shape: Shape, rate: float, **how: Any) -> Ensemble:
    """One shape at one rate with every seed, which also draws the training samples: seeds pair trials."""
    recipes = [
        Recipe(rate=rate, epochs=settings.epochs, batch_size=data.batch_size, seed=seed)
        for seed in range(settings.seed, settings.seed + settings.seeds)
    ]
    readings = tuple(dict.fromkeys((reading_named(settings.reading), reading_named("eval"))))
    return train_ensemble(
        [Member(recipe, shape, data_seed=recipe.seed) for recipe in recipes],
        *data.pool,
        test=data.test,
        sizes=data.sizes,
        watch=Watch(readings=readings),
        workers=WORKERS,
        **how,
    )


def _trial(ensemble: Ensemble, data: SweepData, settings: DepthSettings) -> tuple[Trial, Hits | None]:
    read, used = ensemble.reading(reading=settings.reading), ensemble.reading(reading="eval")
    shape, seeds = ensemble.members[0].shape, range(len(ensemble))
    curves = [_curve(read, seed) for seed in seeds]
    laws = [fit_law(curve) if curve is not None else None for curve in curves]
    centers = [_column(read.ncc, seed) for seed in seeds]
    assert used.accuracy_test is not None
    trial = Trial(
        depth=shape.depth,
        width=shape.widths[0] if shape.widths else 0,
        rate=ensemble.members[0].recipe.rate,
        parameters=shape.parameters,
        accuracy=_numbers(used.accuracy),
        accuracy_test=_numbers(used.accuracy_test),
        last=tuple(None if curve is None else curve[-1] for curve in curves),
        rho=tuple(None if law is None else law.rho for law in laws),
        r=tuple(None if law is None else law.r for law in laws),
        effective_depth=tuple(effective_depth(ncc, epsilon=settings.epsilon) for ncc in centers),
        ncc=tuple(ncc[-1] for ncc in centers),
        diverged=ensemble.diverged,
    )
    return trial, None if any(trial.diverged) else _hits(ensemble, *data.test)


@torch.no_grad()
def _hits(ensemble: Ensemble, x: Tensor, y: Tensor) -> Hits:
    """Which test samples each network, as it is used, classifies rightly."""
    rows = x.flatten(1).to(ensemble.stack.theta.dtype)
    right = []
    for member in range(len(ensemble)):
        network = ensemble.network(member)
        guesses = torch.cat([network(part).argmax(dim=1) for part in rows.split(TEST_ROWS)])
        right.append((guesses == y).numpy())
    return np.stack(right)


def _curve(read: EnsembleReading, seed: int) -> list[float] | None:
    """D over depth of one network; None where a site has none."""
    values = _column(read.fuzziness, seed)
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _column(values: Any, seed: int) -> tuple[float | None, ...]:
    assert values is not None  # all sites are watched
    return _numbers(values[seed])


def _numbers(values: Any) -> tuple[float | None, ...]:
    return tuple(float(value) if math.isfinite(value) else None for value in values)
