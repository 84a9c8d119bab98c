"""What the number of samples does to D: D of the population behind them, and D of nested parts of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from equisep.data import Batches
from equisep.data.ordered import OWN_BATCH
from equisep.data.sampling import permutation
from equisep.errors import InputError
from equisep.labels import as_tensor
from equisep.law.population import corrected
from equisep.measuring.measure import measure
from equisep.measuring.request import FOLDS, Options, plain_number
from equisep.progress import Watched, callback, watched
from equisep.results import Corrected, Profile
from equisep.separation import Assignments, Center, Normalization, SiteTask, TrainSite, Weighting
from equisep.separation.arrays import labeled_rows
from equisep.separation.assignments import RELABELINGS
from equisep.separation.fuzziness import fuzziness_of
from equisep.separation.noise.mean_noise import MOST_CLASSES
from equisep.separation.site import estimated
from equisep.separation.subspace import AS_GIVEN

SUBSAMPLED = ("fuzziness", "null")
_USE = 31  # of the seed: which samples of a class come first


def corrected_fuzziness(
    x: Any,
    y: Any,
    *,
    weighting: Weighting = "sample",
    center: Center | None = None,
    normalization: Normalization = "none",
    tol: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Corrected:
    """D = Tr(SSw SSb⁺) of the population that features x (n × …, flattened) with integer labels y were drawn from.

    Plain `fuzziness` is D of these samples, exactly. As an estimate of the population's it is too small where samples are few
    and features many: noise of the class means adds to SSb. The result has `value`, `low` and `high`; where D cannot be
    told from these samples `value` is None, `reason` says why and `needed_per_class` about how many samples would do. Samples
    must be independent; `seed` deals out the ten folds. The other options are those of `fuzziness`.

    >>> import numpy, equisep
    >>> y = numpy.arange(300) % 3
    >>> x = 3 * numpy.eye(3, 20)[y] + numpy.random.default_rng(0).normal(size=(300, 20))
    >>> print(round(equisep.fuzziness(x, y), 4), equisep.corrected_fuzziness(x, y))  # of the samples, of the population
    0.6746 0.6966 [0.5879, 0.825]
    """
    options = Options(
        weighting=weighting, center=center, normalization=normalization, tol=tol, level=level, seed=plain_number(seed)
    )
    rows = labeled_rows(x, y, asked="`corrected_fuzziness`")
    counts = torch.bincount(rows.labels, minlength=rows.classes)
    if int(counts.min()) < 2 or len(rows.labels) < 2 * FOLDS:
        raise InputError(
            f"`corrected_fuzziness` needs 2 samples or more of every class and {2 * FOLDS} in all; found {len(rows.labels)}, "
            f"{int(counts.min())} of class {int(rows.names[counts.argmin()])}. Leave that class out, or take more samples."
        )
    if rows.classes > MOST_CLASSES:
        raise InputError(f"`corrected_fuzziness` takes up to {MOST_CLASSES} classes; found {rows.classes}.")
    task = SiteTask(
        rows.classes,
        options.convention,
        folds=FOLDS,
        relabelings=RELABELINGS,
        centers=False,
        steps=AS_GIVEN,
        seed=options.seed,
    )
    dealt = Assignments.of(
        rows.labels, first=0, classes=rows.classes, folds=FOLDS, relabelings=RELABELINGS, seed=options.seed
    )
    site = TrainSite(task)
    site.first([rows.features], dealt)
    site.turn()
    site.second([rows.features], dealt)
    (found,) = estimated([site.statistics()])
    assert found.population is not None
    return corrected(
        found.population,
        plain=fuzziness_of(found.spread, options.convention),
        chance=found.chance,
        counts=counts.tolist(),
        level=options.level,
    )


@watched
def subsamples(
    model: nn.Module,
    train: Any,
    per_class: Sequence[int],
    *,
    seed: int = 0,
    progress: Watched = None,
    **options: Any,
) -> tuple[Profile, ...]:
    """The profile of D (`metrics` fuzziness and null) for each number of samples per class, the smaller part of the larger.

    `train` is a pair (X, Y) or `Batches`: what can be taken apart; a part keeps the order in which its samples were drawn. Where
    D of these parts rises with their size, it is noise of the class means that it is short of, and `corrected` is the number to
    compare. The options are those of `measure`.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> parts = equisep.measuring.subsamples(model, (x, y), per_class=(10, 30))
    >>> [sum(part.counts) for part in parts]
    [30, 90]
    """
    progress = callback(progress)
    data = _taken_apart(train)
    y = data.y.cpu().numpy()
    counts = np.bincount(y)
    smallest = int(counts[counts > 0].min())
    asked = _asked_sizes(per_class)
    if asked[-1] > smallest:
        rare = int(np.flatnonzero(counts == smallest)[0])
        raise InputError(
            f"A subsample of {asked[-1]} per class is larger than the data: class {rare} has {smallest} samples. "
            f"Ask for {smallest} or fewer."
        )
    order = [
        (members := np.flatnonzero(y == k))[permutation(len(members), seed=seed, use=_USE, key=int(k))]
        for k in np.unique(y)
    ]
    profiles = []
    for step, each in enumerate(asked):
        rows = torch.from_numpy(np.sort(np.concatenate([members[:each] for members in order])))
        given = {"metrics": SUBSAMPLED, "coordinates": 0, "whole": False, **options}
        profiles.append(measure(model, data.subset(rows), seed=seed, **given))
        progress("subsamples", step + 1, len(asked))
    return tuple(profiles)


def _asked_sizes(per_class: Any) -> list[int]:
    """How many samples per class each part has, the smallest first."""
    own = per_class.tolist() if hasattr(per_class, "tolist") else per_class
    listed = isinstance(own, Iterable) and not isinstance(own, str | Mapping)
    sizes = [plain_number(size) for size in own] if listed else [own]
    whole = all(isinstance(size, int) and not isinstance(size, bool) and size > 1 for size in sizes)
    if not (listed and sizes and whole):
        found = ", ".join(map(repr, sizes)) or "none"
        raise InputError(
            f"Subsamples are listed as whole numbers such as (50, 100), of 2 samples per class or more; found {found}."
        )
    return sorted(set(sizes))


def _taken_apart(train: Any) -> Batches:
    """The data as batches of ours."""
    if isinstance(train, Batches):
        return train
    if isinstance(train, tuple | list) and len(train) == 2 and hasattr(train[0], "shape"):
        return Batches(as_tensor(train[0], what="The samples"), train[1], batch_size=OWN_BATCH)
    raise InputError(
        f"Subsamples need data that can be taken apart: a pair (X, Y) or `Batches`; found {type(train).__name__}."
    )
