"""corrected_fuzziness: D of the population behind labeled features, from plain tensors or arrays."""

from __future__ import annotations

from typing import Any

import torch

from equisep.errors import InputError
from equisep.law.population import corrected
from equisep.measuring.options import FOLDS
from equisep.results import Corrected
from equisep.separation import Assignments, Center, Convention, Normalization, SiteTask, TrainSite, Weighting
from equisep.separation.arrays import labeled_rows
from equisep.separation.assignments import RELABELINGS
from equisep.separation.fuzziness import fuzziness_of
from equisep.separation.noise.mean_noise import MOST_CLASSES
from equisep.separation.site import estimated
from equisep.separation.subspace import AS_GIVEN


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
    told from chance `value` is None, `reason` says why and `needed_per_class` about how many samples would do. Samples
    must be independent; `seed` deals out the ten folds. The other options are those of `fuzziness`.

    >>> import numpy, equisep
    >>> y = numpy.arange(300) % 3
    >>> x = 3 * numpy.eye(3, 20)[y] + numpy.random.default_rng(0).normal(size=(300, 20))
    >>> print(round(equisep.fuzziness(x, y), 4), equisep.corrected_fuzziness(x, y))  # of the samples, of the population
    0.6746 0.6959 [0.5875, 0.8248]
    """
    convention = Convention(weighting=weighting, center=center, normalization=normalization, tol=tol)
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
        rows.classes, convention, folds=FOLDS, relabelings=RELABELINGS, centers=False, steps=AS_GIVEN, seed=seed
    )
    dealt = Assignments.of(rows.labels, first=0, classes=rows.classes, folds=FOLDS, relabelings=RELABELINGS, seed=seed)
    site = TrainSite(task)
    site.first([rows.features], dealt)
    site.turn()
    site.second([rows.features], dealt)
    (found,) = estimated([site.statistics()])
    assert found.population is not None
    return corrected(
        found.population.value,
        found.population.left_out,
        plain=fuzziness_of(found.spread, convention),
        chance=found.chance,
        counts=counts.tolist(),
        excess=found.population.excess,
        chance_error=found.population.chance_error,
        level=level,
    )
