"""A network's geometry, the one predicted for its class sizes and energies, and the mean cosines that compare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equisep.display import brief
from equisep.errors import NumericalError
from equisep.files import encode
from equisep.peeled.classes import ClassPrediction, Cosines, State, predict_classes
from equisep.peeled.problem import Problem
from equisep.peeled.solution import Solution
from equisep.peeled.solvers.reduced import solve_reduced
from equisep.peeled.thresholds import Thresholds, thresholds_of
from equisep.results import Note, Reading
from equisep.shapes import Bool, Float64, Int

NEARER = 0.3  # of a cosine, beyond which measured and predicted minority are told to differ


@brief
@dataclass(frozen=True, slots=True)
class Geometry:
    """Cosines between classifier rows and between class means; the norms of both, one per class, `None` without samples."""

    classifiers: Cosines
    features: Cosines
    classifier_norms: tuple[float, ...]
    feature_norms: tuple[float | None, ...]


@brief
@dataclass(frozen=True, slots=True)
class PredictedGeometry:
    """What the Layer-Peeled Model makes of these class sizes and energies; states, margins and losses are one per class.

    `thresholds` are R* and R₀ where there are two groups of classes, otherwise `None`.
    """

    geometry: Geometry
    states: tuple[State, ...]
    margins: tuple[float, ...]
    losses: tuple[float, ...]
    relative_gap: float
    thresholds: Thresholds | None


@brief
@dataclass(frozen=True, slots=True)
class NetworkComparison:
    """A network and its prediction. Lists are one entry per class, `None` where a class has no samples.

    reading          how the network was read; `None` for rows and means alone
    sizes            n_k of the training data, 0 where a class is absent from it
    minority         the classes that count as minority, by `minority_rule`
    ratio            largest over smallest class size, `None` where a class is absent
    mean_energy      (1/K) Σ ‖mean h_k‖², the part of E_H that is not spread within classes, of which the optimum has none
    margins          measured: the own score less the largest other, the mean over the class's own training samples; of
                     rows and means alone that of the class mean
    states           measured: told apart where that margin is above 0, otherwise lost
    predicted        `None` where the solver stopped early; a Note then says how far it came
    """

    classifier: str
    reading: Reading | None
    centered: bool
    sizes: tuple[int, ...]
    loss_weights: tuple[float, ...]
    minority: tuple[int, ...]
    minority_rule: str
    ratio: float | None
    weight_energy: float
    feature_energy: float
    mean_energy: float
    measured: Geometry
    margins: tuple[float | None, ...]
    states: tuple[State | None, ...]
    predicted: PredictedGeometry | None
    accuracy: tuple[float | None, ...] | None
    test_accuracy: tuple[float | None, ...] | None
    notes: tuple[Note, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """The classes, by number, that the network itself does not tell apart on their own training samples."""
        return tuple(k for k, state in enumerate(self.states) if state is not None and state.lost)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        content: dict[str, Any] = encode(self, nonfinite="text")
        return {**content, "lost": list(self.lost)}


def with_prediction(found: NetworkComparison) -> NetworkComparison:
    """The comparison with its prediction, or with a Note where the solver stopped early."""
    small = np.isin(np.arange(len(found.sizes)), found.minority)
    omegas = np.array(found.loss_weights) * np.array(found.sizes) / sum(found.sizes)
    problem = _problem(omegas, feature_energy=found.feature_energy, weight_energy=found.weight_energy)
    try:
        solution = solve_reduced([problem])[0]
        classes = predict_classes(solution)
    except NumericalError as error:
        return replace(found, notes=(*found.notes, Note("no-prediction", str(error))))
    predicted = _predicted(solution, classes, small)
    return replace(found, predicted=predicted, notes=(*found.notes, *_nearness_notes(found.measured, predicted)))


def measured_states(margins: Sequence[float | None]) -> tuple[State | None, ...]:
    """The word for each class by its margin; `None` without one."""
    return tuple(None if one is None else State.TOLD_APART if one > 0 else State.LOST for one in margins)


def _nearness_notes(measured: Geometry, predicted: PredictedGeometry) -> tuple[Note, ...]:
    """A word where minority vectors stand much nearer together than the optimum would have them."""
    notes = []
    for name, what in (("classifiers", "classifier rows"), ("features", "class means")):
        seen, due = (getattr(geometry, name).minority for geometry in (measured, predicted.geometry))
        if seen is not None and due is not None and seen - due > NEARER:
            text = (
                f"The minority's {what} have a mean cosine of {seen:.2f}, predicted {due:.2f}: the network holds them nearer "
                "together than the optimum for its sizes and energies does."
            )
            notes.append(Note("minority-nearer", text))
    return tuple(notes)


def _predicted(solution: Solution, classes: ClassPrediction, small: Bool[np.ndarray, " k"]) -> PredictedGeometry:
    problem, geometry = solution.problem, solution.geometry
    limits = None
    if problem.groups == 2:
        heavy = int(problem.weights[1] > problem.weights[0])
        sizes = problem.group_sizes
        limits = thresholds_of(sizes[heavy], sizes[1 - heavy], problem.feature_energy, problem.weight_energy)
    return PredictedGeometry(
        geometry=Geometry(
            classifiers=_predicted_cosines(problem, geometry.classifier_cosines, small),
            features=_predicted_cosines(problem, geometry.feature_cosines, small),
            classifier_norms=tuple(classes.classifier_norms.tolist()),
            feature_norms=tuple(classes.feature_norms.tolist()),
        ),
        states=classes.states,
        margins=tuple(classes.margins.tolist()),
        losses=tuple(classes.losses.tolist()),
        relative_gap=solution.certificate.relative_gap,
        thresholds=limits,
    )


def _problem(omegas: Float64[np.ndarray, " k"], *, feature_energy: float, weight_energy: float) -> Problem:
    """Classes of equal ω in one group; those absent from the loss in a group of weight 0."""
    present = omegas > 0
    problem = Problem.of_weights(omegas[present].tolist(), feature_energy=feature_energy, weight_energy=weight_energy)
    if present.all():
        return problem
    membership = np.full(len(omegas), problem.groups)
    membership[present] = problem.class_groups
    return replace(
        problem,
        group_sizes=(*problem.group_sizes, int((~present).sum())),
        weights=(*problem.weights, 0.0),
        membership=tuple(membership.tolist()),
    )


def _predicted_cosines(
    problem: Problem, cosines: Sequence[Sequence[float | None]], small: Bool[np.ndarray, " k"]
) -> Cosines:
    """The same means from cosines by group, over the pairs that have one."""
    table = np.array(cosines, dtype=np.float64)  # None becomes NaN
    groups = problem.class_groups
    minor, major = (np.bincount(groups[chosen], minlength=problem.groups) for chosen in (small, ~small))

    def mean(pairs: Int[np.ndarray, "g g"]) -> float | None:
        known = pairs * np.isfinite(table)
        return float((known * np.nan_to_num(table)).sum() / known.sum()) if known.any() else None

    own = [mean(np.outer(n, n) - np.diag(n)) for n in (minor, major)]
    return Cosines(own[0], own[1], mean(np.outer(minor, major)))
