"""When rules would have stopped a training, replayed on its course: the law that has settled, and early stopping.

`law`           `equisep.tracking.Stopping`, the very rule that a `Tracker` follows: ρ, D of the last layer and nearest centers on
                validation data no longer get better. The network is kept as it is at the stop.
`loss`, `accuracy`      the usual early stopping: the loss (the accuracy) on validation data was not better for so many readings.
                The network of the best reading is kept.
`r`             the correlation of the law alone: not better for so many readings. The network is kept as it is.

A rule that never stops has trained the whole schedule, and keeps the last network (the best, in early stopping).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from equisep.figures.course import Course, course_of
from equisep.figures.curve_numbers import FITTED
from equisep.figures.outcome import Curve, Outcome
from equisep.law.emergence import Standing, collapse_standing, emerged, minority_standing, verdict_standing
from equisep.results import law_verdict
from equisep.tracking.stopping import Stopping, Watched

NEAR = 0.005  # half a point of test accuracy


@dataclass(frozen=True, slots=True)
class Patience:
    """Early stopping: `name` of the course was not better for so many readings; `keeps` the network of the best one."""

    name: str
    greatest: bool = False
    readings: int = 5
    keeps: bool = True


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a rule ends a training: after how many epochs, and the place in the course of the network that is kept."""

    trained: int
    kept: int


# name → label, rule
RULES: Mapping[str, tuple[str, Stopping | Patience]] = {
    "law": ("law settled", Stopping()),
    "law10": ("law settled in 10 readings", Stopping(window=10)),
    "loss": ("validation loss", Patience("loss_validation")),
    "loss10": ("validation loss, patience 10", Patience("loss_validation", readings=10)),
    "accuracy": ("validation accuracy", Patience("accuracy_validation", greatest=True)),
    "accuracy10": ("validation accuracy, patience 10", Patience("accuracy_validation", greatest=True, readings=10)),
    "r": ("r alone", Patience("r", keeps=False)),
}
USUAL: Mapping[str, str] = {"law": "loss", "law10": "loss10", "r": "loss"}  # the usual rule of the same patience


def stop_of(course: Course, rule: str) -> Stop | None:
    """Where a rule of `RULES` would have stopped; None where a number that it looks at never exists."""
    return _stop(course, RULES[rule][1])


@lru_cache(maxsize=65536)
def _stop(course: Course, rule: Stopping | Patience) -> Stop | None:
    if isinstance(rule, Patience):
        return _by_patience(course, rule)
    watched = [Watched(*row) for row in zip(course.epoch, course.rho, course.last, course.ncc_validation, strict=True)]
    if all(each.ncc is None for each in watched):  # there are no validation data
        return None
    at = rule.first_settled(watched)
    last = len(course.epoch) - 1
    place = last if at is None else at
    return Stop(course.epoch[place], place)


def _by_patience(course: Course, rule: Patience) -> Stop | None:
    """A reading without the number is one that was not better."""
    values: Curve = getattr(course, rule.name)
    if all(value is None for value in values):
        return None
    sign = -1.0 if rule.greatest else 1.0
    best, least, place = 0, math.inf, 0
    for place, value in enumerate(values):
        if value is not None and sign * value < least:
            best, least = place, sign * value
        if place - best == rule.readings:
            break
    return Stop(course.epoch[place], best if rule.keeps else place)


def trained_epochs(outcome: Outcome, rule: str) -> float | None:
    """The epochs that are trained under a rule."""
    stop = _of(outcome, rule)
    return None if stop is None else float(stop.trained)


def saved_share(outcome: Outcome, rule: str) -> float | None:
    """The share of the schedule's epochs that a rule saves."""
    course, stop = course_of(outcome), _of(outcome, rule)
    return None if course is None or stop is None else 1 - stop.trained / course.epoch[-1]


