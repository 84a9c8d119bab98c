"""Any list of classes: which are told apart and which are lost, and the least weight that rescues each, checked by solving again.

For k_g ≥ 2 the classifiers of group g coincide iff s_g = 0 iff ω_g ≤ μ. The least weight at which they part is the root w* of
μ_g(w) = w, μ_g the multiplier of the problem with ω_g = w and s_g held at 0; today's μ is not it, as μ moves with the weight.

A group vanishes where s_g = 0 and its row and column of M are zero. Then nothing depends on ω_g but its own row of Γ, which is
w·r with r = √k_g √k/K − e_g, so that ‖Γ‖_op ≤ μ iff w² rᵀ(μ² − Γ₀ᵀΓ₀)⁺r ≤ 1, Γ₀ being Γ without that row. It is enough to solve
the problem with ω_g = 0: a group that does not vanish there does not vanish at any weight.

What is neither collapsed nor vanished may still be lost, to a class of another size: its least weight is the root of its margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from equisep.errors import NumericalError
from equisep.peeled.classes import State, group_margins, group_states
from equisep.peeled.problem import Problem
from equisep.peeled.roots import falling_roots
from equisep.peeled.solution import ReducedForm, Solution
from equisep.peeled.solvers.batch import Batch, gradient, margins, softmax
from equisep.peeled.solvers.reduced import TOLERANCE, solve_batch, solve_reduced
from equisep.peeled.solvers.sphere import together
from equisep.peeled.thresholds import log_collapse_ratios, vanishing_ratio
from equisep.progress import Progress, silent
from equisep.shapes import Float64, Int

ASIDE = 1e-3  # how far beside a least weight the problem is solved again
EXACT = 1e-10  # in log w
FAINTEST = 1e-9  # of the heaviest weight: what is told apart there is told apart at any weight
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class GroupRescue:
    """What becomes of the classes of one group, and what it takes to rescue them.

    margin            the own logit less the largest other one, on their own samples
    collapse_weight   the ω from which on the classifiers differ; `None` for a group of one class, or where not asked for
    vanishing_weight  the ω up to which the vectors are zero, 0 where they never are; `None` where not asked for, and for
                      groups of two classes or more that have not vanished
    least_weight      the ω from which on the margin is above 0; 0 where it is at any weight, `None` where not asked for
    checked           whether solving again slightly above and below `least_weight` gave the two states; `None` without one
    """

    group: int
    classes: int
    weight: float
    state: State
    margin: float
    collapse_weight: float | None = None
    vanishing_weight: float | None = None
    least_weight: float | None = None
    checked: bool | None = None

    @property
    def factor(self) -> float | None:
        """What to multiply the loss weight of these classes by, or their samples (oversampling): least ω over ω today.

        Repeating samples also raises N, but that scales all ω alike and leaves the optimum where it is.
        """
        return None if self.least_weight is None or self.weight == 0 else self.least_weight / self.weight

    @property
    def parting_weight(self) -> float:
        """The weight up to which the group cannot be told apart, collapsed or vanished; 0 where there is none."""
        return (self.vanishing_weight if self.classes == 1 else self.collapse_weight) or 0.0


@dataclass(frozen=True, slots=True)
class Rescue:
    """The solution of a problem, what becomes of each group, and what rescues those that are lost."""

    solution: Solution
    groups: tuple[GroupRescue, ...]

    @property
    def classes(self) -> tuple[GroupRescue, ...]:
        """The same by class, in the order the classes were given."""
        return tuple(self.groups[group] for group in self.solution.problem.class_groups)


def rescue(problem: Problem, *, weights: bool = True, every: bool = False, progress: Progress = silent) -> Rescue:
    """Which groups are told apart and which are lost, and the least weight that rescues each that is lost.

    With `every` also how far the weight of a group that is told apart could fall; without `weights` no least weight at all,
    which takes one solution instead of several per group. A solver that stops early is a `NumericalError`: what is not
    proven is not told.
    """
    solution = solve_reduced([problem])[0].or_raise()
    states, found_margins = group_states(solution), group_margins(solution).tolist()
    groups = [
        GroupRescue(g, problem.group_sizes[g], problem.weights[g], states[g], found_margins[g])
        for g in range(problem.groups)
    ]
    several = weights and problem.groups > 1
    asked = [one.group for one in groups if several and (every or one.state.lost)]
    step, guess = together(problem.groups), _Guess(math.log(solution.certificate.multiplier), -1.0)
    for first in range(0, len(asked), step):
        part, guess = _weighed(solution, [groups[group] for group in asked[first : first + step]], guess)
        for one in part:
            groups[one.group] = one
        progress("finding least weights", first + len(part), len(asked))
    return Rescue(solution, tuple(groups))


def collapse_weights(problem: Problem, groups: Sequence[int]) -> Float64[np.ndarray, " r"]:
    """The least ω that saves each of these groups of two classes or more, the other groups staying as they are."""
    solution = solve_reduced([problem])[0].or_raise()
    return _collapse(solution, groups, _Guess(math.log(solution.certificate.multiplier), -1.0)).weights


def vanishing_weights(solution: Solution, groups: Sequence[int]) -> Float64[np.ndarray, " r"]:
    """The ω up to which each of these groups vanishes, the other groups staying as they are; 0 where it never does."""
    problem = solution.problem
    if problem.groups == 2:
        energy = problem.budget / problem.classes
        ratios = [vanishing_ratio(problem.group_sizes[1 - g], problem.group_sizes[g], energy) for g in groups]
        return np.array([0.0 if r is None else problem.weights[1 - g] / r for g, r in zip(groups, ratios, strict=True)])
    form = _form(solution)
    here = [
        group for group in groups if _is_zero(form, group)
    ]  # nothing changes where a group that is zero is left out
    elsewhere = [group for group in groups if group not in here]
    absent = [replace(problem, weights=_replaced(problem.weights, group, 0.0)) for group in elsewhere]
    solved = dict(zip(elsewhere, solve_reduced(absent, near=[form] * len(absent)), strict=True))
    return np.array([_vanishing_weight(solved.get(group, solution), group) for group in groups])


@dataclass(frozen=True, slots=True)
class _Guess:
    """Where to look for a least weight, in log ω, and how fast log μ_g(w) − log w falls there; from the last group found."""

    log_weight: float
    slope: float


@dataclass(frozen=True, slots=True, eq=False)
class _Collapse:
    """The least weights of some groups, the optimum at each (nothing for two groups), and a guess for other groups."""

    weights: Float64[np.ndarray, " r"]
    forms: tuple[ReducedForm, ...]
    guess: _Guess


def _collapse(solution: Solution, groups: Sequence[int], guess: _Guess) -> _Collapse:
    problem = solution.problem
    if problem.groups == 2:
        others = [1 - group for group in groups]
        sizes, weights = np.array(problem.group_sizes, dtype=np.float64), np.array(problem.weights)
        energy = np.full(len(groups), problem.budget / problem.classes)
        logs, _ = log_collapse_ratios(sizes[others], sizes[list(groups)], energy)
        return _Collapse(np.asarray(weights[others] * np.exp(-logs)), (), guess)
    own = np.asarray(groups, dtype=np.int64)
    batch = Batch.of([problem] * len(own), held=groups)
    form = _form(solution)
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
    return _Collapse(np.exp(roots), forms, _Guess(float(roots[-1]), float(slopes[-1])))


def _form(solution: Solution) -> ReducedForm:
    assert isinstance(solution.form, ReducedForm)  # what the reduced solver returns
    return solution.form


def _is_zero(form: ReducedForm, group: int) -> bool:
    return form.s[group] == 0 and not form.M[group].any() and not form.M[:, group].any()


def _vanishing_weight(solution: Solution, group: int) -> float:
    """1/√(rᵀ(μ² − Γ₀ᵀΓ₀)⁺r) where the group has vanished at this optimum, otherwise 0."""
    if not solution.or_raise().geometry.vanished[group]:
        return 0.0
    form, batch = _form(solution), Batch.of([solution.problem])
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


def _weighed(solution: Solution, asked: Sequence[GroupRescue], guess: _Guess) -> tuple[list[GroupRescue], _Guess]:
    """These groups with their least weights, each checked by solving again slightly above and below it."""
    near: dict[int, ReducedForm] = {}
    several = [one.group for one in asked if one.classes > 1]
    joined: dict[int, float] = {}
    if several:
        collapse = _collapse(solution, several, guess)
        joined, guess = dict(zip(several, collapse.weights.tolist(), strict=True)), collapse.guess
        near = dict(zip(several, collapse.forms, strict=False))
    few = [one.group for one in asked if one.classes == 1 or one.state is State.VANISHED]
    gone = dict(zip(few, vanishing_weights(solution, few).tolist() if few else [], strict=True))
    parted = [
        replace(one, collapse_weight=joined.get(one.group), vanishing_weight=gone.get(one.group)) for one in asked
    ]
    known = {one.group: one.parting_weight for one in parted if one.parting_weight}
    aside = _lost_aside(solution, known, near)
    # parted from its equals, or from zero, a class may still be taken for one of another size
    late = [one for one in parted if one.group not in known or aside[one.group][1]]
    if late:
        roots = _margin_roots(solution, late, guess)
        near |= {group: root.form for group, root in roots.items()}
        later = {group: root.weight for group, root in roots.items()}
        known |= later
        aside |= _lost_aside(solution, {group: weight for group, weight in later.items() if weight}, near)
    checked = {group: lost == (True, False) for group, lost in aside.items()}
    return [
        replace(one, least_weight=known[one.group], checked=checked.get(one.group) if known[one.group] else None)
        for one in parted
    ], guess


@dataclass(frozen=True, slots=True, eq=False)
class _MarginRoot:
    """The weight at which a margin comes above 0, and the optimum there."""

    weight: float
    form: ReducedForm


def _margin_roots(solution: Solution, asked: Sequence[GroupRescue], guess: _Guess) -> dict[int, _MarginRoot]:
    """The root of the margin of each of these groups over the log of its weight, the other groups staying as they are."""
    problem = solution.problem
    own = np.array([one.group for one in asked])
    batch = Batch.of([problem] * len(own))
    form = _form(solution)
    s, M = np.repeat(form.s[None], len(own), axis=0), np.repeat(form.M[None], len(own), axis=0)

    def shortfall(log_weight: Float64[np.ndarray, " r"], rows: Int[np.ndarray, " r"]) -> Float64[np.ndarray, " r"]:
        """Minus the margin: above 0 where the group is lost; each solved from the optimum before."""
        part = _with_weight(batch.select(rows), own[rows], np.exp(log_weight))
        s[rows], M[rows], gap, _ = solve_batch(part, start=(s[rows], M[rows]), polished=True)
        if not (gap.gap <= TOLERANCE * gap.value).all():
            raise _no_least_weight(own[rows[int(np.argmax(gap.gap / gap.value))]], float((gap.gap / gap.value).max()))
        return np.asarray(-margins(part, s[rows], M[rows])[np.arange(len(rows)), own[rows]])

    rest = batch.omega.copy()
    rest[np.arange(len(own)), own] = 0.0
    high = np.log(rest.max(axis=1))  # the heaviest group is told apart
    start = np.array([math.log(max(one.parting_weight * (1 + ASIDE), one.weight, TINY)) for one in asked])
    start = np.where([one.parting_weight or one.weight for one in asked], start, guess.log_weight)
    floor = np.array([math.log(one.parting_weight * (1 + ASIDE) or FAINTEST * rest.max()) for one in asked])
    always = shortfall(floor, np.arange(len(own))) < 0  # told apart however light it is
    weights = np.zeros(len(own))
    rows = np.flatnonzero(~always)
    if rows.size:
        roots, _ = falling_roots(
            lambda x, r: shortfall(x, rows[r]),
            np.minimum(start, high - EXACT)[rows],
            high=high[rows],
            slope=np.full(len(rows), -1.0),
            within=EXACT,
        )
        weights[rows] = np.exp(roots)
    return {
        one.group: _MarginRoot(float(weight), ReducedForm(s[row], M[row]))
        for row, (one, weight) in enumerate(zip(asked, weights, strict=True))
    }


def _lost_aside(
    solution: Solution, least: Mapping[int, float], near: Mapping[int, ReducedForm]
) -> dict[int, tuple[bool, bool]]:
    """Whether each group is lost slightly below and slightly above its least weight, by the solver's word."""
    problem = solution.problem
    tries = [
        replace(problem, weights=_replaced(problem.weights, group, weight * side))
        for group, weight in least.items()
        for side in (1 - ASIDE, 1 + ASIDE)
    ]
    starts = [form for group in least for form in _beside(problem, near.get(group, _form(solution)), group)]
    lost = [
        group_states(tried.or_raise())[group].lost
        for tried, group in zip(
            solve_reduced(tries, near=starts), (group for group in least for _ in range(2)), strict=True
        )
    ]
    return {group: (lost[2 * row], lost[2 * row + 1]) for row, group in enumerate(least)}


