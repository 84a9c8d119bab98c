"""Solver (a): the symmetry-reduced problem, whose cost does not depend on the number of classes, in batches.

Classes of equal weight are exchangeable, so Z is s_g on the sum-zero vectors of group g and M on the vectors 1_g/√k_g, and

    min Σ_g k_g ω_g CE_g   subject to   Σ_g (k_g−1) s_g + ‖M‖_* ≤ τ.

One group is the simplex ETF in closed form, two groups are two equations, more are a Newton method on factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equisep.errors import InputError
from equisep.peeled.problem import Problem
from equisep.peeled.solution import DENSE_LIMIT, ReducedForm, Solution, dense_gap, verdict
from equisep.peeled.solvers.batch import Batch, ReducedGap, reduced_gap
from equisep.peeled.solvers.sphere import AIM, Start, solve_factored
from equisep.peeled.solvers.two_groups import solve_two
from equisep.shapes import Bool, Float64

TOLERANCE = 1e-9  # of the value: the gap up to which a solution is called solved
POLISHED = 0.0  # of the value: until rounding stops it; a gap of 1e-14 may still mean a multiplier that is off by 1e-7
FAINT = (0.0, 1e-5, 1e-2)  # norms, against the largest, up to which both vectors of a group are tried as zeros


def solve_reduced(
    problems: Sequence[Problem],
    *,
    tolerance: float = TOLERANCE,
    near: Sequence[ReducedForm] | None = None,
    throw: bool = True,
) -> list[Solution]:
    """Many problems at once, those of one number of groups together; each is solved only if its own gap says so.

    One that is not is a `NumericalError`; with `throw=False` it comes back as `STOPPED`, with its gap.

    `near` holds, for each problem, the optimum of a similar one with as many groups: setting out from there is quicker.
    """
    solutions: dict[int, Solution] = {}
    for groups in sorted({problem.groups for problem in problems}):
        indices = [index for index, problem in enumerate(problems) if problem.groups == groups]
        batch = Batch.of([problems[index] for index in indices])
        start = None if near is None else stacked([near[index] for index in indices])
        s, M, gap, iterations = solve_batch(batch, start=start)
        for row, index in enumerate(indices):
            certificate = gap.certificate(row)
            solutions[index] = Solution(
                problem=problems[index],
                value=float(gap.value[row]),
                result=verdict(float(gap.value[row]), certificate, tolerance),
                certificate=certificate,
                solver="reduced",
                iterations=iterations,
                form=ReducedForm(s[row], M[row]),
            )
    return [solutions[index].or_raise(throw=throw) for index in range(len(problems))]


def solve_general(problems: Sequence[Problem], *, tolerance: float = TOLERANCE, throw: bool = True) -> list[Solution]:
    """The same problems with every class a group of its own: no symmetry is used, so this checks that what it assumes holds.

    The certificate is of the K×K logits as they stand, by other code than the solver's own.
    """
    for index, problem in enumerate(problems):
        if problem.classes > DENSE_LIMIT:
            raise InputError(
                f"The general solver holds K×K logits and takes at most {DENSE_LIMIT} classes; problem {index} has "
                f"{problem.classes}. Use the reduced solver, whose cost does not depend on the number of classes."
            )
    alone = [
        replace(p, group_sizes=(1,) * p.classes, weights=tuple(p.class_weights.tolist()), membership=None)
        for p in problems
    ]
    solved = solve_reduced(alone, throw=False)
    return [
        _dense(problem, found, tolerance).or_raise(throw=throw) for problem, found in zip(problems, solved, strict=True)
    ]


def _dense(problem: Problem, found: Solution, tolerance: float) -> Solution:
    value, certificate = dense_gap(problem.class_weights, found.Z, problem.budget)
    result = verdict(value, certificate, tolerance)
    return Solution(problem, value, result, certificate, "general", found.iterations, found.Z)


def stacked(forms: Sequence[ReducedForm]) -> Start:
    """The s and M of several problems of one number of groups."""
    return np.stack([form.s for form in forms]), np.stack([form.M for form in forms])


def solve_batch(
    batch: Batch, *, start: Start | None = None, polished: bool = False
) -> tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"], ReducedGap, int]:
    """s, M, the certificate and the iterations of stacked problems, also with an s_g held at 0.

    Three groups or more set out from `start`, where that is given. `polished` they come as near as rounding lets them, for
    a multiplier to rounding (its error is of the size of the *root* of the gap), but leave tiny numbers for zeros.
    """
    groups = batch.k.shape[1]
    if groups == 1:
        s, M, iterations = batch.tau[:, None] / (batch.k - 1), np.zeros((len(batch.k), 1, 1)), 0
    elif groups == 2:
        s, M, iterations = solve_two(batch)
        s, M = _on_budget(batch, s, M)
    else:
        s, M, iterations = solve_factored(batch, start=start, aim=POLISHED if polished else AIM)
        s, M = _on_budget(batch, s, _centered(batch, M, np.ones_like(batch.free)))
        if not polished:
            s, M = _with_zeros(batch, s, M)
    return s, M, reduced_gap(batch, s, M), iterations


def _on_budget(
    batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"]
) -> tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"]]:
    """Scaled to spend the budget to rounding; the certificate is taken afterwards."""
    factor = batch.tau / batch.spent(s, np.linalg.svd(M, compute_uv=False))
    return s * factor[:, None], M * factor[:, None, None]


def _centered(
    batch: Batch, M: Float64[np.ndarray, "b g g"], kept: Bool[np.ndarray, "b g"]
) -> Float64[np.ndarray, "b g g"]:
    """M between the groups that are kept, with M√k = 0: rows of Z that sum to zero have the same loss, a smaller norm."""
    root = np.sqrt(batch.k) * kept
    v = root / np.linalg.norm(root, axis=1, keepdims=True)
    inside = M * (kept[:, :, None] & kept[:, None, :])
    return np.asarray(inside - (inside @ v[:, :, None]) * v[:, None, :])


def _with_zeros(
    batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"]
) -> tuple[Float64[np.ndarray, "b g"], Float64[np.ndarray, "b g g"]]:
    """Exact zeros for what the optimality conditions say is zero, kept where the gap proves that nothing was lost.

    s_g = 0 iff ω_g ≤ μ; a group whose classifiers and features are both faint beside the others has vanished.
    """
    found = reduced_gap(batch, s, M)
    limit = np.maximum(found.gap, 0.5 * TOLERANCE * found.value)
    closed = batch.free & (batch.omega <= found.multiplier[:, None])
    for level in FAINT:
        kept = ~_faint(batch, np.where(closed, 0.0, s), M, level)
        new_s, new_M = _on_budget(batch, np.where(closed | ~kept, 0.0, s), _centered(batch, M, kept))
        good = reduced_gap(batch, new_s, new_M).gap <= limit
        s, M = np.where(good[:, None], new_s, s), np.where(good[:, None, None], new_M, M)
    return s, M


def _faint(
    batch: Batch, s: Float64[np.ndarray, "b g"], M: Float64[np.ndarray, "b g g"], level: float
) -> Bool[np.ndarray, "b g"]:
    """Groups whose squared classifier and feature norms t_g/k_g are both at most level² of the largest."""
    U, sigma, Vt = np.linalg.svd(M)
    spent = (batch.k - 1) * s
    squares = (
        (spent + np.einsum("bgi,bi->bg", U**2, sigma)) / batch.k,
        (spent + np.einsum("big,bi->bg", Vt**2, sigma)) / batch.k,
    )
    faint = np.ones(s.shape, dtype=bool)
    for square in squares:
        faint &= square <= level**2 * square.max(axis=1, keepdims=True)
    return faint
