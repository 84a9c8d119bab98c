"""One call that states a Layer-Peeled problem, picks a solver and returns its solution."""

from __future__ import annotations

from equisep.errors import InputError, did_you_mean
from equisep.peeled.problem import FEATURE_ENERGY, WEIGHT_ENERGY, Number, Numbers, Problem
from equisep.peeled.solution import Solution
from equisep.peeled.solvers.reduced import solve_general, solve_reduced

SOLVERS = ("auto", "reduced", "general", "cvxpy", "nonconvex")


def solve(
    sizes: Numbers | None = None,
    *,
    weights: Numbers | None = None,
    groups: Numbers | None = None,
    feature_energy: Number = FEATURE_ENERGY,
    weight_energy: Number = WEIGHT_ENERGY,
    loss_weights: Numbers | None = None,
    solver: str = "auto",
    throw: bool = True,
) -> Solution:
    """Solve the Layer-Peeled problem of these classes (Fang, He, Long & Su 2021).

    The classes are given by their `sizes` (with `loss_weights`), or by `weights` ω, one per class, or by `groups`, the number
    of classes of each group, with `weights` one per group. The energies are those of the paper's figures where none are given;
    `compare_network` reads them off a trained model. `auto` is the symmetry-reduced solver. A solver that stops early
    is a `NumericalError` that says how far it came; `throw=False` keeps what it found, with `result` and gap.

    >>> from equisep import peeled
    >>> solution = peeled.solve(sizes=[500] * 5 + [50] * 5)
    >>> str(solution.result), f"{solution.geometry.within(1):.4f}"  # the cosine between two minority classifiers
    ('solved', '0.5175')
    """
    problem = problem_of(
        sizes,
        weights=weights,
        groups=groups,
        feature_energy=feature_energy,
        weight_energy=weight_energy,
        loss_weights=loss_weights,
    )
    return solve_problem(problem, solver=solver, throw=throw)


def problem_of(
    sizes: Numbers | None = None,
    *,
    weights: Numbers | None = None,
    groups: Numbers | None = None,
    feature_energy: Number = FEATURE_ENERGY,
    weight_energy: Number = WEIGHT_ENERGY,
    loss_weights: Numbers | None = None,
) -> Problem:
    """The problem that `solve` solves, from the same arguments."""
    energies = {"feature_energy": feature_energy, "weight_energy": weight_energy}
    if sizes is not None:
        if weights is not None or groups is not None:
            raise InputError(
                "Classes are given by `sizes`, or by `weights`, or by `groups` with `weights`; found `sizes` together "
                "with another. Pass factors on the loss as `loss_weights`."
            )
        return Problem.of_sizes(sizes, **energies, loss_weights=loss_weights)
    if loss_weights is not None:
        raise InputError(
            "`loss_weights` multiply the weights that `sizes` give; found them without `sizes`. "
            "Multiply `weights` by them, or pass `sizes`."
        )
    if weights is None:
        raise InputError(
            "A problem needs `sizes`, or `weights`, or `groups` with `weights`; found "
            f"{'`groups` alone' if groups is not None else 'none of them'}. Pass the number of samples of each class."
        )
    if groups is None:
        return Problem.of_weights(weights, **energies)
    return Problem.of_groups(groups, weights, **energies)


def solve_problem(problem: Problem, *, solver: str = "auto", throw: bool = True) -> Solution:
    """Solve one problem with the solver of this name at its default settings.

    >>> from equisep import peeled
    >>> problem = peeled.Problem.two_groups(5, 5, float("inf"), feature_energy=5, weight_energy=1)
    >>> f"{peeled.solve_problem(problem).geometry.within(1):.6f}"
    '1.000000'
    """
    if solver not in SOLVERS:
        raise InputError(f"No solver `{solver}`.{did_you_mean(solver, SOLVERS)} Known: {', '.join(SOLVERS)}.")
    if solver == "cvxpy":
        from equisep.peeled.solvers.reference import solve_reference

        return solve_reference(problem, throw=throw)
    if solver == "nonconvex":
        from equisep.peeled.solvers.nonconvex import solve_nonconvex

        return solve_nonconvex(problem, throw=throw)
    return (solve_general if solver == "general" else solve_reduced)([problem], throw=throw)[0]
