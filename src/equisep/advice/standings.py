"""One of several choices by its test accuracy: the first, in the order of preference, shown to be within a margin of the best.

Selection over many choices: with k of them, one is within the margin only if the upper limit of its distance to *every* other
is, each limit one-sided at level 1 − α/k. A choice whose true distance to the best exceeds the margin passes with a probability
of at most α/k (it has to pass against the best among others), so that any of the k does with at most α: the recommended one is
worse than the best by more than the margin in at most α of all searches, however many are tried. Choices that are called below
another are so at 1 − α/(k(k − 1)), for all pairs. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from equisep.advice.paired_hits import CrossedMean, crossed_mean
from equisep.display import brief
from equisep.results import Interval
from equisep.shapes import Bool

MOST_MARGIN, SHARE_OF_ERRORS = 0.01, 0.2  # one point of accuracy, or a fifth of the errors, whichever is less
MOST_SEEDS, MOST_TEST = 200, 1_000_000  # beyond, nobody is told to add more
Hits = Bool[np.ndarray, "s n"]
Pairs = Mapping[tuple[int, int], CrossedMean]


@brief
@dataclass(frozen=True, slots=True)
class Standing:
    """Where the test accuracy of one choice stands among those that count; shares, not points.

    shortfall     how far it lies below the best mean, 0 for the best
    at_most       the limit that the true distance to the best of all stays below, at the level of the search
    below         whether it is told to be below another, all pairs taken together
    beside_best   the two-sided interval of its accuracy minus that of the best, paired by seed and sample; None for the best
    """

    trial: int
    shortfall: float
    at_most: float
    below: bool
    beside_best: Interval | None = None


@brief
@dataclass(frozen=True, slots=True)
class Enough:
    """What would tell, where the evidence does not: as many seeds, or else as many test samples; None where neither would."""

    seeds: int | None = None
    samples: int | None = None


@brief
@dataclass(frozen=True, slots=True)
class Selection:
    """The recommended choice, or None where the evidence does not tell, the best mean, and where each one stands."""

    margin: float
    best: int
    standings: tuple[Standing, ...]
    recommended: int | None
    enough: Enough


def select(hits: Mapping[int, Hits], *, order: Sequence[int], margin: float | None, level: float) -> Selection:
    """The first in `order` that is shown to be within the margin, from which test samples every seed's network has right.

    `hits` (seeds × test samples) are on the same seeds and samples for every choice. Of one choice alone nothing is shown.
    """
    means = {index: float(own.mean()) for index, own in hits.items()}
    best = max(means, key=lambda index: means[index])
    if margin is None:
        margin = min(MOST_MARGIN, SHARE_OF_ERRORS * (1 - means[best]))
    pairs = _pairs(hits)
    standings = {index: _standing(index, means, pairs, level) for index in hits}
    alone = len(hits) == 1  # with nothing to compare it with
    passed = [index for index in order if standings[index].at_most <= margin and not alone]
    return Selection(
        margin=margin,
        best=best,
        standings=tuple(standings.values()),
        recommended=passed[0] if passed else None,
        enough=Enough() if passed or alone else _enough(best, hits, pairs, margin, level),
    )


def _pairs(hits: Mapping[int, Hits]) -> Pairs:
    """By (a, b) how far the accuracy of b lies above that of a: paired by seed and by test sample."""
    pairs: dict[tuple[int, int], CrossedMean] = {}
    for a, b in combinations(hits, 2):
        above = crossed_mean(hits[b].astype(np.float64) - hits[a].astype(np.float64))
        pairs[a, b], pairs[b, a] = above, replace(above, value=-above.value)
    return pairs


def _standing(index: int, means: Mapping[int, float], pairs: Pairs, level: float) -> Standing:
    k, best = len(means), max(means, key=lambda other: means[other])
    others = [pairs[index, other] for other in means if other != index]
    upper = [each.value + each.reach(1 - (1 - level) / k) for each in others]
    lower = [each.value - each.reach(1 - (1 - level) / (k * (k - 1))) for each in others]
    return Standing(
        trial=index,
        shortfall=means[best] - means[index],
        at_most=max([0.0, *upper]),
        below=max(lower, default=0.0) > 0,
        beside_best=None if index == best else pairs[best, index].interval(level),
    )


def _enough(best: int, hits: Mapping[int, Hits], pairs: Pairs, margin: float, level: float) -> Enough:
    """How many seeds, or else test samples, would show the best to be within the margin, if means and spreads stay."""
    others = [pairs[best, other] for other in hits if other != best]
    probability = 1 - (1 - level) / len(hits)

    def tells(seeds: int, samples: int) -> bool:
        larger = (replace(each, seeds=seeds, samples=samples) for each in others)
        return all(each.value + each.reach(probability) <= margin for each in larger)

    seeds, samples = next(iter(hits.values())).shape
    more = next((count for count in range(seeds + 1, MOST_SEEDS + 1) if tells(count, samples)), None)
    if more is not None:
        return Enough(seeds=more)
    steps = (2**power * samples for power in range(1, 30))
    return Enough(samples=next((count for count in steps if count <= MOST_TEST and tells(seeds, count)), None))
