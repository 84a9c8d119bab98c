"""The course of one training: the law, loss, accuracies and nearest centers every few epochs, as arrays of an outcome.

A reading of all sites at each of a hundred epochs would make records of megabytes; what rules that stop a training look at is
eight numbers per epoch. A cell asks for them by `course`, and an outcome holds them as `course_epoch`, `course_rho`, ….
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from equisep.figures.cell import Training
from equisep.figures.curve_numbers import at_site, law_of
from equisep.figures.outcome import Curve, Curves, Outcome

PREFIX = "course_"


@dataclass(frozen=True, slots=True)
class Reached:
    """One reading of a course: the curves of training data, and what the validation data gave; `ncc` of the last layer.

    `nc1` is of the last layer, `minority_cosine` the mean between classifier rows of the minority, where they are read.
    """

    curves: Curves
    loss_validation: float | None = None
    accuracy_validation: float | None = None
    ncc_validation: float | None = None
    nc1: float | None = None
    minority_cosine: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A training over its epochs, entry by entry; a number that does not exist is None.

    `r` and `rho` are of the law of D on training data, `last` is D of the last layer, `loss` and `accuracy` are those of the
    training data. `classes` and `sites` are how many there are. `nc1` and `minority_cosine`, which came later, may be empty.
    """

    classes: int
    sites: int
    epoch: tuple[int, ...]
    r: Curve
    rho: Curve
    last: Curve
    loss: Curve
    accuracy: Curve
    accuracy_test: Curve
    loss_validation: Curve
    accuracy_validation: Curve
    ncc_validation: Curve
    nc1: Curve = ()
    minority_cosine: Curve = ()


COUNTS = ("classes", "sites")  # one number each
COLUMNS = tuple(entry.name for entry in fields(Course) if entry.name not in COUNTS)
LATER = ("nc1", "minority_cosine")  # columns that courses have only where they were asked for


def course_epochs(cell: Training) -> tuple[int, ...]:
    """The epochs of a cell's course: every so many, and the last."""
    return (*range(cell.course, cell.epochs, cell.course), cell.epochs) if cell.course > 0 else ()


def course_arrays(readings: Sequence[Reached], *, classes: int) -> dict[str, Curve]:
    """The course as arrays of an outcome; none without readings."""
    if not readings:
        return {}
    rows = [_row(each) for each in readings]
    counts: dict[str, Curve] = {"classes": (float(classes),), "sites": (float(len(readings[0].curves.sites)),)}
    kept = (name for name in COLUMNS if name not in LATER or any(row[name] is not None for row in rows))
    columns: dict[str, Curve] = {name: tuple(row[name] for row in rows) for name in kept}
    return {f"{PREFIX}{name}": values for name, values in {**counts, **columns}.items()}


def _row(reached: Reached) -> dict[str, float | None]:
    curves = reached.curves
    law = law_of(curves.fuzziness)
    return {
        "epoch": float(curves.epoch),
        "r": None if law is None else law.r,
        "rho": None if law is None else law.rho,
        "last": at_site(curves.fuzziness, -1),
        "loss": curves.loss,
        "accuracy": curves.accuracy,
        "accuracy_test": curves.accuracy_test,
        "loss_validation": reached.loss_validation,
        "accuracy_validation": reached.accuracy_validation,
        "ncc_validation": reached.ncc_validation,
        "nc1": reached.nc1,
        "minority_cosine": reached.minority_cosine,
    }


def course_of(outcome: Outcome) -> Course | None:
    """The course that an outcome holds; None without one, or where the training diverged."""
    if outcome.diverged is not None or f"{PREFIX}epoch" not in outcome.arrays:
        return None
    known = (name for name in COLUMNS if name != "epoch" and (name not in LATER or f"{PREFIX}{name}" in outcome.arrays))
    columns = {name: outcome.arrays[f"{PREFIX}{name}"] for name in known}
    counts = {name: int(outcome.arrays[f"{PREFIX}{name}"][0] or 0) for name in COUNTS}
    epochs = tuple(int(epoch) for epoch in outcome.arrays[f"{PREFIX}epoch"] if epoch is not None)
    return Course(epoch=epochs, **counts, **columns)  # type: ignore[arg-type]
