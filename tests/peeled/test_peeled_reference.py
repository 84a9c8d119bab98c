"""The semidefinite form by cvxpy and Clarabel beside our own solver, and every way it can fail to answer."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from closeness import close
from equisep.errors import InputError, MissingExtraError, NumericalError
from equisep.peeled.problem import Problem
from equisep.peeled.solvers import reference
from equisep.peeled.solvers.reduced import solve_general
from equisep.peeled.solvers.reference import solve_reference


def two_groups(ratio: float, *, energy: float = 5.0) -> Problem:
    return Problem.two_groups(5, 5, ratio, feature_energy=energy, weight_energy=1)


def long_tail(classes: int) -> Problem:
    weights = 100.0 ** (-np.arange(classes) / (classes - 1))
    return Problem.of_weights(weights / weights.sum(), feature_energy=5, weight_energy=1)


PROBLEMS = {
    "balanced": two_groups(1),
    "before the threshold": two_groups(10),
    "at the threshold": two_groups(12.1924),
    "after the threshold": two_groups(100),
    "minority absent": two_groups(math.inf),
    "three groups": Problem.of_groups([3, 4, 5], [1, 0.3, 0.05], feature_energy=5, weight_energy=1),
    "other energies": Problem.of_weights([1, 0.5, 0.2, 0.1], feature_energy=0.3, weight_energy=7),
    "two classes": Problem.of_weights([1, 0.2], feature_energy=2, weight_energy=1),
    "a long tail": long_tail(16),
}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_the_semidefinite_form_and_the_general_solver_agree(problem: Problem) -> None:
    theirs, ours = solve_reference(problem), solve_general([problem])[0]
    assert theirs.result == ours.result == "solved"
    assert theirs.solver == "cvxpy"
    close(theirs.value, ours.value, rtol=1e-6)
    assert np.abs(theirs.Z - ours.Z).max() < 1e-2 * np.abs(ours.Z).max()
    assert theirs.iterations > 0


@pytest.mark.parametrize("problem", [two_groups(10), long_tail(8)], ids=["two groups", "a long tail"])
def test_the_certificate_is_ours_and_holds(problem: Problem) -> None:
    theirs, best = solve_reference(problem), solve_general([problem], tolerance=1e-11)[0]
    assert theirs.certificate.feasibility <= 1e-12
    assert -1e-9 * best.value <= theirs.value - best.value <= theirs.certificate.gap
    assert theirs.certificate.relative_gap < 1e-3


def test_what_cvxpy_calls_optimal_is_not_solved_unless_the_gap_says_so() -> None:
    """At E_H = 400 the loss, 1e-8, is below the solver's absolute tolerance: `optimal` to cvxpy, and 2 % off the budget."""
    found = solve_reference(two_groups(10, energy=400), throw=False)
    assert found.result.word == "stopped"
    assert found.certificate.relative_gap > 1
    with pytest.raises(NumericalError, match=r"cvxpy solver .* stopped after"):
        found.or_raise()


def test_the_gap_decides_not_the_word_of_cvxpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """At Clarabel's own tolerance cvxpy says `optimal` with a gap of 1e-5: that proves nothing, and is not called solved."""
    loose = solve_reference(two_groups(100), precision=None, throw=False)
    assert 1e-6 < loose.certificate.relative_gap < 1e-3 and loose.result.word == "stopped"
    best = solve_general([two_groups(10)])[0]
    monkeypatch.setattr(reference, "_solve", lambda problem, precision, unit: (17, best.Z))
    found = solve_reference(two_groups(10))
    assert found.certificate.relative_gap < 1e-9 and (found.result, found.iterations) == ("solved", 17)


def test_a_unit_in_which_clarabel_gives_up_is_left_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    best, units = solve_general([two_groups(10)])[0], []

    def gives_up(problem: Problem, precision: float | None, unit: float) -> tuple[int, np.ndarray]:
        units.append(unit)
        return len(units), best.Z * (0.9 if len(units) == 1 else 1.0)

    monkeypatch.setattr(reference, "_solve", gives_up)
    found = solve_reference(two_groups(10))
    assert found.result == "solved" and found.iterations == 2
    close(units, [1.0, 5.5], rtol=1e-12)


def test_a_stricter_gap_than_it_reaches_is_stopped() -> None:
    assert solve_reference(two_groups(10), tolerance=1e-14, throw=False).result.word == "stopped"


def test_without_cvxpy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(MissingExtraError, match=r'pip install "equisep\[peeled\]"'):
        solve_reference(two_groups(10))


def test_a_solver_that_breaks_down_is_a_numerical_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import cvxpy

    def breaks(*args: object, **kwargs: object) -> None:
        raise cvxpy.error.SolverError("Solver 'CLARABEL' failed.\nTry another.")

    monkeypatch.setattr(cvxpy.Problem, "solve", breaks)
    with pytest.raises(NumericalError, match=r"with 10 classes and gave no point: Solver 'CLARABEL' failed\. Use the"):
        solve_reference(two_groups(10))


def test_a_solver_that_returns_nothing_is_a_numerical_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import cvxpy

    monkeypatch.setattr(cvxpy.Problem, "solve", lambda *args, **kwargs: None)
    with pytest.raises(NumericalError, match="gave no point: status `None`"):
        solve_reference(two_groups(10))


def test_too_many_classes_name_the_other_solvers() -> None:
    with pytest.raises(
        InputError, match=r"at most 100 classes; found 101, a semidefinite matrix of 202 × 202\. Use the"
    ):
        solve_reference(long_tail(101))
