"""From trials to a recommendation: the shallowest depth shown to be within a margin of the best, or none. No torch.

Selection over many depths: with k trials that count, a trial is within the margin only if the upper limit of its distance to
*every* other trial is, each limit one-sided at level 1 − α/k. A trial whose true distance to the best exceeds the margin passes
with a probability of at most α/k (it has to pass against the best among others), so that any of the k does with at most α: the
recommended depth is worse than the best by more than the margin in at most α of all searches, however many depths are tried.
Trials that are called below another are so at 1 − α/(k(k − 1)), for all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from equisep.advice.crossed import CrossedMean, crossed_mean
from equisep.advice.depth.minimal_ncc import minimal_ncc_depth
from equisep.advice.depth.records import (
    MOST_MARGIN,
    SHARE_OF_ERRORS,
    DepthAdvice,
    DepthSettings,
    Enough,
    Standing,
    Trial,
)
from equisep.advice.depth.summary import RANGES, SHARE, Summary, geometric_summary, summary_of
from equisep.law.seeds import seed_interval
from equisep.shapes import Bool

MOST_SEEDS, MOST_TEST = 200, 1_000_000  # beyond, nobody is told to add more
Hits = Bool[np.ndarray, "s n"]
Pairs = Mapping[tuple[int, int], CrossedMean]


def choose_depth(trials: Sequence[Trial], hits: Sequence[Hits | None], settings: DepthSettings) -> DepthAdvice:
    """The advice that follows from trials and from which test samples every seed's network classifies rightly.

    `hits` (seeds × test samples) are those of each trial, on the same seeds and samples; None where a network diverged.
    """
    trials = tuple(
        replace(trial, summaries=_summaries(trial, own, settings.level))
        for trial, own in zip(trials, hits, strict=True)
    )
    counting = {
        index: own
        for index, (trial, own) in enumerate(zip(trials, hits, strict=True))
        if own is not None and fits(trial, settings.fit)
    }
    left_out = tuple(index for index in range(len(trials)) if index not in counting)
    advice = DepthAdvice(trials, settings.margin or 0.0, left_out=left_out, settings=settings)
    advice = replace(advice, minimal_ncc=minimal_ncc_depth(_top_accuracies(trials), epsilon=settings.epsilon))
    if not counting:
        return advice
    means = {index: float(own.mean()) for index, own in counting.items()}
    best = max(means, key=lambda index: means[index])
    margin = min(MOST_MARGIN, SHARE_OF_ERRORS * (1 - means[best])) if settings.margin is None else settings.margin
    pairs = _pairs(counting)
    standings = tuple(_standing(index, means, pairs, settings.level) for index in counting)
    order = sorted(standings, key=lambda each: _size(trials[each.trial], means[each.trial]))
    alone = len(counting) == 1  # with nothing to compare it with
    passed = [each.trial for each in order if each.at_most <= margin and not alone]
    least, near = _least(trials, counting, settings.level)
    return replace(
        advice,
        margin=margin,
        recommended=passed[0] if passed else None,
        best=best,
        standings=standings,
        least=least,
        near_least=near,
        enough=Enough() if passed or alone else _enough(best, counting, pairs, margin, settings.level),
    )


def fits(trial: Trial, least: float) -> bool:
    """Whether every network of a trial was trained to the end and they classify the training samples, by their mean."""
    share = trial.mean_accuracy
    return not any(trial.diverged) and share is not None and share >= least


def _size(trial: Trial, accuracy: float) -> tuple[int, int, float]:
    """What makes a trial the smaller choice; of one shape at several rates the more accurate comes first."""
    return trial.depth, trial.parameters, -accuracy


def _summaries(trial: Trial, own: Hits | None, level: float) -> dict[str, Summary]:
    """Means and intervals over seeds; of test accuracy over seeds and test samples."""
    known = {name: summary_of(getattr(trial, name), level, within=within) for name, within in RANGES.items()}
    known["last"] = geometric_summary(trial.last, level)
    if own is not None:
        interval = crossed_mean(own.astype(np.float64)).interval(level, within=SHARE)
        known["accuracy_test"] = replace(known["accuracy_test"], interval=interval)
    return known


def _top_accuracies(trials: Sequence[Trial]) -> dict[int, tuple[float | None, ...]]:
    """Nearest-center accuracies at the last layer by depth, of all widths and rates."""
    tops: dict[int, tuple[float | None, ...]] = {}
    for trial in trials:
        tops[trial.depth] = (*tops.get(trial.depth, ()), *trial.ncc)
    return tops


def _pairs(counting: Mapping[int, Hits]) -> Pairs:
    """By (a, b) how far the accuracy of b lies above that of a: paired by seed and by test sample."""
    pairs: dict[tuple[int, int], CrossedMean] = {}
    for a, b in combinations(counting, 2):
        above = crossed_mean(counting[b].astype(np.float64) - counting[a].astype(np.float64))
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


def _least(trials: Sequence[Trial], counting: Mapping[int, Hits], level: float) -> tuple[int | None, tuple[int, ...]]:
    """The trial with the least final D, and those whose ln D is not told to be above it, paired by seed."""
    known = {index: each for index in counting if (each := trials[index].mean_last) is not None}
    if not known:
        return None, ()
    least = min(known, key=lambda index: known[index])
    near = []
    for index in known:
        if index == least:
            continue
        steps = [math.log(a / b) for a, b in zip(trials[index].last, trials[least].last, strict=True) if a and b]
        # two-sided at 1 − 2α/(k − 1): its lower limit is one-sided at 1 − α/(k − 1)
        if seed_interval(steps, 1 - 2 * (1 - level) / max(len(known) - 1, 1)).low <= 0:
            near.append(index)
    return least, tuple(near)


def _enough(best: int, counting: Mapping[int, Hits], pairs: Pairs, margin: float, level: float) -> Enough:
    """How many seeds, or else test samples, would show the best depth to be within the margin, if means and spreads stay."""
    others = [pairs[best, other] for other in counting if other != best]
    probability = 1 - (1 - level) / len(counting)

    def tells(seeds: int, samples: int) -> bool:
        larger = (replace(each, seeds=seeds, samples=samples) for each in others)
        return all(each.value + each.reach(probability) <= margin for each in larger)

    seeds, samples = next(iter(counting.values())).shape
    more = next((count for count in range(seeds + 1, MOST_SEEDS + 1) if tells(count, samples)), None)
    if more is not None:
        return Enough(seeds=more)
    steps = (2**power * samples for power in range(1, 30))
    return Enough(samples=next((count for count in steps if count <= MOST_TEST and tells(seeds, count)), None))
