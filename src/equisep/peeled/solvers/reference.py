"""The semidefinite form of the Layer-Peeled problem, handed to cvxpy and Clarabel: slow, and nobody's code but theirs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from equisep.errors import InputError, MissingExtraError, NumericalError
from equisep.peeled.certificate import dense_gap, verdict
from equisep.peeled.problem import Problem
from equisep.peeled.solution import Solution
from equisep.shapes import Float64

# The gap is of first order in the error of Z, the value of second: at Clarabel's default tolerance the gap is some 1e-5 of
# the value, and the value right to some 1e-9 of itself.
TOLERANCE = 1e-3
LARGEST = 100  # classes: the interior-point method factors a matrix with some (2K)²/2 rows


def solve_reference(problem: Problem, *, tolerance: float = TOLERANCE) -> Solution:
    """Solve min Σ_k ω_k CE(z_k, k), z_k = X(k, K+1…2K), over X ⪰ 0 (2K×2K) with cvxpy, by Clarabel at its default tolerance.

    The first K diagonal entries of X have a mean of at most E_H, the last K of at most E_W (Fang et al. 2021, their convex
    relaxation): X is the Gram matrix of H and W. The certificate is ours, from the Z that comes back, scaled into
    ‖Z‖_* ≤ τ where it is outside; `solved` needs cvxpy's word *and* a gap of at most `tolerance` of the value.
    """
    if problem.classes > LARGEST:
        raise InputError(
            f"The reference solver takes at most {LARGEST} classes; found {problem.classes}, a semidefinite matrix of "
            f"{2 * problem.classes} × {2 * problem.classes}. Use the reduced or the general solver."
        )
    status, iterations, Z = _solve(problem)
    spent = float(np.linalg.svd(Z, compute_uv=False).sum())
    Z = Z * min(1.0, problem.budget / spent) if spent > 0 else Z
    value, certificate = dense_gap(problem.class_weights, Z, problem.budget)
    return Solution(
        problem=problem,
        value=value,
        result=verdict(value, certificate, tolerance) if status == "optimal" else "stopped",
        certificate=certificate,
        solver="cvxpy",
        iterations=iterations,
        form=Z,
    )


def _solve(problem: Problem) -> tuple[str, int, Float64[np.ndarray, "k k"]]:
    """The status of cvxpy, the iterations of Clarabel, and Z."""
    cp = _cvxpy()
    classes = problem.classes
    X = cp.Variable((2 * classes, 2 * classes), PSD=True)
    Z = X[:classes, classes:]
    loss = problem.class_weights @ (cp.log_sum_exp(Z, axis=1) - cp.diag(Z))
    features = cp.trace(X[:classes, :classes]) <= classes * problem.feature_energy
    classifiers = cp.trace(X[classes:, classes:]) <= classes * problem.weight_energy
    program = cp.Problem(cp.Minimize(loss), [features, classifiers])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it may be inaccurate; the result says so, with the gap
            program.solve(solver=cp.CLARABEL)
    except cp.error.SolverError as error:
        raise _no_answer(problem, str(error).splitlines()[0].rstrip(".")) from error
    if Z.value is None or not np.isfinite(Z.value).all():
        raise _no_answer(problem, f"status `{program.status}`")
    return str(program.status), int(program.solver_stats.num_iters or 0), np.asarray(Z.value, dtype=np.float64)


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
