"""Any list of classes: which are told apart and which are lost, and the least weight that rescues each, checked by solving again.

A lost group has collapsed, has vanished, or is taken for a class of another size; see `least_weights` for what parts it from its
equals and from zero. Where it would still be lost there, its least weight is the root of its margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from equisep.display import brief
from equisep.peeled.classes import State, group_margins, group_states
from equisep.peeled.least_weights import (
    ASIDE,
    Guess,
    MarginRoot,
    collapse,
    margin_roots,
    reweighted,
    vanishing_weights,
)
from equisep.peeled.problem import Problem
from equisep.peeled.solution import ReducedForm, Solution, form_of
from equisep.peeled.solvers.batch import Batch, softmax
from equisep.peeled.solvers.reduced import solve_reduced
from equisep.peeled.solvers.sphere import together
from equisep.progress import Watched, callback, watched


@brief
@dataclass(frozen=True, slots=True)
class GroupRescue:
    """What becomes of the classes of one group, and what it takes to rescue them.

    margin            the own logit less the largest other one, on their own samples
    collapse_weight   the ω from which on the classifiers differ; `None` for a group of one class, or where not asked for
    vanishing_weight  the ω up to which the vectors are zero, 0 where they never are; `None` where not asked for, and for
                      groups of two classes or more, or plainly lost, that have not vanished
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


@brief
@dataclass(frozen=True, slots=True)
class Rescue:
    """The solution of a problem, what becomes of each group, and what rescues those that are lost."""

    solution: Solution
    groups: tuple[GroupRescue, ...]

    @property
    def classes(self) -> tuple[GroupRescue, ...]:
        """The same by class, in the order the classes were given."""
        return tuple(self.groups[group] for group in self.solution.problem.class_groups)


@watched
def rescue(problem: Problem, *, weights: bool = True, every: bool = False, progress: Watched = None) -> Rescue:
    """Which groups are told apart and which are lost, and the least weight that rescues each that is lost.

    With `every` also how far the weight of a group that is told apart could fall; without `weights` no least weight at all,
    which takes one solution instead of several per group. A solver that stops early is a `NumericalError`: what is not
    proven is not told.

    >>> from equisep import peeled
    >>> problem = peeled.Problem.of_groups([3, 4, 3], [1, 0.3, 0.05], feature_energy=5, weight_energy=1)
    >>> third = peeled.rescue(problem).groups[2]
    >>> str(third.state), f"{third.factor:.3f}"
    ('lost: collapsed', '2.395')
    """
    progress = callback(progress)
    solution = solve_reduced([problem])[0]
    states, found_margins = group_states(solution), group_margins(solution).tolist()
    groups = [
        GroupRescue(g, problem.group_sizes[g], problem.weights[g], states[g], found_margins[g])
        for g in range(problem.groups)
    ]
    several = weights and problem.groups > 1
    asked = [one.group for one in groups if several and (every or one.state.lost)]
    step, guess = together(problem.groups), Guess(math.log(solution.certificate.multiplier), -1.0)
    before: MarginRoot | None = None
    for first in range(0, len(asked), step):
        part, guess, before = _weighed(
            solution, [groups[group] for group in asked[first : first + step]], guess, before
        )
        for one in part:
            groups[one.group] = one
        progress("finding least weights", first + len(part), len(asked))
    return Rescue(solution, tuple(groups))


def _weighed(
    solution: Solution, asked: Sequence[GroupRescue], guess: Guess, before: MarginRoot | None
) -> tuple[list[GroupRescue], Guess, MarginRoot | None]:
    """These groups with their least weights, each checked by solving again slightly above and below it."""
    near: dict[int, ReducedForm] = {}
    several = [one.group for one in asked if one.classes > 1]
    joined: dict[int, float] = {}
    if several:
        parted_at = collapse(solution, several, guess)
        joined, guess = dict(zip(several, parted_at.weights.tolist(), strict=True)), parted_at.guess
        near = dict(zip(several, parted_at.forms, strict=False))
    # what is plainly lost has not vanished at the weight it has, and its margin alone tells
    few = [
        one.group
        for one in asked
        if one.state is State.VANISHED or (one.classes == 1 and one.state is State.TOLD_APART)
    ]
    gone = dict(zip(few, vanishing_weights(solution, few).tolist() if few else [], strict=True))
    parted = [
        replace(one, collapse_weight=joined.get(one.group), vanishing_weight=gone.get(one.group)) for one in asked
    ]
    known = {one.group: one.parting_weight for one in parted if one.parting_weight}
    aside = _lost_aside(solution, known, near)
    # parted from its equals, or from zero, a class may still be taken for one of another size
    late = [one for one in parted if one.group not in known or aside[one.group][1]]
    if late:
        roots = margin_roots(solution, {one.group: one.parting_weight for one in late}, before)
        before = next((root for root in roots.values() if root.weight), before)
        near |= {group: root.form for group, root in roots.items()}
        later = {group: root.weight for group, root in roots.items()}
        known |= later
        aside |= _lost_aside(solution, {group: weight for group, weight in later.items() if weight}, near)
    checked = {group: lost == (True, False) for group, lost in aside.items()}
    return (
        [
            replace(one, least_weight=known[one.group], checked=checked.get(one.group) if known[one.group] else None)
            for one in parted
        ],
        guess,
        before,
    )


def _lost_aside(
    solution: Solution, least: Mapping[int, float], near: Mapping[int, ReducedForm]
) -> dict[int, tuple[bool, bool]]:
    """Whether each group is lost slightly below and slightly above its least weight, by the solver's word."""
    problem = solution.problem
    tries = [
        reweighted(problem, group, weight * side) for group, weight in least.items() for side in (1 - ASIDE, 1 + ASIDE)
    ]
    starts = [form for group in least for form in _beside(problem, near.get(group, form_of(solution)), group)]
    lost = [
        group_states(tried)[group].lost
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
