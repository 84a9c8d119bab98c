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

import numpy as np

from equisep.errors import NumericalError
from equisep.peeled.prediction import states_of
from equisep.peeled.problem import Problem
from equisep.peeled.roots import falling_roots
from equisep.peeled.solution import ReducedForm, Solution
from equisep.peeled.solvers.batch import Batch, gradient, softmax
from equisep.peeled.solvers.reduced import TOLERANCE, solve_batch, solve_reduced
from equisep.peeled.solvers.sphere import together
from equisep.peeled.thresholds import log_collapse_ratios, vanishing_ratio
from equisep.progress import Progress, silent
from equisep.shapes import Float64, Int

ASIDE = 1e-3  # how far beside a least weight the problem is solved again
EXACT = 1e-10  # in log w


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
    state: str
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


def fates(problem: Problem, *, saving: bool = True, every: bool = False, progress: Progress = silent) -> Fates:
    """Which groups are separate, collapsed or vanished, and the least weight that saves those that are not separate.

    With `every` also how far the weight of a separate group could fall; without `saving` no least weight at all, which
    takes one solution instead of several a group. A solver that stops early is a `NumericalError`: a fate that is not
    proven is not told.
    """
    solution = solve_reduced([problem])[0].or_raise()
    groups = [
        Fate(group=group, classes=count, weight=weight, state=state)
        for group, (count, weight, state) in enumerate(
            zip(problem.group_sizes, problem.weights, states_of(solution.geometry), strict=True)
        )
    ]
    several = saving and problem.groups > 1
    asked = [fate.group for fate in groups if several and (every or fate.state != "separate")]
    step, guess = together(problem.groups), _Guess(math.log(solution.certificate.multiplier), -1.0)
    for first in range(0, len(asked), step):
        part, guess = _weighed(solution, [groups[group] for group in asked[first : first + step]], guess)
        for fate in part:
            groups[fate.group] = fate
        progress("finding least weights", first + len(part), len(asked))
    return Fates(solution, tuple(groups))


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
        worst = int(np.argmax(gaps))
        raise NumericalError(
            f"The least weight of group {groups[worst]} was asked for; the solver stopped there with a duality gap of "
            f"{gaps[worst]:.3g} of the value. Use less extreme energies and weights."
        )
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


def _weighed(solution: Solution, asked: Sequence[Fate], guess: _Guess) -> tuple[list[Fate], _Guess]:
    """These fates with their least weights, each checked by solving again slightly above and below it."""
    near = {}
    several = [fate.group for fate in asked if fate.classes > 1]
    joined: dict[int, float] = {}
    if several:
        found = _collapse(solution, several, guess)
        joined, guess = dict(zip(several, found.weights.tolist(), strict=True)), found.guess
        near = dict(zip(several, found.forms, strict=False))
    few = [fate.group for fate in asked if fate.classes == 1 or fate.state == "vanished"]
    gone = dict(zip(few, vanishing_weights(solution, few).tolist() if few else [], strict=True))
    weighed = [
        replace(fate, collapse_weight=joined.get(fate.group), vanishing_weight=gone.get(fate.group)) for fate in asked
    ]
    checked = _checked(solution, [fate for fate in weighed if fate.least_weight], near)
    return [replace(fate, checked=checked.get(fate.group)) for fate in weighed], guess


def _checked(solution: Solution, weighed: Sequence[Fate], near: dict[int, ReducedForm]) -> dict[int, bool]:
    """Whether each group is saved slightly above its least weight and not slightly below it, by the solver's word."""
    problem = solution.problem
    tries = [
        replace(problem, weights=_replaced(problem.weights, fate.group, (fate.least_weight or 0.0) * side))
        for fate in weighed
        for side in (1 - ASIDE, 1 + ASIDE)
    ]
    starts = [form for fate in weighed for form in _beside(problem, near.get(fate.group, _form(solution)), fate)]
    solved = solve_reduced(tries, near=starts)
    verdicts = {}
    for place, fate in enumerate(weighed):
        below, above = (found.or_raise().geometry for found in solved[2 * place : 2 * place + 2])
        lost = [found.vanished[fate.group] or found.collapsed[fate.group] for found in (below, above)]
        verdicts[fate.group] = lost == [True, False]
    return verdicts


def _beside(problem: Problem, form: ReducedForm, fate: Fate) -> tuple[ReducedForm, ReducedForm]:
    """Where to set out slightly below and above a least weight, from the optimum there.

    Above, a group of several classes has |γ_g| = μ, whence e^{s_g} − 1 = k_g(1 − μ/ω_g)/(k_g p_gg), of the size of ASIDE/p_gg.
    """
    if fate.classes == 1:
        return form, form
    batch = Batch.of([problem])
    s = form.s.copy()
    s[fate.group] = math.log1p(ASIDE / softmax(batch, form.s[None], form.M[None]).own[0, fate.group])
    return form, ReducedForm(s, form.M)


def _replaced(weights: tuple[float, ...], group: int, weight: float) -> tuple[float, ...]:
    return tuple(weight if other == group else w for other, w in enumerate(weights))


def _with_weight(batch: Batch, own: Int[np.ndarray, " r"], weights: Float64[np.ndarray, " r"]) -> Batch:
    omega = batch.omega.copy()
    omega[np.arange(len(own)), own] = weights
    return Batch(batch.k, omega, batch.tau, batch.free)
