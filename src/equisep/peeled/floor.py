"""The least floor under the weights of all classes at once: lifted to it, no two classifiers coincide, or no class is lost.

`rescue` says how far the weight of *one* group must rise while the others stay; weights for a loss have to hold together, and
classes that are lifted side by side take energy from each other. Lifting every ω_k below t to t, ω_k(t) = max(ω_k, t), is one
number, ends at classes of equal weight, all of them told apart, and leaves large classes as they are. The least t is searched
by sections of its logarithm, each problem solved and certified: the floor that is told is the least that was solved with every
class as wanted, there and at every larger floor tried, and not so at the one `below`, within `PRECISION`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from equisep.display import brief
from equisep.peeled.classes import State, group_margins, group_states
from equisep.peeled.problem import Problem
from equisep.peeled.solution import Solution
from equisep.peeled.solvers.reduced import solve_reduced
from equisep.progress import Progress, Watched, callback, watched
from equisep.shapes import Float64

PRECISION = 1e-3  # of a floor
SECTIONS = 5  # into which what is left is cut, its inner ends solved together
HALF = 0.5  # of the margin that classes of equal weight have
_Wanted = Callable[[Solution], bool]


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Lift:
    """A floor t, the largest floor below it that was solved and does not do, and the optimum at t."""

    weight: float
    below: float
    solution: Solution


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """A problem as it is, class by class, and the floors that rescue what is lost.

    states, margins   by class, in the order given, at the weights the classes have
    collapse          the least floor from which on no two classifiers coincide and none is zero; None where none do without
    margin            the least floor from which on every class is told apart: a margin above 0; None where no class is lost
    half              the least floor from which on every margin is half of √(E_W·E_H)·K/(K − 1), that of equal classes, or more;
                      None where it is so already, or where it was not asked for
    """

    solution: Solution
    states: tuple[State, ...]
    margins: tuple[float, ...]
    collapse: Lift | None
    margin: Lift | None
    half: Lift | None = None

    @property
    def lost(self) -> tuple[int, ...]:
        """The classes, by number, that are not told apart."""
        return tuple(k for k, state in enumerate(self.states) if state.lost)

    def factors(self, lift: Lift | None) -> tuple[float, ...]:
        """What to multiply the loss weight of each class by, or its samples, to come to a floor; 1 where there is none."""
        omegas = self.solution.problem.class_weights
        floor = 0.0 if lift is None else lift.weight
        return tuple(np.maximum(1.0, floor / np.where(omegas > 0, omegas, math.inf)).tolist())


@watched
def floor_of(problem: Problem, *, half: bool = False, progress: Watched = None) -> Floor:
    """Which classes are lost, and the least floors that end collapse and that give every class a margin.

    A class of weight 0 has no samples to weigh and stays as it is told. A solver that stops early is a `NumericalError`.

    >>> from equisep import peeled
    >>> tail = peeled.floor_of(peeled.Problem.of_sizes([500, 500, 5, 5], feature_energy=1, weight_energy=1))
    >>> tail.lost, [round(factor, 2) for factor in tail.factors(tail.margin)]
    ((2, 3), [1.0, 1.0, 29.59, 29.59])
    """
    progress = callback(progress)
    solution = solve_reduced([problem])[0]
    groups = problem.class_groups
    states, margins = group_states(solution), group_margins(solution)
    search = _Search(problem, progress)
    lost = any(state.lost for state in _present(solution))
    wanting = half and not search.half(solution)
    return Floor(
        solution,
        tuple(states[group] for group in groups),
        tuple(margins[groups].tolist()),
        collapse=search.least(_none_coincide) if lost else None,
        margin=search.least(_all_told_apart) if lost else None,
        half=search.least(search.half) if wanting else None,
    )


def _none_coincide(solution: Solution) -> bool:
    return not any(state in (State.COLLAPSED, State.VANISHED) for state in _present(solution))


def _all_told_apart(solution: Solution) -> bool:
    return not any(state.lost for state in _present(solution))


def _present(solution: Solution) -> list[State]:
    """The states of the groups that have a weight."""
    states = group_states(solution)
    return [state for state, weight in zip(states, solution.problem.weights, strict=True) if weight > 0]


class _Search:
    """The least floors of one problem; what was solved for one is there for the others."""

    def __init__(self, problem: Problem, progress: Progress) -> None:
        self.problem = problem
        self.progress = progress
        omegas = problem.class_weights
        self.bottom = math.log(float(omegas[omegas > 0].min()))
        self.top = math.log(float(omegas.max()))
        self._solved: dict[float, Solution] = {}

    def half(self, solution: Solution) -> bool:
        """Whether every class that is in the loss has half the margin of equal classes."""
        problem = self.problem
        present = np.array(solution.problem.weights) > 0
        equal = problem.budget / (problem.classes - 1)
        return bool((group_margins(solution)[present] >= HALF * equal).all())

    def least(self, wanted: _Wanted) -> Lift | None:
        """The least floor from which on all that are tried are as wanted; the highest makes all classes equal.

        None where all are, and the problem as it is too.
        """
        bottom, top = self.bottom, self.top
        best = self._at([top])[0]
        rounds = math.ceil(math.log(max(1.0, (top - bottom) / PRECISION)) / math.log(SECTIONS))
        for done in range(rounds):
            inner = np.linspace(bottom, top, SECTIONS + 1)[1:-1].tolist()
            solved = self._at(inner)
            first = next((at for at in reversed(range(len(inner))) if not wanted(solved[at])), -1) + 1
            bottom = inner[first - 1] if first else bottom
            if first < len(inner):
                top, best = inner[first], solved[first]
            self.progress("finding least weights", done + 1, rounds)
        if bottom == self.bottom and wanted(self._at([bottom])[0]):
            return None
        return Lift(math.exp(top), math.exp(bottom), best)

    def _at(self, logs: Sequence[float]) -> list[Solution]:
        new = [at for at in logs if at not in self._solved]
        found = solve_reduced([lifted(self.problem, math.exp(at)) for at in new])
        self._solved |= dict(zip(new, found, strict=True))
        return [self._solved[at] for at in logs]


def lifted(problem: Problem, floor: float) -> Problem:
    """The problem with every weight raised to the floor at least; a class that is absent from the loss stays so."""
    omegas: Float64[np.ndarray, " k"] = problem.class_weights
    raised = np.where(omegas > 0, np.maximum(omegas, floor), 0.0)
    if raised.min() > 0:
        return Problem.of_weights(
            raised.tolist(), feature_energy=problem.feature_energy, weight_energy=problem.weight_energy
        )
    order = np.argsort(-raised, kind="stable")
    values, counts = np.unique(-raised[order], return_counts=True)
    membership = np.empty(len(raised), dtype=np.int64)
    membership[order] = np.searchsorted(values, -raised[order])
    return Problem(
        tuple(counts.tolist()),
        tuple((-values).tolist()),
        problem.feature_energy,
        problem.weight_energy,
        tuple(membership.tolist()),
    )
