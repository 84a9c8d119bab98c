"""The weights at which a group stops being lost: its classifiers part, its vectors leave zero, its margin begins.

For k_g ≥ 2 the classifiers of group g coincide iff s_g = 0 iff ω_g ≤ μ. The least weight at which they part is the root w* of
μ_g(w) = w, μ_g the multiplier of the problem with ω_g = w and s_g held at 0; today's μ is not it, as μ moves with the weight.

A group vanishes where s_g = 0 and its row and column of M are zero. Then nothing depends on ω_g but its own row of Γ, which is
w·r with r = √k_g √k/K − e_g, so that ‖Γ‖_op ≤ μ iff w² rᵀ(μ² − Γ₀ᵀΓ₀)⁺r ≤ 1, Γ₀ being Γ without that row. It is enough to solve
the problem with ω_g = 0: a group that does not vanish there does not vanish at any weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from equisep.errors import NumericalError
from equisep.peeled.classes import group_margins
from equisep.peeled.problem import Problem
from equisep.peeled.solution import ReducedForm, Solution, form_of
from equisep.peeled.solvers.batch import Batch, gradient, margins, softmax
from equisep.peeled.solvers.reduced import TOLERANCE, solve_batch, solve_reduced
from equisep.peeled.thresholds import falling_roots, log_collapse_ratios, vanishing_ratio
from equisep.shapes import Float64, Int

ASIDE = 1e-3  # how far beside a least weight the problem is solved again
EXACT = 1e-10  # in log w
NEARLY = 1e-7  # the same for the root of a margin, which is right to about the root of the gap
STEEPEST = 1e3  # the steepest margin over log ω that is believed; that of 30 long-tailed classes has a slope of 14
FAINTEST = 1e-9  # of the heaviest weight: what is told apart there is told apart at any weight


@dataclass(frozen=True, slots=True)
class Guess:
    """Where to look for a least weight, in log ω, and how fast log μ_g(w) − log w falls there; from the last group found."""

    log_weight: float
    slope: float


@dataclass(frozen=True, slots=True, eq=False)
class Collapse:
    """The least weights of some groups, the optimum at each (nothing for two groups), and a guess for other groups."""

    weights: Float64[np.ndarray, " r"]
    forms: tuple[ReducedForm, ...]
    guess: Guess


def collapse(solution: Solution, groups: Sequence[int], guess: Guess) -> Collapse:
    """The weights at which the classifiers of these groups of two classes or more part, the others staying as they are."""
    problem = solution.problem
    if problem.groups == 2:
        others = [1 - group for group in groups]
        sizes, weights = np.array(problem.group_sizes, dtype=np.float64), np.array(problem.weights)
        energy = np.full(len(groups), problem.budget / problem.classes)
        logs, _ = log_collapse_ratios(sizes[others], sizes[list(groups)], energy)
        return Collapse(np.asarray(weights[others] * np.exp(-logs)), (), guess)
    own = np.asarray(groups, dtype=np.int64)
    batch = Batch.of([problem] * len(own), held=groups)
    form = form_of(solution)
    s, M = np.repeat(form.s[None], len(own), axis=0), np.repeat(form.M[None], len(own), axis=0)
    gaps = np.full(len(own), np.inf)

    def excess(log_weight: Float64[np.ndarray, " r"], rows: Int[np.ndarray, " r"]) -> Float64[np.ndarray, " r"]:
        """Log μ_g(w) − log w: positive where the group still collapses; each solved from the optimum before."""
        part = _with_weight(batch.select(rows), own[rows], np.exp(log_weight))
        s[rows], M[rows], gap, _ = solve_batch(part, start=(s[rows], M[rows]), polished=True)
        gaps[rows] = gap.gap / gap.value
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(gap.multiplier) - log_weight)

    rest = batch.omega.copy()
    rest[np.arange(len(own)), own] = 0.0
    high = np.log(rest.max(axis=1))  # the heaviest group never collapses
    roots, slopes = falling_roots(
        excess,
        np.minimum(guess.log_weight, high - EXACT),
        high=high,
        slope=np.full(len(own), guess.slope),
        within=EXACT,
    )
    if not (gaps <= TOLERANCE).all():
        raise _no_least_weight(groups[int(np.argmax(gaps))], float(gaps.max()))
    forms = tuple(ReducedForm(*pair) for pair in zip(s, M, strict=True))
    return Collapse(np.exp(roots), forms, Guess(float(roots[-1]), float(slopes[-1])))


def vanishing_weights(solution: Solution, groups: Sequence[int]) -> Float64[np.ndarray, " r"]:
    """The ω up to which each of these groups vanishes, the other groups staying as they are; 0 where it never does."""
    problem = solution.problem
    if problem.groups == 2:
        energy = problem.budget / problem.classes
        ratios = [vanishing_ratio(problem.group_sizes[1 - g], problem.group_sizes[g], energy) for g in groups]
        return np.array([0.0 if r is None else problem.weights[1 - g] / r for g, r in zip(groups, ratios, strict=True)])
    form = form_of(solution)
    here = [
        group for group in groups if _is_zero(form, group)
    ]  # nothing changes where a group that is zero is left out
    elsewhere = [group for group in groups if group not in here]
    absent = [reweighted(problem, group, 0.0) for group in elsewhere]
    solved = dict(zip(elsewhere, solve_reduced(absent, near=[form] * len(absent)), strict=True))
    return np.array([_vanishing_weight(solved.get(group, solution), group) for group in groups])


def _is_zero(form: ReducedForm, group: int) -> bool:
    return form.s[group] == 0 and not form.M[group].any() and not form.M[:, group].any()


def _vanishing_weight(solution: Solution, group: int) -> float:
    """1/√(rᵀ(μ² − Γ₀ᵀΓ₀)⁺r) where the group has vanished at this optimum, otherwise 0."""
    if not solution.geometry.vanished[group]:
        return 0.0
    form, batch = form_of(solution), Batch.of([solution.problem])
    _, big = gradient(batch, softmax(batch, form.s[None], form.M[None]).p)
    big[0, group] = 0.0
    k = batch.k[0]
    r = np.sqrt(k[group]) * np.sqrt(k) / k.sum()
    r[group] -= 1.0
    _, sigma, Vt = np.linalg.svd(big[0])
    room = solution.certificate.multiplier**2 - sigma**2
    # M lives on directions without room; r has no part in them, as M√k = 0 and column g of M is zero
    open_ = room > 1e-6 * solution.certificate.multiplier**2
    return float(1.0 / np.sqrt((((Vt @ r) ** 2)[open_] / room[open_]).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class MarginRoot:
    """The weight at which the margin of a group comes above 0, how fast its shortfall falls there, and the optimum."""

    group: int
    weight: float
    slope: float
    form: ReducedForm


def margin_roots(
    solution: Solution, parted: Mapping[int, float], before: MarginRoot | None = None
) -> dict[int, MarginRoot]:
    """The root of the margin of each of these groups over the log of its weight, the other groups staying as they are.

    `parted` holds, by group, the weight up to which it is collapsed or has vanished, 0 where it never is. `before` is the
    root of another group: lost classes come back at nearly one weight, so the search sets out from there, the two exchanged.
    """
    problem = solution.problem
    own = np.array(list(parted))
    today = np.take(np.array(problem.weights), own)
    beyond = np.array(list(parted.values())) * (1 + ASIDE)
    batch = Batch.of([problem] * len(own))
    starts = [form_of(solution) if before is None else _exchanged(before, group) for group in parted]
    s, M = np.stack([form.s for form in starts]), np.stack([form.M for form in starts])

    def shortfall(log_weight: Float64[np.ndarray, " r"], rows: Int[np.ndarray, " r"]) -> Float64[np.ndarray, " r"]:
        """Minus the margin: above 0 where the group is lost; each solved from the optimum before."""
        part = _with_weight(batch.select(rows), own[rows], np.exp(log_weight))
        s[rows], M[rows], gap, _ = solve_batch(part, start=(s[rows], M[rows]))
        if not (gap.gap <= TOLERANCE * gap.value).all():
            raise _no_least_weight(own[rows[int(np.argmax(gap.gap / gap.value))]], float((gap.gap / gap.value).max()))
        return np.asarray(-margins(part, s[rows], M[rows])[np.arange(len(rows)), own[rows]])

    rest = batch.omega.copy()
    rest[np.arange(len(own)), own] = 0.0
    high = np.log(rest.max(axis=1))  # the heaviest group is told apart
    floor = np.log(np.where(beyond > 0, beyond, FAINTEST * rest.max(axis=1)))
    start = np.maximum(floor, np.log(np.where(today > 0, today, 1.0)) if before is None else math.log(before.weight))
    apart = np.flatnonzero(group_margins(solution)[own] > 0)
    always = np.zeros(len(own), dtype=bool)
    if apart.size:
        always[apart] = shortfall(floor[apart], apart) < 0  # told apart however light it is
    weights, slopes = np.zeros(len(own)), np.full(len(own), -1.0 if before is None else before.slope)
    rows = np.flatnonzero(~always)
    if rows.size:
        roots, slopes[rows] = falling_roots(
            lambda x, r: shortfall(x, rows[r]),
            np.minimum(start, high - NEARLY)[rows],
            high=high[rows],
            slope=slopes[rows],
            within=NEARLY,
            steep=STEEPEST,
        )
        weights[rows] = np.exp(roots)
    return {
        group: MarginRoot(group, float(weights[row]), float(slopes[row]), ReducedForm(s[row], M[row]))
        for row, group in enumerate(parted)
    }


def _exchanged(root: MarginRoot, group: int) -> ReducedForm:
    """The optimum at the root of one group with another in its place."""
    order = np.arange(len(root.form.s))
    order[[root.group, group]] = order[[group, root.group]]
    return ReducedForm(root.form.s[order], root.form.M[np.ix_(order, order)])


def _no_least_weight(group: int, gap: float) -> NumericalError:
    return NumericalError(
        f"The least weight of group {group} was asked for; the solver stopped there with a duality gap of {gap:.3g} of the "
        "value. Use less extreme energies and weights."
    )


def reweighted(problem: Problem, group: int, weight: float) -> Problem:
    """The problem with another weight of one group."""
    weights = tuple(weight if other == group else w for other, w in enumerate(problem.weights))
    return replace(problem, weights=weights)


def _with_weight(batch: Batch, own: Int[np.ndarray, " r"], weights: Float64[np.ndarray, " r"]) -> Batch:
    omega = batch.omega.copy()
    omega[np.arange(len(own)), own] = weights
    return Batch(batch.k, omega, batch.tau, batch.free)
