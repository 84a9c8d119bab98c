"""One call: what states a problem, which solver answers, what is refused, and what importing the wing costs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import equisep
from closeness import close
from equisep import peeled
from equisep.errors import InputError, NumericalError

E = {"feature_energy": 5, "weight_energy": 1}


def test_sizes_weights_and_groups_state_the_same_problem() -> None:
    by_size = peeled.solve(sizes=[500] * 5 + [50] * 5, **E)
    by_weight = peeled.solve(weights=[10] * 5 + [1] * 5, **E)
    by_group = peeled.solve(groups=[5, 5], weights=[10, 1], **E)
    for solution in (by_size, by_weight, by_group):
        assert solution.result == "solved" and solution.solver == "reduced"
        close(solution.geometry.within(1), 0.517496, rtol=1e-5)  # a reference value
    close(by_size.value * 2750, by_weight.value * 50)
    close(by_group.value, by_weight.value)
    close(peeled.solve([500] * 5 + [50] * 5, **E, loss_weights=[1] * 5 + [10] * 5).geometry.within(0), -1 / 9)


@pytest.mark.parametrize("solver", ["reduced", "general", "nonconvex"])
def test_every_solver_gives_the_same_value(solver: str) -> None:
    auto = peeled.solve(weights=[1, 1, 0.2, 0.2], **E)
    other = peeled.solve(weights=[1, 1, 0.2, 0.2], **E, solver=solver)
    assert other.result == "solved" and other.solver == solver
    close(other.value, auto.value, rtol=1e-7)
    assert pytest.approx(auto.Z, abs=1e-3) == other.Z


def test_cvxpy_gives_the_same_value() -> None:
    pytest.importorskip("cvxpy")
    auto = peeled.solve(weights=[1, 1, 0.2, 0.2], **E)
    other = peeled.solve(weights=[1, 1, 0.2, 0.2], **E, solver="cvxpy")
    assert other.result == "solved" and other.solver == "cvxpy"
    close(other.value, auto.value, rtol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "reduced", "general", "nonconvex"])
def test_a_solver_that_stops_is_an_error_unless_the_iterate_is_wanted(solver: str) -> None:
    problem = {"groups": [3, 3], "weights": [1, 0.5], "feature_energy": 1e8, "weight_energy": 1, "solver": solver}
    with pytest.raises(NumericalError, match="was asked for a proven optimum; it stopped after"):
        peeled.solve(**problem)
    solution = peeled.solve(**problem, throw=False)
    assert solution.result is peeled.Result.STOPPED and str(solution.result) == "stopped early, not solved"
    assert solution.Z.shape == (6, 6)


def test_what_states_no_problem_is_told() -> None:
    with pytest.raises(InputError, match="found `sizes` together with another"):
        peeled.solve([5, 5], weights=[1, 2], **E)
    with pytest.raises(InputError, match="found `sizes` together with another"):
        peeled.solve([5, 5], groups=[1, 2], **E)
    with pytest.raises(InputError, match="found them without `sizes`"):
        peeled.solve(weights=[1, 2], loss_weights=[1, 2], **E)
    with pytest.raises(InputError, match="found none of them"):
        peeled.solve(**E)
    with pytest.raises(InputError, match="found `groups` alone"):
        peeled.solve(groups=[2, 3], **E)


def test_an_unknown_solver_is_told_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"No solver `reducd`\. Did you mean `reduced`"):
        peeled.solve([5, 5], **E, solver="reducd")


def test_the_public_face_of_the_wing() -> None:
    assert equisep.peeled is peeled
    assert sorted(peeled.__all__) == peeled.__all__ == dir(peeled)
    for name in peeled.__all__:
        assert getattr(peeled, name).__module__.startswith("equisep.peeled.")
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        _ = peeled.solv
    close(equisep.peeled.threshold(majority=5, minority=5, feature_energy=5, weight_energy=1), 12.1924, rtol=5e-6)


def test_the_reduced_solver_and_the_thresholds_need_numpy_alone() -> None:
    code = """
import sys
for name in ("torch", "cvxpy", "scipy", "jaxtyping", "beartype", "matplotlib", "pandas"):
    sys.modules[name] = None
import equisep
peeled = equisep.peeled
assert peeled.solve(sizes=[500] * 5 + [50] * 5, feature_energy=5, weight_energy=1).result == "solved"
assert peeled.threshold(5, 5, 5, 1) > 12
problem = peeled.Problem.of_sizes([500, 500, 50, 50, 5, 5], feature_energy=5, weight_energy=1)
assert peeled.rescue(problem).groups[2].checked
assert peeled.weight_decay_rescue([50, 5, 5], classifier_decay=1e-3, feature_decay=1e-3)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_submodules_do_not_hide_public_names() -> None:
    code = """
import importlib, pkgutil, equisep.peeled as peeled
for module in pkgutil.iter_modules(peeled.__path__):
    importlib.import_module("equisep.peeled." + module.name)
    assert module.name not in peeled.__all__ or callable(getattr(peeled, module.name)), module.name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_solving_touches_neither_warnings_nor_errors_of_numpy() -> None:
    before = np.geterr()
    with np.errstate(all="raise", under="ignore"):
        peeled.solve(sizes=[500] * 5 + [50] * 5, **E)
        peeled.solve(sizes=[500, 400, 300, 20, 20], **E)
        peeled.threshold(5, 5, 5, 1)
    assert np.geterr() == before
