"""What a solved problem says of every class: zero or not, alone or not, how long its vectors are, how sure the network is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equisep.errors import InputError
from equisep.files import encode
from equisep.peeled.geometry import GroupGeometry, blocks_of
from equisep.peeled.solution import ReducedForm, Solution
from equisep.peeled.solvers.batch import Batch, softmax
from equisep.shapes import Float64


@dataclass(frozen=True, slots=True, eq=False)
class ClassPrediction:
    """One entry a class, in the order the classes were given.

    states            `separate`, `collapsed` (its classifier is also that of another class) or `vanished` (zero vectors)
    classifier_norms  ‖w_k‖
    feature_norms     ‖h_k‖
    nearest_cosines   the largest cosine between w_k and another classifier; NaN where every one is undefined
    margins           the own logit less the largest other one: 0 where the class can only be guessed, below 0 where
                      another is preferred
    losses            the cross-entropy of a sample of the class
    """

    states: tuple[str, ...]
    classifier_norms: Float64[np.ndarray, " k"]
    feature_norms: Float64[np.ndarray, " k"]
    nearest_cosines: Float64[np.ndarray, " k"]
    margins: Float64[np.ndarray, " k"]
    losses: Float64[np.ndarray, " k"]

    @property
    def learned(self) -> tuple[bool, ...]:
        """Whether the class is told apart on its own training samples: a margin above 0."""
        return tuple((self.margins > 0).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {**encode(self, nonfinite="text"), "learned": list(self.learned)}


def states_of(geometry: GroupGeometry) -> tuple[str, ...]:
    """The word for each group."""
    return tuple(
        "vanished" if gone else "collapsed" if joined else "separate"
        for gone, joined in zip(geometry.vanished, geometry.collapsed, strict=True)
    )


def predict_classes(solution: Solution) -> ClassPrediction:
    """The prediction for every class of a problem that the reduced solver solved; a `NumericalError` where it did not."""
    problem, form = solution.or_raise().problem, solution.form
    if not isinstance(form, ReducedForm):
        raise InputError(
            f"A prediction by class needs a solution by groups; found one of the {solution.solver} solver. "
            "Solve with `solve_reduced`."
        )
    groups, geometry = problem.class_groups, solution.geometry
    states = states_of(geometry)
    batch = Batch.of([problem])
    cosines = np.array(geometry.classifier_cosines, dtype=np.float64)  # None becomes NaN
    logits = blocks_of(problem, form.s, form.M)
    others = np.where(np.diag(batch.k[0] == 1), -np.inf, logits.other)  # a group of one class has no other class
    return ClassPrediction(
        states=tuple(states[group] for group in groups),
        classifier_norms=np.array(geometry.classifier_norms)[groups],
        feature_norms=np.array(geometry.feature_norms)[groups],
        nearest_cosines=_largest(cosines)[groups],
        margins=(logits.same - others.max(axis=1))[groups],
        losses=softmax(batch, form.s[None], form.M[None]).loss[0][groups],
    )


def _largest(cosines: Float64[np.ndarray, "g g"]) -> Float64[np.ndarray, " g"]:
    """The largest number of each row, NaN where it holds none."""
    known = np.where(np.isnan(cosines), -np.inf, cosines).max(axis=1)
    return np.where(np.isinf(known), np.nan, known)
