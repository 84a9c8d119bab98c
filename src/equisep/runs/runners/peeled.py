"""Cells that are solved: Layer-Peeled problems with their certificates, as the numbers that figures are drawn and judged by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from equisep.errors import InputError, NumericalError
from equisep.figures.cell import Solve
from equisep.figures.outcome import Curve, Outcome
from equisep.peeled import (
    Problem,
    ReducedForm,
    Result,
    Solution,
    compare_with_etf,
    solve_nonconvex,
    solve_reduced,
    solve_two_layer,
    thresholds_of,
    two_layer_collapse,
)
from equisep.progress import Progress, silent
from equisep.shapes import Float64

ROTATIONS = 4  # of a simplex ETF, searched from for each start of the problem itself
COLLAPSED = 1e-3  # distance from a simplex ETF below which a point counts as one


def run_cells(
    cells: Sequence[Solve], *, device: str | None = None, data_dir: str | None = None, progress: Progress = silent
) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes of problems, in float64 on the CPU wherever others are trained."""
    import torch

    from equisep.devices import provenance

    return [solve_cell(cell) for cell in cells], provenance(torch.device("cpu"), torch.float64)


def solve_cell(cell: Solve) -> Outcome:
    """Solve the problem of a cell; the same cell gives the same numbers. A solver that stops early is a `NumericalError`."""
    if cell.minority and cell.problem != "minority":
        raise InputError(
            f"The `{cell.problem}` problem has classes of one size; found minority={cell.minority}. "
            "Count all classes in `majority`."
        )
    return _SOLVERS[cell.problem](cell)


def _balanced(cell: Solve) -> Outcome:
    """Classes of equal size, in W and H from random starts, so that no symmetry is put in; proven by the convex form.

    cosine_error    max |cos + 1/(K−1)| over pairs of classifiers and of features
    duality_error   max_k ‖h_k − √(E_H/E_W) w_k‖/‖h_k‖
    value_error     (value − f_ETF)/f_ETF, f_ETF = log(1 + (K−1) exp(−√(E_W E_H) K/(K−1)))
    """
    solution = _from_starts(cell)
    if solution.result is not Result.SOLVED:
        raise NumericalError(
            f"The least value for {cell.majority} balanced classes in {cell.dimension} dimensions was asked for; the point "
            f"found is {solution.result.word}, with a gap of {solution.certificate.gap:.3g} to the value {solution.value:.6g}. "
            "Use more `starts`, or a `dimension` of at least K − 1."
        )
    W, H = solution.W, solution.H
    scale = math.sqrt(cell.feature_energy / cell.weight_energy)
    apart = np.linalg.norm(H - scale * W, axis=1) / np.linalg.norm(H, axis=1)
    margin = math.sqrt(cell.feature_energy * cell.weight_energy) * cell.majority / (cell.majority - 1)
    least = math.log1p((cell.majority - 1) * math.exp(-margin))
    return Outcome(
        numbers={
            **_proof(solution),
            "value_error": solution.value / least - 1,
            "cosine_error": max(_angle_error(W), _angle_error(H)),
            "duality_error": float(apart.max()),
        }
    )


