"""Diagrams of minority collapse: cosines against the imbalance ratio, and phase diagrams.

Every point is solved and certified by the reduced solver, all of them at once; the thresholds R* and R₀ come from their own
equations (`thresholds`), so that each checks the other. A point whose solver stopped early is `not solved`, and never drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equisep.display import brief
from equisep.errors import InputError
from equisep.files import encode
from equisep.peeled.classes import State, state_of
from equisep.peeled.geometry import GroupGeometry
from equisep.peeled.problem import (
    Number,
    Numbers,
    Problem,
    Whole,
    checked_class_count,
    checked_count,
    checked_energy,
    checked_list,
    checked_ratio,
)
from equisep.peeled.solution import Result, Solution, form_of
from equisep.peeled.solvers.batch import Batch, margins
from equisep.peeled.solvers.reduced import solve_reduced, stacked
from equisep.peeled.thresholds import Thresholds, thresholds_of, vanishing_ratio
from equisep.shapes import Float64, Int

STATES = tuple(State)
SLIDES_RATIOS = tuple(float(10 ** (step / 10)) for step in range(41))  # 10⁰ … 10⁴
SLIDES_MAJORITIES = (3, 5, 7)
SLIDES_ENERGIES = ((1.0, 5.0), (1.0, 10.0))  # (E_W, E_H)


@brief
@dataclass(frozen=True, slots=True, eq=False)
class CosineCurve:
    """The cosine between two minority classifiers, and between two minority class means, over the imbalance ratio.

    Cosines are NaN where they do not exist: where the minority has vanished, has one class, or was not solved.
    """

    thresholds: Thresholds
    ratios: Float64[np.ndarray, " n"]
    classifier_cosines: Float64[np.ndarray, " n"]
    feature_cosines: Float64[np.ndarray, " n"]
    states: tuple[State, ...]
    relative_gaps: Float64[np.ndarray, " n"]

    @property
    def unsolved(self) -> int:
        """How many points the solver did not prove."""
        return self.states.count(State.UNSOLVED)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; what does not exist is `None`."""
        rest = encode(self, nonfinite="text")
        return {**rest.pop("thresholds"), "unsolved": self.unsolved, **rest}


