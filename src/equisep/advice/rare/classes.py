"""Rare classes: which the Layer-Peeled Model tells apart, which it loses, and the least loss weights that bring those back.

From class sizes alone the energies are unknown, and the answer is given over E_W·E_H = 1 … 20; with a model they are its own,
and beside what is predicted stands what it does: margins on its training data, accuracy per class. Least weights hold
together: every class below a floor is lifted to it (`equisep.peeled.floor`), and every solution carries its certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from equisep.advice.rare.records import Alternatives, RareAtEnergy, RareClasses
from equisep.compare import compare_network
from equisep.errors import InputError
from equisep.peeled.floor import floor_of
from equisep.peeled.problem import Numbers, Problem, checked_list, checked_positive, checked_sizes, checked_weights
from equisep.progress import Progress, Watched, callback, watched
from equisep.results import Reading
from equisep.training.class_weights import effective_number, inverse_frequency, logit_adjustment

ENERGIES = (1.0, 2.0, 5.0, 10.0, 20.0)  # E_W·E_H where no model says which
MOST_GROUPS = 100  # distinct weights; beyond them a solution takes many seconds, and one energy alone is gone through


@watched
def rare_classes(
    counts: Numbers | None = None,
    *,
    model: Any = None,
    data: Any = None,
    test: Any = None,
    loss_weights: Numbers | None = None,
    energies: Numbers | None = None,
    classifier: str | None = None,
    reading: Reading = "eval",
    progress: Watched = None,
) -> RareClasses:
    """Which classes are told apart and which are lost, and the least loss weights at which every class has a margin.

    counts         samples of each class; with a model those it was trained on, by default those of `data`
    model, data    a network and its training data, as `measure` takes them: the energies are then its own
    test           test data, for accuracy per class
    loss_weights   the factor on the loss of each class that is used now; the weights told replace it
    energies       E_W·E_H to go through, without a model; by default 1, 2, 5, 10, 20

    >>> from equisep.advice.rare import rare_classes
    >>> found = rare_classes([500, 500, 5, 5], energies=(1, 10))
    >>> [str(fate) for fate in found.fates]
    ['told apart throughout', 'told apart throughout', 'lost in part', 'lost in part']
    >>> [round(weight, 2) for weight in found.margin_weights]
    [1.0, 1.0, 29.59, 29.59]
    """
    progress = callback(progress)
    if model is None:
        if counts is None or data is not None:
            raise InputError(
                "`rare_classes` takes class sizes, or a model and its training data; found "
                f"{'neither' if data is None else 'data without a model'}. Pass `counts=[500, 500, 50]`, or `model=` and `data=`."
            )
        sizes = checked_sizes(counts)
        factors = _factors(loss_weights, len(sizes))
        asked = _energies(energies, sizes, factors)
        at = tuple(_at(sizes, factors, energy, progress) for energy in asked)
        return RareClasses(sizes, factors, at, _alternatives(sizes))
    if data is None or energies is not None:
        missing = "a model without data" if data is None else "`energies` beside a model, which has its own"
        raise InputError(
            f"`rare_classes` of a model takes the data it was trained on; found {missing}. Pass `data=` alone."
        )
    found = compare_network(
        model,
        data,
        test,
        classifier=classifier,
        reading=reading,
        sizes=counts,
        loss_weights=loss_weights,
        progress=progress,
    )
    if min(found.sizes) < 1:
        raise InputError(
            f"Class {found.sizes.index(0)} has no sample, so that no weight can bring it back. Leave out classes without samples."
        )
    energy = found.weight_energy * found.feature_energy
    at = (_at(found.sizes, found.loss_weights, energy, progress),)
    return RareClasses(found.sizes, found.loss_weights, at, _alternatives(found.sizes), found)


def _factors(loss_weights: Numbers | None, classes: int) -> tuple[float, ...]:
    if loss_weights is None:
        return (1.0,) * classes
    return checked_weights(loss_weights, "Loss weights", "The loss weight of class", count=classes)


def _energies(energies: Numbers | None, sizes: Sequence[int], factors: Sequence[float]) -> tuple[float, ...]:
    """The energies to go through, the least first; of very many distinct weights the middle one alone."""
    if energies is not None:
        advice = "Pass the products E_W·E_H to go through, [1, 5, 20] say."
        given = checked_list(energies, "Energies", advice)
        return tuple(sorted({checked_positive(each, "An energy E_W·E_H", advice) for each in given}))
    distinct = len({size * factor for size, factor in zip(sizes, factors, strict=True)})
    return ENERGIES if distinct <= MOST_GROUPS else ENERGIES[2:3]


def _at(sizes: Sequence[int], factors: Sequence[float], energy: float, progress: Progress) -> RareAtEnergy:
    problem = Problem.of_sizes(sizes, feature_energy=energy, weight_energy=1.0, loss_weights=factors)
    floor = floor_of(problem, half=True, progress=progress)
    lifts = (floor.collapse, floor.margin, floor.half)
    solutions = (floor.solution, *(lift.solution for lift in lifts if lift is not None))
    weights = [_product(factors, floor.factors(lift)) for lift in lifts]
    return RareAtEnergy(
        energy=energy,
        states=floor.states,
        margins=floor.margins,
        collapse_weights=weights[0],
        margin_weights=weights[1],
        half_weights=_largest(weights[1], weights[2]),
        relative_gap=max(solution.certificate.relative_gap for solution in solutions),
    )


def _product(one: Iterable[float], other: Iterable[float]) -> tuple[float, ...]:
    return tuple(a * b for a, b in zip(one, other, strict=True))


def _largest(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    return tuple(np.maximum(one, other).tolist())


def _alternatives(sizes: Sequence[int]) -> Alternatives:
    return Alternatives(inverse_frequency(sizes), effective_number(sizes), logit_adjustment(sizes))
