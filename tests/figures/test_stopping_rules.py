"""Rules that stop a training, replayed on courses whose answers are known, and as a Tracker follows them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from equisep.figures.catalogue import figure_of
from equisep.figures.cell import Training
from equisep.figures.course import COLUMNS, LATER, Course, Reached, course_arrays, course_epochs, course_of
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.quantities import quantity
from equisep.figures.rules import check_claims
from equisep.figures.stopping import RULES, Patience, stop_of
from equisep.tracking import Stopping
from equisep.tracking.stopping import Watched

EPOCHS = 30


def readings(**given: list[Any]) -> list[Reached]:
    """A training that gets better until epoch 10 and then stands still; D falls as a law of ratio ρ."""
    reached = []
    for at in range(EPOCHS):
        left = max(0, 9 - at)
        own = {
            "rho": 0.5 + 0.02 * left,
            "accuracy_test": 0.8 - 0.01 * left,
            "loss_validation": 0.5 + 0.01 * abs(at - 4),  # least at the fifth epoch
            "accuracy_validation": 0.8 - 0.01 * abs(at - 14),
            "ncc_validation": 0.8 - 0.01 * left,
            "accuracy": min(1.0, 0.9 + 0.01 * at),
            **{name: values[at] for name, values in given.items()},
        }
        # one site off the line by an amount that shrinks, so that r has a value of its own
        curve = tuple(own["rho"] ** site * (1 + (0.2 + 0.02 * left) * (site == 1)) for site in range(5))
        sites = tuple(f"s{site}" for site in range(5))
        curves = Curves(
            epoch=at + 1, reading="eval", sites=sites, fuzziness=curve, loss=0.1, accuracy=own["accuracy"],
            accuracy_test=own["accuracy_test"],
        )  # fmt: skip
        rest = {name: own[name] for name in ("loss_validation", "accuracy_validation", "ncc_validation")}
        reached.append(Reached(curves, **rest))
    return reached


def outcome(**given: list[Any]) -> Outcome:
    made = readings(**given)
    return Outcome(readings=(made[-1].curves,), arrays=course_arrays(made, classes=10))


def course(**given: list[Any]) -> Course:
    known = course_of(outcome(**given))
    assert known is not None
    return known


def test_a_course_is_kept_as_arrays_and_comes_back() -> None:
    known = course()
    assert (known.classes, known.sites) == (10, 5) and known.epoch == tuple(range(1, EPOCHS + 1))
    assert known.rho[-1] is not None and known.rho[-1] < 0.53 and known.last[-1] == pytest.approx(0.5**4)
    assert len(outcome().arrays) == len(COLUMNS) - len(LATER) + 2 and course_arrays([], classes=10) == {}
    assert course_of(Outcome()) is None
    assert course_of(Outcome(arrays=outcome().arrays, diverged=3)) is None


def test_the_epochs_of_a_course_end_with_the_last() -> None:
    assert course_epochs(Training(epochs=7)) == ()
    assert course_epochs(Training(epochs=7, course=3)) == (3, 6, 7)
    assert course_epochs(Training(epochs=6, course=3)) == (3, 6)


@pytest.mark.parametrize("rule", ["law", "law10"])
def test_the_law_stops_where_a_tracker_that_asks_after_every_epoch_would(rule: str) -> None:
    """Settled means nothing better in the window; everything stands still from epoch 10 on."""
    known = course()
    stopping = RULES[rule][1]
    assert isinstance(stopping, Stopping)
    watched = [Watched(*row) for row in zip(known.epoch, known.rho, known.last, known.ncc_validation, strict=True)]
    asked = next(at for at in range(EPOCHS) if stopping.settled(watched[: at + 1]))
    stop = stop_of(known, rule)
    assert stop is not None and stop.kept == asked and stop.trained == known.epoch[asked] == 10 + stopping.window


def test_early_stopping_waits_and_keeps_the_best() -> None:
    known = course()
    loss, patient, accuracy = (stop_of(known, rule) for rule in ("loss", "loss10", "accuracy"))
    assert loss is not None and (loss.trained, loss.kept) == (10, 4)
    assert patient is not None and (patient.trained, patient.kept) == (15, 4)
    assert accuracy is not None and (accuracy.trained, accuracy.kept) == (20, 14)
    r = stop_of(known, "r")
    assert r is not None and r.kept == r.trained - 1, "r alone keeps the network as it is"


def test_a_rule_that_never_stops_has_trained_everything() -> None:
    falling = [1.0 - 0.01 * at for at in range(EPOCHS)]
    never = stop_of(course(loss_validation=falling), "loss")
    assert never is not None and (never.trained, never.kept) == (EPOCHS, EPOCHS - 1)
    better = [0.5 + 0.01 * at for at in range(EPOCHS)]
    still = outcome(ncc_validation=better)
    assert quantity(still, "stop_law") == EPOCHS and quantity(still, "saved_law") == 0 == quantity(still, "lost_law")


def test_a_number_that_is_missing_is_not_better() -> None:
    gaps = [None if at in (3, 5) else 0.5 + 0.01 * abs(at - 4) for at in range(EPOCHS)]
    stop = stop_of(course(loss_validation=gaps), "loss")
    assert stop is not None and (stop.trained, stop.kept) == (10, 4)
    nothing: list[Any] = [None] * EPOCHS
    assert stop_of(course(loss_validation=nothing), "loss") is None
    assert stop_of(course(ncc_validation=nothing), "law") is None


def test_what_rules_save_and_cost() -> None:
    known = outcome()
    assert quantity(known, "stop_law") == 15 and quantity(known, "saved_law") == pytest.approx(0.5)
    assert quantity(known, "lost_law") == pytest.approx(0)
    assert quantity(known, "lost_loss") == pytest.approx(5), "at the fifth epoch five points were missing"
    assert quantity(known, "behind_law") == pytest.approx(-5)
    assert quantity(known, "fitted_epoch") == 11 and quantity(known, "test_settled") == 10
    assert quantity(Outcome(), "lost_law") is None is quantity(Outcome(), "law_emerged")


def test_when_the_law_and_collapse_emerged() -> None:
    rho = [0.9 - 0.02 * at for at in range(EPOCHS)]  # NC1 is ρ⁴/10: at most 0.01 from ρ = 0.562 on
    known = outcome(rho=rho)
    first = next(at for at, value in enumerate(rho) if value**4 / 10 <= 0.01) + 1
    assert quantity(known, "collapse_emerged") == first
    law = next(row for row in range(EPOCHS) if (course(rho=rho).r[row] or 0) <= -0.996) + 1
    assert quantity(known, "law_emerged") == law and quantity(known, "collapse_lag") == first - law
    ahead = quantity(known, "law_ahead")
    assert ahead is not None and math.isclose(ahead, (quantity(known, "stop_law") or 0) - law)


def test_the_figure_of_ours_declares_what_can_be_judged() -> None:
    figure = figure_of("equisep2026/stopping")
    check_claims(figure)
    assert figure.seeds >= 10 and len(figure.series) == 10
    assert {type(rule) for _, rule in RULES.values()} == {Stopping, Patience}
    for series in figure.series:
        cell = figure.cell(series)
        assert isinstance(cell, Training) and cell.validation and cell.course == 1
