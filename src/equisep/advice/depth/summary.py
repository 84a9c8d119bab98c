"""The numbers of one trial as means with intervals over its seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equisep.law.seeds import seed_interval
from equisep.results import Interval

SHARE, ABOVE_ZERO = (0.0, 1.0), (0.0, math.inf)
# where an interval is cut, by the field of a trial; D is summed up by its logarithm
RANGES: Mapping[str, tuple[float, float]] = {
    "accuracy": SHARE,
    "accuracy_test": SHARE,
    "rho": ABOVE_ZERO,
    "r": (-1.0, 1.0),
    "effective_depth": ABOVE_ZERO,
    "ncc": SHARE,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """A mean, its interval, and how many seeds have the number; both None where no seed has, the latter also where one has."""

    mean: float | None
    interval: Interval | None
    n: int


def summary_of(
    values: Sequence[float | None], level: float, *, within: tuple[float, float] = (-math.inf, math.inf)
) -> Summary:
    """The mean and Student-t interval of the seeds that have a number."""
    known = [float(value) for value in values if value is not None]
    interval = seed_interval(known, level, within=within) if len(known) > 1 else None
    return Summary(math.fsum(known) / len(known) if known else None, interval, len(known))


def geometric_summary(values: Sequence[float | None], level: float) -> Summary:
    """The geometric mean of numbers above 0, and the interval of the mean logarithm, transformed back."""
    logs = summary_of([math.log(value) if value else None for value in values], level)
    if logs.mean is None:
        return logs
    band = logs.interval
    if band is not None:
        band = Interval(math.exp(band.low), math.exp(band.high), band.level, band.kind, band.n)
    return Summary(math.exp(logs.mean), band, logs.n)