def _qnorm(cell: Solve) -> Outcome:
    """Features bounded in the q-norm: the best of many starts, beside the best simplex ETF found. Angles are not centered.

    collapse_distance   the greatest of |cos + 1/(K−1)| of features, NC3, and |‖h_k‖ − mean|/mean; 0 for a simplex ETF
    etf_advantage       loss of the best feasible simplex ETF − loss
    """
    solution = _from_starts(cell, q=cell.power)
    beside = compare_with_etf(solution, q=cell.power, starts=ROTATIONS * cell.starts, seed=cell.seed)
    norms = np.linalg.norm(solution.H, axis=1)
    unequal = float(np.abs(norms / norms.mean() - 1).max())
    if beside.least_cosine is None or beside.largest_cosine is None:
        raise NumericalError(
            f"The angles between features were asked for q = {cell.power:g}, p = {cell.dimension}; a feature of the optimum "
            "is zero and has none. Use a larger `feature_energy`."
        )
    angles = _angle_error(solution.H)
    distance = max(angles, beside.duality, unequal)
    proven = solution.result is Result.SOLVED
    return Outcome(
        numbers={
            **_proof(solution),
            "proven": float(proven),
            "etf_value": beside.etf_value,
            "etf_advantage": beside.advantage,
            "least_cosine": beside.least_cosine,
            "largest_cosine": beside.largest_cosine,
            "cosine_spread": beside.largest_cosine - beside.least_cosine,
            "cosine_error": angles,
            "duality": beside.duality,
            "norm_error": unequal,
            "collapse_distance": distance,
            "collapsed": float(distance <= COLLAPSED),
        },
        notes=()
        if proven
        else (f"The least of {cell.starts} starts: stationary, and not proven to be the least of all.",),
    )


def _two_layer(cell: Solve) -> Outcome:
    """Two layers on free features: the best of many starts, beside neural collapse, which is a feasible point too.

    collapse_value      the loss of neural collapse, in closed form
    collapse_advantage  (collapse_value − value)/collapse_value: above 0, neural collapse is not the optimum: both are feasible
    logit_rank          of the logits; K − 1 at neural collapse
    """
    problem = Problem.of_sizes(
        [1] * cell.majority, feature_energy=cell.feature_energy, weight_energy=cell.weight_energy
    )
    asked: Mapping[str, Any] = {"hidden_energy": cell.hidden_energy, "activation": cell.nonlinearity}
    solution = solve_two_layer(problem, **asked, starts=cell.starts, seed=cell.seed, throw=False)
    collapse = two_layer_collapse(problem, **asked)
    proven = solution.result is Result.SOLVED
    state = "stationary" if solution.result is Result.STATIONARY else "not quite stationary"
    return Outcome(
        numbers={
            "value": solution.value,
            "gap": solution.certificate.gap,
            "relative_gap": solution.certificate.relative_gap,
            "stationarity": solution.certificate.stationarity,
            "proven": float(proven),
            "collapse_value": collapse.value,
            "collapse_advantage": 1 - solution.value / collapse.value,
            "collapse_distance": solution.collapse_distance,
            "logit_rank": float(solution.rank),
        },
        notes=()
        if proven
        else (f"The least of {cell.starts} starts and of neural collapse: {state}, and not proven to be the least.",),
    )


def _minority(cell: Solve) -> Outcome:
    """The cosine between two minority classes over the imbalance ratio R; every point certified, R* by its own equation.

    first_cosine_error  |cos + 1/(K−1)| at R = 1
    least_rise          the least step of the classifiers' cosine from one ratio to the next, up to the first that is ≥ R*
    open_gap            1 − the greatest cosine below R*
    collapsed_error     max |cos − 1| from R* on, where the minority has not vanished
    collapsed_distance  max ‖w_k − w_k'‖/√E_W from R* on, which exists there too
    limit_distance      ‖w_k − w_k'‖/√E_W of two minority classes absent from the loss, the limit of R → ∞
    mean_gap            the greatest NC3, not centered, of all ratios: 0 where class means equal classifiers
    """
    if not cell.ratios:
        raise InputError(
            "The `minority` problem is solved over imbalance ratios; found none. Pass `ratios`, (1, 10, 100) say."
        )
    limits = thresholds_of(cell.majority, cell.minority, cell.feature_energy, cell.weight_energy)
    ratios = np.unique(np.asarray(cell.ratios, dtype=np.float64))
    solutions = solve_reduced([_two_groups(cell, ratio) for ratio in (*ratios, math.inf)])
    shapes = [solution.geometry for solution in solutions]
    classifiers = np.array([shape.classifier_cosines[1][1] for shape in shapes], dtype=np.float64)  # None becomes NaN
    features = np.array([shape.feature_cosines[1][1] for shape in shapes], dtype=np.float64)
    duality = np.array([shape.duality for shape in shapes])
    apart = np.array([_distance(solution) for solution in solutions])
    cosines = classifiers[:-1]
    open_until = int(np.searchsorted(ratios, math.inf if limits.collapse is None else limits.collapse))
    balanced = ratios == 1
    return Outcome(
        numbers={
            "threshold": _finite(limits.collapse),
            "vanishing": _finite(limits.vanishing),
            "first_cosine": _finite(cosines[0]),
            "first_cosine_error": _largest(np.abs(cosines[balanced] + 1 / (cell.majority + cell.minority - 1))),
            "least_rise": _largest(np.diff(cosines[: open_until + 1]), sign=-1),
            "open_gap": _largest(1 - cosines[:open_until], sign=-1),
            "collapsed_error": _largest(np.abs(cosines[open_until:] - 1)),
            "collapsed_distance": _largest(apart[open_until:-1]),
            "limit_distance": float(apart[-1]),
            "mean_gap": _largest(duality[:-1]),
            "relative_gap": max(solution.certificate.relative_gap for solution in solutions),
        },
        arrays={
            "ratios": _curve(ratios),
            "classifier_cosines": _curve(cosines),
            "feature_cosines": _curve(features[:-1]),
            "duality": _curve(duality[:-1]),
            "values": tuple(solution.value for solution in solutions[:-1]),
            "relative_gaps": tuple(solution.certificate.relative_gap for solution in solutions[:-1]),
        },
        notes=()
        if limits.vanishing is None
        else (f"From R = {limits.vanishing:.6g} on the minority vectors are zero: they are one, and have no cosine.",),
    )


