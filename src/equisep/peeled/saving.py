"""Any list of classes: which groups collapse or vanish, and the least weight that saves each, checked by solving again.

For k_g ≥ 2 the classifiers of group g coincide iff s_g = 0 iff ω_g ≤ μ. The least weight that saves the group is the root w* of
μ_g(w) = w, μ_g the multiplier of the problem with ω_g = w and s_g held at 0; today's μ is not it, as μ moves with the weight.

A group vanishes where s_g = 0 and its row and column of M are zero. Then nothing depends on ω_g but its own row of Γ, which is
w·r with r = √k_g √k/K − e_g, so that ‖Γ‖_op ≤ μ iff w² rᵀ(μ² − Γ₀ᵀΓ₀)⁺r ≤ 1, Γ₀ being Γ without that row. It is enough to solve
the problem with ω_g = 0: a group that does not vanish there does not vanish at any weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from equisep.errors import NumericalError
from equisep.peeled.batch import Batch, gradient, softmax
from equisep.peeled.problem import Problem
from equisep.peeled.reduced import solve_batch, solve_reduced
from equisep.peeled.roots import Function, bracketed_roots
from equisep.peeled.solution import ReducedForm, Solution
from equisep.peeled.thresholds import log_collapse_ratios, vanishing_ratio
from equisep.shapes import Float64, Int

State = Literal["separate", "collapsed", "vanished"]

ASIDE = 1e-3  # how far beside a least weight the problem is solved again
EXACT = 1e-10  # in log w
DECADES = 200  # how far down a least weight is looked for


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of the classes of one group, and what it takes to save them.

    collapse_weight   the ω from which on the classifiers differ; `None` for a group of one class, or where not asked for
    vanishing_weight  the ω up to which the vectors are zero, 0 where they never are; `None` where not asked for, and for
                      groups of two classes or more that have not vanished
    checked           whether solving again slightly above and below `least_weight` gave the two fates; `None` without one
    """

    group: int
    classes: int
    weight: float
    state: State
    collapse_weight: float | None = None
    vanishing_weight: float | None = None
    checked: bool | None = None

    @property
    def least_weight(self) -> float | None:
        """The least ω that saves the group: its classifiers differ, or, for one class, its vectors are not zero."""
        return self.vanishing_weight if self.classes == 1 else self.collapse_weight

    @property
    def factor(self) -> float | None:
        """What to multiply the loss weight of these classes by, or their samples (oversampling): least ω over ω today.

        Repeating samples also raises N, but that scales all ω alike and leaves the optimum where it is.
        """
        least = self.least_weight
        return None if least is None or self.weight == 0 else least / self.weight


@dataclass(frozen=True, slots=True)
class Fates:
    """The solution of a problem and what becomes of each group."""

    solution: Solution
    groups: tuple[Fate, ...]

    @property
    def classes(self) -> tuple[Fate, ...]:
        """The fate of each class, in the order the classes were given."""
        return tuple(self.groups[group] for group in self.solution.problem.class_groups)


def fates(problem: Problem, *, every: bool = False) -> Fates:
    """Which groups are separate, collapsed or vanished, and the least weight that saves those that are not separate.

    With `every` also how far the weight of a separate group could fall. A solver that stops early is a `NumericalError`:
    a fate that is not proven is not told.
    """
    solution = solve_reduced([problem])[0].or_raise()
    found = solution.geometry
    states: list[State] = [
        "vanished" if gone else "collapsed" if joined else "separate"
        for gone, joined in zip(found.vanished, found.collapsed, strict=True)
    ]
    groups = [
        Fate(group=group, classes=count, weight=weight, state=state)
        for group, (count, weight, state) in enumerate(zip(problem.group_sizes, problem.weights, states, strict=True))
    ]
    asked = [fate.group for fate in groups if problem.groups > 1 and (every or fate.state != "separate")]
    if asked:
        for fate in _weighed(problem, [groups[group] for group in asked]):
            groups[fate.group] = fate
    return Fates(solution, tuple(groups))


def collapse_weights(problem: Problem, groups: Sequence[int]) -> Float64[np.ndarray, " r"]:
    """The least ω that saves each of these groups of two classes or more, the other groups staying as they are."""
    if problem.groups == 2:
        others = [1 - group for group in groups]
        sizes, weights = np.array(problem.group_sizes, dtype=np.float64), np.array(problem.weights)
        energy = np.full(len(groups), problem.budget / problem.classes)
        logs, _ = log_collapse_ratios(sizes[others], sizes[list(groups)], energy)
        return np.asarray(weights[others] * np.exp(-logs))
    batch = Batch.of([problem] * len(groups), held=groups)
    own = np.asarray(groups, dtype=np.int64)

    def excess(log_weight: Float64[np.ndarray, " r"], rows: Int[np.ndarray, " r"]) -> Float64[np.ndarray, " r"]:
        """Log μ_g(w) − log w: positive where the group still collapses."""
        part = _with_weight(batch.select(rows), own[rows], np.exp(log_weight))
        _, _, gap, _ = solve_batch(part)
        return np.asarray(np.log(gap.multiplier) - log_weight)

    rest = batch.omega.copy()
    rest[np.arange(len(own)), own] = 0.0
    high = np.log(rest.max(axis=1))  # the heaviest group never collapses
    today = solve_reduced([problem])[0].certificate.multiplier
    low = _low_end(excess, np.minimum(math.log(today), high) - 0.01)
    return np.asarray(np.exp(bracketed_roots(excess, low, high, within=EXACT)))


