"""What becomes of every class, of a solved problem or of measured vectors: told apart or lost, lengths, mean cosines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from equisep.display import brief
from equisep.errors import InputError
from equisep.files import encode
from equisep.peeled.geometry import GroupGeometry
from equisep.peeled.solution import COLLAPSED, ReducedForm, Solution
from equisep.peeled.solvers.batch import Batch, margins, softmax
from equisep.shapes import Bool, Float64, Int

HALF = "at most half of the largest size"  # what counts as minority where none is named


class State(StrEnum):
    """What becomes of a class at the optimum, judged by its margin; the value is the word shown.

    A class is told apart where, on its own samples, its own logit is above every other. A lost one may share its classifier
    with a class of equal weight (collapsed), or have zero vectors (vanished); or another class is simply preferred.
    """

    TOLD_APART = "told apart"
    LOST = "lost"
    COLLAPSED = "lost: collapsed"
    VANISHED = "lost: vanished"
    UNSOLVED = "not solved"

    @property
    def lost(self) -> bool:
        """Whether the class is not told apart, for whichever reason."""
        return self in (State.LOST, State.COLLAPSED, State.VANISHED)


@brief
@dataclass(frozen=True, slots=True, eq=False)
class ClassPrediction:
    """One entry per class, in the order the classes were given.

    states            told apart or lost, and how
    classifier_norms  ‖w_k‖
    feature_norms     ‖h_k‖
    nearest_cosines   the largest cosine between w_k and another classifier; NaN where every one is undefined
    margins           the own logit less the largest other one: 0 where the class can only be guessed, below 0 where
                      another is preferred
    losses            the cross-entropy of a sample of the class
    """

    states: tuple[State, ...]
    classifier_norms: Float64[np.ndarray, " k"]
    feature_norms: Float64[np.ndarray, " k"]
    nearest_cosines: Float64[np.ndarray, " k"]
    margins: Float64[np.ndarray, " k"]
    losses: Float64[np.ndarray, " k"]

    @property
    def lost(self) -> tuple[int, ...]:
        """The classes, by number, that are not told apart on their own samples: no margin above 0."""
        return tuple(k for k, state in enumerate(self.states) if state.lost)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {**encode(self, nonfinite="text"), "lost": list(self.lost)}


def group_margins(solution: Solution) -> Float64[np.ndarray, " g"]:
    """The margin of each group: of its classes all alike, or the least of them where the solver knew no groups."""
    problem, form = solution.problem, solution.form
    if isinstance(form, ReducedForm):
        return np.asarray(margins(Batch.of([problem]), form.s[None], form.M[None])[0])
    Z = solution.Z
    by_class = np.diag(Z) - np.where(np.eye(len(Z), dtype=bool), -np.inf, Z).max(axis=1)
    least = np.full(problem.groups, np.inf)
    np.minimum.at(least, problem.class_groups, by_class)
    return least


def group_states(solution: Solution) -> tuple[State, ...]:
    """The word for each group.

    A solver without groups is right to about the root of its gap: a margin up to `COLLAPSED` of the largest logit is none.
    """
    geometry = solution.geometry
    none = 0.0 if isinstance(solution.form, ReducedForm) else COLLAPSED * float(np.abs(solution.Z).max())
    return tuple(
        state_of(geometry, group, margin, none=none) for group, margin in enumerate(group_margins(solution).tolist())
    )


def state_of(geometry: GroupGeometry, group: int, margin: float, *, none: float = 0.0) -> State:
    """The word for one group, whose margin counts where it is above `none`."""
    if geometry.vanished[group]:
        return State.VANISHED
    if geometry.collapsed[group]:
        return State.COLLAPSED
    return State.TOLD_APART if margin > none else State.LOST


def predict_classes(solution: Solution) -> ClassPrediction:
    """The prediction for every class of a problem that the reduced solver solved; a `NumericalError` where it did not.

    >>> from equisep import peeled
    >>> solution = peeled.solve(sizes=[500] * 5 + [20] * 5)
    >>> peeled.predict_classes(solution).lost
    (5, 6, 7, 8, 9)
    """
    problem, form = solution.or_raise().problem, solution.form
    if not isinstance(form, ReducedForm):
        raise InputError(
            f"A prediction by class needs a solution by groups; found one of the {solution.solver} solver. "
            "Solve with `solve_reduced`."
        )
    groups, geometry = problem.class_groups, solution.geometry
    states = group_states(solution)
    cosines = np.array(geometry.classifier_cosines, dtype=np.float64)  # None becomes NaN
    return ClassPrediction(
        states=tuple(states[group] for group in groups),
        classifier_norms=np.array(geometry.classifier_norms)[groups],
        feature_norms=np.array(geometry.feature_norms)[groups],
        nearest_cosines=_largest(cosines)[groups],
        margins=group_margins(solution)[groups],
        losses=softmax(Batch.of([problem]), form.s[None], form.M[None]).loss[0][groups],
    )


def _largest(cosines: Float64[np.ndarray, "g g"]) -> Float64[np.ndarray, " g"]:
    """The largest number of each row, NaN where it holds none."""
    known = np.where(np.isnan(cosines), -np.inf, cosines).max(axis=1)
    return np.where(np.isinf(known), np.nan, known)


def small_classes(sizes: Sequence[int] | Int[np.ndarray, " k"]) -> Bool[np.ndarray, " k"]:
    """The classes of at most half the largest size."""
    counts = np.asarray(sizes)
    return np.asarray(2 * counts <= counts.max())


@brief
@dataclass(frozen=True, slots=True)
class Cosines:
    """Mean cosines between vectors of different classes: both minority, both majority, one of each.

    `None` where there is no such pair, or where its vectors are zero and have no direction.
    """

    minority: float | None
    majority: float | None
    between: float | None


def measured_cosines(vectors: Float64[np.ndarray, "k p"], small: Bool[np.ndarray, " k"]) -> Cosines:
    """Means over pairs, without the K×K matrix: Σ_{k≠j} cos = ‖Σ u_k‖² − n for unit vectors u_k."""
    norms = np.linalg.norm(vectors, axis=1)
    directed = norms > 0  # NaN is not
    sums, counts = [], []
    for chosen in (small & directed, ~small & directed):
        sums.append((vectors[chosen] / norms[chosen, None]).sum(axis=0))
        counts.append(int(chosen.sum()))
    within = [float((one @ one - n) / (n * (n - 1))) if n > 1 else None for one, n in zip(sums, counts, strict=True)]
    pairs = counts[0] * counts[1]
    return Cosines(within[0], within[1], float(sums[0] @ sums[1] / pairs) if pairs else None)