def points_lost(outcome: Outcome, rule: str) -> float | None:
    """By how many points of test accuracy the network that a rule keeps is below that of the whole schedule."""
    course, stop = course_of(outcome), _of(outcome, rule)
    if course is None or stop is None:
        return None
    last, kept = course.accuracy_test[-1], course.accuracy_test[stop.kept]
    return None if last is None or kept is None else 100 * (last - kept)


def points_behind(outcome: Outcome, rule: str) -> float | None:
    """By how many points of test accuracy a rule is below early stopping on validation loss with the same patience."""
    own, usual = points_lost(outcome, rule), points_lost(outcome, USUAL[rule])
    return None if own is None or usual is None else own - usual


def _of(outcome: Outcome, rule: str) -> Stop | None:
    course = course_of(outcome)
    return None if course is None else stop_of(course, rule)


def emergence_epoch(outcome: Outcome, what: str) -> float | None:
    """The epoch at which the `law`, neural `collapse` or `minority` collapse emerged, by `equisep.law.emergence`, if it did.

    Where NC1 = Tr(SSw SSb⁺)/K was not read, classes are equally large, and it is D of the last layer over K.
    """
    course = course_of(outcome)
    if course is None:
        return None
    standings: list[Standing | None]
    if what == "law":
        verdicts = (law_verdict(*pair, sites=course.sites) for pair in zip(course.r, course.rho, strict=True))
        standings = [verdict_standing(verdict) for verdict in verdicts]
    elif what == "minority":
        standings = [minority_standing(value) for value in course.minority_cosine]
    else:
        nc1 = course.nc1 or tuple(None if value is None else value / course.classes for value in course.last)
        standings = [collapse_standing(value) for value in nc1]
    if not standings:
        return None
    first = emerged(course.epoch, standings, what=what).first
    return None if first is None else float(first)


def law_ahead(outcome: Outcome) -> float | None:
    """By how many epochs the law had emerged before the rule `law` stopped."""
    emerged_at, stop = emergence_epoch(outcome, "law"), trained_epochs(outcome, "law")
    return None if emerged_at is None or stop is None else stop - emerged_at


def collapse_lag(outcome: Outcome) -> float | None:
    """By how many epochs neural collapse emerged after the law."""
    law, collapse = emergence_epoch(outcome, "law"), emergence_epoch(outcome, "collapse")
    return None if law is None or collapse is None else collapse - law


def after_law(outcome: Outcome, what: str) -> float | None:
    """By how many epochs `what` emerged after the law; where one of them did not emerge, at least (or at most) by so many.

    What did not emerge by the last epoch may do so later: its epoch is then taken to be the last. None where neither did.
    """
    course = course_of(outcome)
    law, other = emergence_epoch(outcome, "law"), emergence_epoch(outcome, what)
    if course is None or (law is None and other is None):
        return None
    last = float(course.epoch[-1])
    return (last if other is None else other) - (last if law is None else law)


def cosine_gain(outcome: Outcome) -> float | None:
    """By how much the mean cosine between minority classifiers is higher at the end than at the first reading of the course."""
    course = course_of(outcome)
    if course is None or not course.minority_cosine:
        return None
    first, last = course.minority_cosine[0], course.minority_cosine[-1]
    return None if first is None or last is None else last - first


def fitted_epoch(outcome: Outcome) -> float | None:
    """The first epoch at which more than 99 % of the training samples are named rightly."""
    course = course_of(outcome)
    if course is None:
        return None
    pairs = zip(course.epoch, course.accuracy, strict=True)
    return next((float(epoch) for epoch, share in pairs if share is not None and share > FITTED), None)


def test_settled_epoch(outcome: Outcome) -> float | None:
    """The first epoch from which test accuracy stays within half a point of what it is in the end."""
    course = course_of(outcome)
    if course is None or course.accuracy_test[-1] is None:
        return None
    first, end = course.epoch[-1], course.accuracy_test[-1]
    for epoch, share in zip(reversed(course.epoch), reversed(course.accuracy_test), strict=True):
        if share is None or abs(share - end) > NEAR:
            break
        first = epoch
    return float(first)