@brief
@dataclass(frozen=True, slots=True, eq=False)
class PhaseDiagram:
    """Which state is the optimum, over R (columns) and either E_H or the share k_A/K of majority classes (rows).

    `states[row, column]` is an index in `STATES`. `collapse` and `vanishing` are R* and R₀ of each row by root finding, NaN
    where there is none: a minority of one class does not collapse, and most never vanish.
    """

    kind: Literal["energy", "share"]
    majorities: Int[np.ndarray, " m"]
    minorities: Int[np.ndarray, " m"]
    feature_energies: Float64[np.ndarray, " m"]
    weight_energy: float
    ratios: Float64[np.ndarray, " n"]
    states: Int[np.ndarray, "m n"]
    collapse: Float64[np.ndarray, " m"]
    vanishing: Float64[np.ndarray, " m"]

    @property
    def rows(self) -> Float64[np.ndarray, " m"]:
        """What the rows are over: E_H or k_A/K."""
        if self.kind == "energy":
            return self.feature_energies
        return np.asarray(self.majorities / (self.majorities + self.minorities), dtype=np.float64)

    @property
    def unsolved(self) -> int:
        """How many points the solver did not prove."""
        return int((self.states == STATES.index(State.UNSOLVED)).sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `states` as one list of words a row."""
        words = [[STATES[state] for state in row] for row in self.states.tolist()]
        return {**encode(self, nonfinite="text"), "unsolved": self.unsolved, "states": words}


def cosine_curves(
    classes: Whole = 10,
    *,
    majorities: Numbers = SLIDES_MAJORITIES,
    energies: Sequence[tuple[Number, Number]] = SLIDES_ENERGIES,
    ratios: Numbers = SLIDES_RATIOS,
) -> tuple[CosineCurve, ...]:
    """The minority cosine over R, one curve for each (E_W, E_H) of `energies` and each k_A of `majorities`, in this order.

    By default the two panels of Fang, He, Long & Su 2021: K = 10, k_A = 3, 5, 7, 41 ratios from 1 to 10⁴.

    >>> from equisep import peeled
    >>> (curve,) = peeled.cosine_curves(majorities=(5,), energies=((1, 5),), ratios=[1, 10, 100])
    >>> [round(float(value), 3) for value in curve.classifier_cosines]
    [-0.111, 0.517, 1.0]
    """
    total = checked_count(classes, "The number of classes", "Pass K, 10 say.")
    xs = _finite_ratios(ratios)
    found = [
        thresholds_of(k, total - k, feature_energy, weight_energy)
        for weight_energy, feature_energy in energies
        for k in _majorities(majorities, total)
    ]
    if not found:
        raise InputError("A cosine diagram needs at least one pair of energies; found none. Pass [(E_W, E_H)].")
    solutions = solve_reduced([_two_groups(limits, ratio) for limits in found for ratio in xs], throw=False)
    return tuple(
        _curve(limits, xs, solutions[len(xs) * index : len(xs) * (index + 1)]) for index, limits in enumerate(found)
    )


def phase_by_energy(
    majority: Whole, minority: Whole, *, ratios: Numbers, feature_energies: Numbers, weight_energy: Number
) -> PhaseDiagram:
    """The phase diagram of k_A majority and k_B minority classes over (R, E_H).

    >>> from equisep import peeled
    >>> phases = peeled.phase_by_energy(5, 5, ratios=[1, 100], feature_energies=[1, 5], weight_energy=1)
    >>> phases.unsolved
    0
    """
    advice = "Pass the feature energies E_H of the rows, [1, 5, 10] say."
    entries = checked_list(feature_energies, "Feature energies", advice)
    energies = sorted({checked_energy(entry, "feature_energy") for entry in entries})
    rows = [thresholds_of(majority, minority, energy, weight_energy) for energy in energies]
    return _phases("energy", rows, _finite_ratios(ratios), checked_energy(weight_energy, "weight_energy"))


def phase_by_share(
    classes: Whole,
    *,
    ratios: Numbers,
    feature_energy: Number,
    weight_energy: Number,
    majorities: Numbers | None = None,
) -> PhaseDiagram:
    """The phase diagram over (R, k_A/K), for the k_A of `majorities`, 1 … K − 1 where none are given.

    >>> from equisep import peeled
    >>> phases = peeled.phase_by_share(4, ratios=[1, 100], feature_energy=5, weight_energy=1)
    >>> phases.unsolved
    0
    """
    total = checked_count(classes, "The number of classes", "Pass K, 100 say.")
    checked_class_count(total)
    chosen = range(1, total) if majorities is None else _majorities(majorities, total)
    rows = [thresholds_of(k, total - k, feature_energy, weight_energy) for k in chosen]
    return _phases("share", rows, _finite_ratios(ratios), checked_energy(weight_energy, "weight_energy"))


def vanishing_line(diagram: PhaseDiagram) -> tuple[Float64[np.ndarray, " r"], Float64[np.ndarray, " r"]]:
    """R₀ and the rows it belongs to, for drawing: over E_H it runs off to infinity between two rows, and is followed there.

    It does so where √(E_W E_H) = (k_A(k_A−1)/K) log(1 + √(K/k_B)), above which the minority never vanishes.
    """
    if diagram.kind != "energy":
        return diagram.vanishing, diagram.rows
    k, m = int(diagram.majorities[0]), int(diagram.minorities[0])
    top = (k * (k - 1) / (k + m) * math.log1p(math.sqrt((k + m) / m))) ** 2 / diagram.weight_energy
    finite = diagram.rows[np.isfinite(diagram.vanishing)]
    if not finite.size or not finite[-1] < top < diagram.rows[-1]:
        return diagram.vanishing, diagram.rows
    closer = top - (top - finite[-1]) * np.logspace(0, -14, 200)
    ratios = [vanishing_ratio(k, m, math.sqrt(energy * diagram.weight_energy)) for energy in closer]
    known = [ratio for ratio in ratios if ratio is not None]
    rows = np.concatenate([finite, closer[: len(known)]])
    return np.concatenate([diagram.vanishing[: finite.size], known]), rows


def _two_groups(limits: Thresholds, ratio: float) -> Problem:
    energies = {"feature_energy": limits.feature_energy, "weight_energy": limits.weight_energy}
    return Problem.two_groups(limits.majority, limits.minority, ratio, **energies)


def _curve(limits: Thresholds, ratios: Float64[np.ndarray, " n"], solutions: Sequence[Solution]) -> CosineCurve:
    shown, states = _minority(solutions)
    # None becomes NaN
    classifiers = np.array([None if g is None else g.classifier_cosines[1][1] for g in shown], dtype=np.float64)
    features = np.array([None if g is None else g.feature_cosines[1][1] for g in shown], dtype=np.float64)
    return CosineCurve(
        thresholds=limits,
        ratios=ratios,
        classifier_cosines=classifiers,
        feature_cosines=features,
        states=tuple(states),
        relative_gaps=np.array([solution.certificate.relative_gap for solution in solutions]),
    )


def _phases(
    kind: Literal["energy", "share"],
    rows: Sequence[Thresholds],
    ratios: Float64[np.ndarray, " n"],
    weight_energy: float,
) -> PhaseDiagram:
    solutions = solve_reduced([_two_groups(limits, ratio) for limits in rows for ratio in ratios], throw=False)
    codes = np.array([STATES.index(state) for state in _minority(solutions)[1]], dtype=np.int64)
    return PhaseDiagram(
        kind=kind,
        majorities=np.array([limits.majority for limits in rows]),
        minorities=np.array([limits.minority for limits in rows]),
        feature_energies=np.array([limits.feature_energy for limits in rows]),
        weight_energy=weight_energy,
        ratios=ratios,
        states=codes.reshape(len(rows), len(ratios)),
        collapse=np.array([limits.collapse for limits in rows], dtype=np.float64),
        vanishing=np.array([limits.vanishing for limits in rows], dtype=np.float64),
    )


def _minority(solutions: Sequence[Solution]) -> tuple[list[GroupGeometry | None], list[State]]:
    """The geometry of each point, none where it was not solved, and the state of its minority; all margins at once."""
    s, M = stacked([form_of(solution) for solution in solutions])
    margin = margins(Batch.of([solution.problem for solution in solutions]), s, M)[:, 1].tolist()
    shown = [solution.geometry if solution.result is Result.SOLVED else None for solution in solutions]
    states = [State.UNSOLVED if g is None else state_of(g, 1, own) for g, own in zip(shown, margin, strict=True)]
    return shown, states


def _finite_ratios(ratios: Numbers) -> Float64[np.ndarray, " n"]:
    entries = checked_list(ratios, "Imbalance ratios", "Pass those to solve at, [1, 10, 100] say.")
    values = [checked_ratio(entry) for entry in entries]
    if math.inf in values:
        raise InputError("A diagram needs finite imbalance ratios; found inf. Solve that one problem with `solve`.")
    return np.unique(values)


def _majorities(majorities: Numbers, classes: int) -> list[int]:
    advice = f"Pass numbers of classes from 1 to {classes - 1}."
    entries = checked_list(majorities, "Numbers of majority classes", advice)
    counts = [checked_count(entry, "The number of majority classes", advice) for entry in entries]
    if max(counts) >= classes:
        raise InputError(
            f"{max(counts)} majority classes of {classes} leave no minority; found that in {counts}. {advice}"
        )
    return sorted(set(counts))