_SOLVERS: Mapping[str, Callable[[Solve], Outcome]] = {
    "balanced": _balanced,
    "qnorm": _qnorm,
    "minority": _minority,
    "two-layer": _two_layer,
}


def _from_starts(cell: Solve, *, q: float = 2.0) -> Solution:
    problem = Problem.of_sizes(
        [1] * cell.majority, feature_energy=cell.feature_energy, weight_energy=cell.weight_energy
    )
    return solve_nonconvex(problem, dimension=cell.dimension, q=q, starts=cell.starts, seed=cell.seed)


def _two_groups(cell: Solve, ratio: float) -> Problem:
    energies = {"feature_energy": cell.feature_energy, "weight_energy": cell.weight_energy}
    return Problem.two_groups(cell.majority, cell.minority, ratio, **energies)


def _distance(solution: Solution) -> float:
    """‖w_k − w_k'‖/√E_W of two minority classes: WWᵀ is √(E_W/E_H) s_B on vectors of the minority that sum to zero."""
    assert isinstance(solution.form, ReducedForm)
    problem = solution.problem
    return math.sqrt(
        2 * max(float(solution.form.s[1]), 0.0) / math.sqrt(problem.weight_energy * problem.feature_energy)
    )


def _proof(solution: Solution) -> dict[str, float | None]:
    """Value and certificate; the gap is the smaller of the two bounds that there are."""
    certificate = solution.certificate
    distance = certificate.distance_to_convex
    gap = certificate.gap if distance is None else min(certificate.gap, max(distance, 0.0))
    return {
        "value": solution.value,
        "gap": gap,
        "relative_gap": gap / solution.value,
        "stationarity": certificate.stationarity,
    }


def _angle_error(vectors: Float64[np.ndarray, "k p"]) -> float:
    """The greatest |cos + 1/(K−1)| over pairs of rows."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = ~np.eye(len(vectors), dtype=bool)
    return float(np.abs((unit @ unit.T)[pairs] + 1 / (len(vectors) - 1)).max())


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _largest(values: Float64[np.ndarray, " n"], sign: int = 1) -> float | None:
    """The greatest (sign −1: the least) of the values that exist; None where there is none."""
    real = values[np.isfinite(values)]
    return sign * float((sign * real).max()) if real.size else None


def _curve(values: Sequence[float] | Float64[np.ndarray, " n"]) -> Curve:
    return tuple(_finite(float(value)) for value in values)