def vanishing_weights(problem: Problem, groups: Sequence[int]) -> Float64[np.ndarray, " r"]:
    """The ω up to which each of these groups vanishes, the other groups staying as they are; 0 where it never does."""
    if problem.groups == 2:
        energy = problem.budget / problem.classes
        ratios = [vanishing_ratio(problem.group_sizes[1 - g], problem.group_sizes[g], energy) for g in groups]
        return np.array([0.0 if r is None else problem.weights[1 - g] / r for g, r in zip(groups, ratios, strict=True)])
    absent = [replace(problem, weights=_replaced(problem.weights, group, 0.0)) for group in groups]
    return np.array([_vanishing_weight(*pair) for pair in zip(solve_reduced(absent), groups, strict=True)])


def _vanishing_weight(solution: Solution, group: int) -> float:
    """1/√(rᵀ(μ² − Γ₀ᵀΓ₀)⁺r) where the group has vanished at ω_g = 0, otherwise 0."""
    if not solution.or_raise().geometry.vanished[group]:
        return 0.0
    form, batch = solution.form, Batch.of([solution.problem])
    assert isinstance(form, ReducedForm)
    _, big = gradient(batch, softmax(batch, form.s[None], form.M[None]).p)
    k = batch.k[0]
    r = np.sqrt(k[group]) * np.sqrt(k) / k.sum()
    r[group] -= 1.0
    _, sigma, Vt = np.linalg.svd(big[0])
    room = solution.certificate.multiplier**2 - sigma**2
    # M lives on directions without room; r has no part in them, as M√k = 0 and column g of M is zero
    open_ = room > 1e-6 * solution.certificate.multiplier**2
    return float(1.0 / np.sqrt((((Vt @ r) ** 2)[open_] / room[open_]).sum()))


def _weighed(problem: Problem, asked: Sequence[Fate]) -> list[Fate]:
    """These fates with their least weights, each checked by solving again slightly above and below it."""
    several = [fate.group for fate in asked if fate.classes > 1]
    joined = dict(zip(several, collapse_weights(problem, several).tolist() if several else [], strict=True))
    few = [fate.group for fate in asked if fate.classes == 1 or fate.state == "vanished"]
    gone = dict(zip(few, vanishing_weights(problem, few).tolist() if few else [], strict=True))
    weighed = [
        replace(fate, collapse_weight=joined.get(fate.group), vanishing_weight=gone.get(fate.group)) for fate in asked
    ]
    checked = _checked(problem, [fate for fate in weighed if fate.least_weight])
    return [replace(fate, checked=checked.get(fate.group)) for fate in weighed]


def _checked(problem: Problem, weighed: Sequence[Fate]) -> dict[int, bool]:
    """Whether each group is saved slightly above its least weight and not slightly below it, by the solver's word."""
    tries = [
        replace(problem, weights=_replaced(problem.weights, fate.group, (fate.least_weight or 0.0) * side))
        for fate in weighed
        for side in (1 - ASIDE, 1 + ASIDE)
    ]
    solved = solve_reduced(tries)
    verdicts = {}
    for place, fate in enumerate(weighed):
        below, above = (solution.or_raise().geometry for solution in solved[2 * place : 2 * place + 2])
        lost = [found.vanished[fate.group] or found.collapsed[fate.group] for found in (below, above)]
        verdicts[fate.group] = lost == [True, False]
    return verdicts


def _replaced(weights: tuple[float, ...], group: int, weight: float) -> tuple[float, ...]:
    return tuple(weight if other == group else w for other, w in enumerate(weights))


def _with_weight(batch: Batch, own: Int[np.ndarray, " r"], weights: Float64[np.ndarray, " r"]) -> Batch:
    omega = batch.omega.copy()
    omega[np.arange(len(own)), own] = weights
    return Batch(batch.k, omega, batch.tau, batch.free)


def _low_end(excess: Function, start: Float64[np.ndarray, " r"]) -> Float64[np.ndarray, " r"]:
    """A log weight at which each group still collapses, looked for downwards from `start`."""
    low, rows = start.copy(), np.arange(len(start))
    for _ in range(DECADES):
        rows = rows[excess(low[rows], rows) <= 0]
        if not rows.size:
            return low
        low[rows] -= math.log(10)
    raise NumericalError(
        f"The least weight that saves group {rows[0]} was looked for down to {math.exp(low[rows[0]]):.3g} and not "
        "found. Use less extreme energies and weights."
    )
