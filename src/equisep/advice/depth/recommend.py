"""`recommend_depth`: from any labeled data to a recommended depth, by training networks of several depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equisep.advice.depth.choice import choose_depth
from equisep.advice.depth.records import DEPTHS, SAMPLES, DepthAdvice, DepthSettings
from equisep.advice.depth.sweep import Finished, SweepData, train_depths
from equisep.data import draw
from equisep.errors import InputError
from equisep.labels import Labels, as_tensor, label_vector
from equisep.progress import Watched, callback, watched

LEAST_PER_CLASS = 2
Split = tuple[Any, Any]


@watched
def recommend_depth(
    data: Split,
    test: Split | None = None,
    *,
    depths: Sequence[int] = DEPTHS,
    widths: Sequence[int] = (100,),
    rates: Sequence[float] = (3e-3,),
    family: str = "fnn",
    seeds: int = 8,
    seed: int = 0,
    epochs: int = 200,
    batch_size: int = 128,
    per_class: int | None = None,
    samples: int | None = SAMPLES,
    held_out: float = 0.2,
    reading: str = "eval",
    margin: float | None = None,
    level: float = 0.95,
    fit: float = 0.99,
    epsilon: float = 0.01,
    device: str | torch.device | None = None,
    store: str | Path | None = None,
    progress: Watched = None,
    finished: Finished | None = None,
) -> DepthAdvice:
    """How deep a feed-forward network for these data should be: the shallowest that is shown to do as well as the best.

    data, test     (x, y) each, as tensors or arrays, one row or image per label; bytes are divided by 255. Without `test` a
                   share `held_out` of every class is held out of training and serves as test data.
    store          a folder where finished trainings are kept: the same call takes them from there and trains the rest.
    finished       called with every `Trial` as it is finished.

    All other arguments are the fields of `DepthSettings`. Every depth is trained with the same seeds on the same samples and
    compared on the same test samples, so that depths differ by depth alone; see `choose_depth` for the rule, which many depths
    do not fool. The answer holds for networks of this family trained so, on as many samples; `advice.sentences` say it.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> advice = equisep.recommend_depth((x[:60], y[:60]), (x[60:], y[60:]), depths=(1, 2), widths=(8,), seeds=3, epochs=3)
    >>> [trial.depth for trial in advice.trials]
    [1, 2]
    >>> advice.depth is None or advice.depth in (1, 2)  # print(advice) says why
    True
    """
    progress = callback(progress)
    settings = DepthSettings(
        depths=tuple(depths), widths=tuple(widths), rates=tuple(rates), family=family, seeds=seeds, seed=seed, epochs=epochs,
        batch_size=batch_size, per_class=per_class, samples=samples, held_out=held_out, reading=reading, margin=margin,
        level=level, fit=fit, epsilon=epsilon,
    )  # fmt: skip
    shared = _shared(data, test, settings)
    sweep = train_depths(shared, settings, device=device, store=store, progress=progress, finished=finished)
    advice = choose_depth(sweep.trials, sweep.hits, settings)
    return replace(advice, data=_record(shared, held_out=test is None))


def _shared(data: Split, test: Split | None, settings: DepthSettings) -> SweepData:
    """The pool and the test samples of all networks, once it is sure that they can be trained on and tested."""
    x, labels = _split(data, "The training data")
    classes = int(labels.max()) + 1
    if test is None:
        _check_counts(
            labels, classes, least=LEAST_PER_CLASS + 1, why="of which some are held out, as there are no test data"
        )
        counts = np.bincount(labels, minlength=classes)
        # at least one of each class is held out, and two are left
        shares = np.clip(np.round(counts * settings.held_out), 1, counts - LEAST_PER_CLASS).astype(int)
        chosen = draw(labels, sizes=shares.tolist(), classes=classes)
        kept = np.setdiff1d(np.arange(len(labels)), chosen)
        tested = (x[torch.from_numpy(chosen)], labels[chosen])
        x, labels = x[torch.from_numpy(kept)], labels[kept]
    else:
        _check_counts(labels, classes, least=LEAST_PER_CLASS, why="to learn from")
        tested = _split(test, "The test data")
    if len(tested[1]) < 2:
        raise InputError(
            f"Depths are compared on test samples; found {len(tested[1])}. Give 2 or more, or none at all."
        )
    sizes = _sizes(labels, classes, settings)
    return SweepData(
        pool=(x, torch.from_numpy(labels)),
        test=(tested[0], torch.from_numpy(tested[1])),
        classes=classes,
        sizes=sizes,
        batch_size=_batch_size(len(labels) if sizes is None else sum(sizes), settings.batch_size),
    )


def _split(pair: Split, what: str) -> tuple[Tensor, Labels]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"{what} should be a pair (x, y) of arrays or tensors; found {type(pair).__name__}.")
    x = as_tensor(pair[0], what=what)
    labels, _ = label_vector(pair[1])
    if len(x) != len(labels) or len(labels) == 0:
        raise InputError(f"{what} hold {len(x)} samples and {len(labels)} labels. Give one label per sample.")
    scale = 255 if x.dtype == torch.uint8 else 1  # as `equisep.data.prepare` does
    return x.cpu().to(torch.float32) / scale, labels


def _check_counts(labels: Labels, classes: int, *, least: int, why: str) -> None:
    counts = np.bincount(labels, minlength=classes)
    if classes < 2:
        raise InputError(
            "Depths are compared by how well they tell classes apart; the data have one. Give two or more."
        )
    small = np.flatnonzero(counts < least)
    if len(small):
        raise InputError(
            f"Every class needs {least} training samples or more, {why}; class {int(small[0])} has {int(counts[small[0]])}"
            f"{f', and {len(small) - 1} others have too few' if len(small) > 1 else ''}. Add samples, or leave such classes out "
            "and number the rest from 0 on."
        )


def _sizes(labels: Labels, classes: int, settings: DepthSettings) -> tuple[int, ...] | None:
    """How many samples of each class a seed draws, in the proportions of the classes, two at least; None: all there are."""
    if settings.per_class is not None:
        return (settings.per_class,) * classes
    if settings.samples is None or len(labels) <= settings.samples:
        return None
    counts = np.bincount(labels, minlength=classes)
    exact = counts * (settings.samples / len(labels))
    sizes = np.maximum(np.floor(exact), LEAST_PER_CLASS).astype(int)
    for k in np.argsort(-(exact - np.floor(exact)), kind="stable")[: max(0, settings.samples - int(sizes.sum()))]:
        sizes[k] += 1
    return tuple(int(size) for size in np.minimum(sizes, counts))


def _batch_size(n: int, wanted: int) -> int:
    """The batch size, or the next smaller one that leaves no batch of one sample, which BatchNorm cannot normalize."""
    return next(size for size in range(min(wanted, n), 1, -1) if n % size != 1)


def _record(shared: SweepData, *, held_out: bool) -> dict[str, Any]:
    """What the advice says of its data."""
    x, y = shared.pool
    return {
        "classes": shared.classes,
        "inputs": x[0].numel(),
        "pool": len(y),
        "samples": len(y) if shared.sizes is None else sum(shared.sizes),
        "drawn_anew": shared.sizes is not None and sum(shared.sizes) < len(y),
        "test_samples": len(shared.test[1]),
        "held_out": held_out,
        "batch_size": shared.batch_size,
    }
