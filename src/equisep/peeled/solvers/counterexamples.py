"""Where the proposition on q-norms fails: all (K, p) within given limits, each with a certificate.

The proposition says that with features bounded in the q-norm, q ≠ 2, neural collapse does not emerge for K ≥ 3 classes in p ≥ K
dimensions (Fang, He, Long & Su 2021, slides). Where K vectors of ±1 in p dimensions form a simplex ETF, it fails for every q > 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from equisep.display import brief
from equisep.errors import InputError
from equisep.peeled.problem import FEATURE_ENERGY, WEIGHT_ENERGY, Number, Problem, Whole, checked_count
from equisep.peeled.sign_simplex import sign_simplex, sign_simplex_exists
from equisep.peeled.solution import Certificate, Factors, dense_gap
from equisep.peeled.solvers.descent import checked_power
from equisep.peeled.solvers.nonconvex import enclosing_energy

LEAST_CLASSES = 3  # of the proposition; two vectors are a simplex whatever bounds them


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """K classes in p dimensions whose q-norm problem has a simplex ETF for its optimum.

    value           of that ETF, with ω = 1/K
    certificate     its gap in the 2-norm problem that encloses this one: as that is 0, the value is the least, and every
                    minimizer is such an ETF (docs/peeled.md has the proof)
    factors         W and H
    """

    classes: int
    dimension: int
    q: float
    value: float
    certificate: Certificate
    factors: Factors


def qnorm_counterexamples(
    *,
    most_classes: Whole = 40,
    most_dimension: Whole = 120,
    q: Number = 3.0,
    feature_energy: Number = FEATURE_ENERGY,
    weight_energy: Number = WEIGHT_ENERGY,
) -> tuple[Counterexample, ...]:
    """Every K ≥ 3 and p ≥ K within the limits for which ±1 vectors that form a simplex ETF are constructed, each certified.

    h_k = (E_H/p)^{1/q} v_k and w_k = √(E_W/p) v_k meet both constraints; the gap of Z = H Wᵀ is that of the 2-norm problem with
    energy `enclosing_energy`, which contains the q-norm problem.

    >>> from equisep import peeled
    >>> found = peeled.qnorm_counterexamples(most_classes=6, most_dimension=12)
    >>> [(each.classes, each.dimension) for each in found]
    [(4, 6), (4, 9), (4, 12), (6, 10)]
    >>> max(each.certificate.relative_gap for each in found) < 1e-9
    True
    """
    power = checked_power(q)
    if power <= 2:
        raise InputError(f"Vectors of ±1 are optimal for q above 2; found q = {power:g}. Pass a larger q.")
    most = checked_count(most_classes, "`most_classes`", "Pass the greatest number of classes, 40 say.")
    widest = checked_count(most_dimension, "`most_dimension`", "Pass the greatest dimension p, 120 say.")
    return tuple(
        _certified(classes, dimension, power, float(feature_energy), float(weight_energy))
        for classes in range(LEAST_CLASSES, most + 1)
        for dimension in range(classes, widest + 1)
        if sign_simplex_exists(classes, dimension) == "exists"
    )


def _certified(classes: int, dimension: int, q: float, feature_energy: float, weight_energy: float) -> Counterexample:
    vectors = sign_simplex(classes, dimension)
    assert vectors is not None
    problem = Problem.of_sizes([1] * classes, feature_energy=feature_energy, weight_energy=weight_energy)
    around = Problem.of_sizes(
        [1] * classes, feature_energy=enclosing_energy(problem, dimension=dimension, q=q), weight_energy=weight_energy
    )
    factors = Factors(
        W=math.sqrt(weight_energy / dimension) * vectors, H=(feature_energy / dimension) ** (1 / q) * vectors
    )
    value, certificate = dense_gap(problem.class_weights, factors.H @ factors.W.T, around.budget)
    return Counterexample(classes, dimension, q, value, certificate, factors)