def _beside(problem: Problem, form: ReducedForm, group: int) -> tuple[ReducedForm, ReducedForm]:
    """Where to set out slightly below and above a least weight, from the optimum there.

    Above, a group of several classes has |γ_g| = μ, whence e^{s_g} − 1 = k_g(1 − μ/ω_g)/(k_g p_gg), of the size of ASIDE/p_gg.
    """
    if problem.group_sizes[group] == 1:
        return form, form
    batch = Batch.of([problem])
    s = form.s.copy()
    s[group] = max(s[group], math.log1p(ASIDE / softmax(batch, form.s[None], form.M[None]).own[0, group]))
    return form, ReducedForm(s, form.M)


def _no_least_weight(group: int, gap: float) -> NumericalError:
    return NumericalError(
        f"The least weight of group {group} was asked for; the solver stopped there with a duality gap of {gap:.3g} of the "
        "value. Use less extreme energies and weights."
    )


def _replaced(weights: tuple[float, ...], group: int, weight: float) -> tuple[float, ...]:
    return tuple(weight if other == group else w for other, w in enumerate(weights))


def _with_weight(batch: Batch, own: Int[np.ndarray, " r"], weights: Float64[np.ndarray, " r"]) -> Batch:
    omega = batch.omega.copy()
    omega[np.arange(len(own)), own] = weights
    return Batch(batch.k, omega, batch.tau, batch.free)
