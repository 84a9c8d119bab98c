"""The semidefinite form of the Layer-Peeled problem, handed to cvxpy and Clarabel: slow, and nobody's code but theirs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from equisep.errors import InputError, MissingExtraError, NumericalError
from equisep.peeled.problem import Problem
from equisep.peeled.solution import Result, Solution, dense_gap, verdict
from equisep.shapes import Float64

# The gap is of first order in the error of Z, the value of second: at Clarabel's own tolerance of 1e-8 the value is right to
# some 1e-9 of itself, and the gap some 1e-5 of it, which proves nothing.
PRECISION = 1e-12
TOLERANCE = 1e-6  # of the value: the gap up to which a solution is called solved
LARGEST = 100  # classes: the interior-point method factors a matrix with some (2K)²/2 rows


def solve_reference(
    problem: Problem, *, tolerance: float = TOLERANCE, precision: float | None = PRECISION, throw: bool = True
) -> Solution:
    """Solve min Σ_k ω_k CE(z_k, k), z_k = X(k, K+1…2K), over X ⪰ 0 (2K×2K) with cvxpy and Clarabel.

    The first K diagonal entries of X have a mean of at most E_H, the last K of at most E_W (Fang et al. 2021, their convex
    relaxation): X is the Gram matrix of H and W. The certificate is ours, from the Z that comes back, scaled into
    ‖Z‖_* ≤ τ where it is outside; solved means a gap of at most `tolerance` of the value, whatever cvxpy says. `precision`
    is what Clarabel aims at, `None` its own default.
    """
    if problem.classes > LARGEST:
        raise InputError(
            f"The reference solver takes at most {LARGEST} classes; found {problem.classes}, a semidefinite matrix of "
            f"{2 * problem.classes} × {2 * problem.classes}. Use the reduced or the general solver."
        )
    found: list[Solution] = []
    # where Clarabel gives up early, the same loss in another unit often takes it to the end
    for unit in (1.0, float(problem.class_weights.sum())) if precision is not None else (1.0,):
        iterations, Z = _solve(problem, precision, unit)
        spent = float(np.linalg.svd(Z, compute_uv=False).sum())
        Z = Z * min(1.0, problem.budget / spent) if spent > 0 else Z
        value, certificate = dense_gap(problem.class_weights, Z, problem.budget)
        result = verdict(value, certificate, tolerance)
        found.append(Solution(problem, value, result, certificate, "cvxpy", iterations, Z))
        if result is Result.SOLVED:
            break
    return min(found, key=lambda solution: solution.certificate.gap).or_raise(throw=throw)


def _solve(problem: Problem, precision: float | None, unit: float) -> tuple[int, Float64[np.ndarray, "k k"]]:
    """The iterations of Clarabel, and Z."""
    cp = _cvxpy()
    classes = problem.classes
    X = cp.Variable((2 * classes, 2 * classes), PSD=True)
    Z = X[:classes, classes:]
    loss = (problem.class_weights / unit) @ (cp.log_sum_exp(Z, axis=1) - cp.diag(Z))
    features = cp.trace(X[:classes, :classes]) <= classes * problem.feature_energy
    classifiers = cp.trace(X[classes:, classes:]) <= classes * problem.weight_energy
    aims = {} if precision is None else dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), precision)
    program = cp.Problem(cp.Minimize(loss), [features, classifiers])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it may be inaccurate; the result says so, with the gap
            program.solve(solver=cp.CLARABEL, **aims)
    except cp.error.SolverError as error:
        raise _no_answer(problem, str(error).splitlines()[0].rstrip(".")) from error
    if Z.value is None or not np.isfinite(Z.value).all():
        raise _no_answer(problem, f"status `{program.status}`")
    return int(program.solver_stats.num_iters or 0), np.asarray(Z.value, dtype=np.float64)


def _no_answer(problem: Problem, found: str) -> NumericalError:
    return NumericalError(
        f"cvxpy with Clarabel was asked for the semidefinite form with {problem.classes} classes and gave no point: "
        f"{found}. Use the reduced or the general solver."
    )


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError as error:
        raise MissingExtraError(needed_for="The reference solver", package="cvxpy", extra="peeled") from error
    return cvxpy
