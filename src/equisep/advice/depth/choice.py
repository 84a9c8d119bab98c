"""From trials to a recommendation: the shallowest depth shown to be within a margin of the best, or none. No torch.

What is shown, and at which level, is in `equisep.advice.standings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from equisep.advice.depth.records import (
    RANGES,
    SHARE,
    DepthAdvice,
    DepthSettings,
    MinimalNccDepth,
    Summary,
    Trial,
    geometric_summary,
    summary_of,
)
from equisep.advice.paired_hits import crossed_mean
from equisep.advice.standings import Hits, select
from equisep.errors import InputError
from equisep.law.effective_depth import is_perfect
from equisep.law.seeds import seed_interval


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
    order = sorted(counting, key=lambda index: _size(trials[index], float(counting[index].mean())))
    selected = select(counting, order=order, margin=settings.margin, level=settings.level)
    least, near = _least(trials, counting, settings.level)
    return replace(
        advice,
        margin=selected.margin,
        recommended=selected.recommended,
        best=selected.best,
        standings=selected.standings,
        least=least,
        near_least=near,
        enough=selected.enough,
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


def minimal_ncc_depth(ncc_train: Mapping[int, Sequence[float | None]], *, epsilon: float = 0.01) -> MinimalNccDepth:
    """The least depth at which a network's last layer has an NCC training error of ε at most.

    `ncc_train` holds for each depth the accuracy of nearest class centers on the training samples at the last layer before the
    classifier, one number per network; None for one that diverged. The minimal NCC depth of a family is the least depth of which
    *some* network separates the samples, trained or not: what training reaches is an upper estimate, and a depth at which no
    network was seen to separate is not excluded.

    >>> from equisep.advice.depth import minimal_ncc_depth
    >>> minimal_ncc_depth({2: [0.93, 0.95], 4: [0.99, 1.0], 8: [1.0, 1.0]}, epsilon=0.01).depth
    4
    """
    if not ncc_train or not all(ncc_train.values()):
        raise InputError("A minimal NCC depth needs networks of one depth or more; found none. Train some.")
    counts = {depth: sum(is_perfect(value, epsilon) for value in values) for depth, values in sorted(ncc_train.items())}
    networks = {d: len(ncc_train[d]) for d in counts}
    best = {d: min((1 - value for value in ncc_train[d] if value is not None), default=None) for d in counts}
    return MinimalNccDepth(
        epsilon=epsilon,
        depth=next((d for d, count in counts.items() if count), None),
        every=next((d for d, count in counts.items() if count == networks[d]), None),
        separated=counts,
        networks=networks,
        best=best,
    )
