"""Simplex ETFs where features are bounded in the q-norm: how good one can be, and where the proposition on them fails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from equisep.display import brief
from equisep.errors import InputError
from equisep.peeled.geometry import NOTHING
from equisep.peeled.problem import FEATURE_ENERGY, WEIGHT_ENERGY, Number, Problem, Whole, checked_count
from equisep.peeled.sign_simplex import sign_simplex, sign_simplex_exists
from equisep.peeled.solution import Certificate, Factors, Solution, dense_gap
from equisep.peeled.solvers.descent import checked_power, descend
from equisep.peeled.solvers.nonconvex import enclosing_energy
from equisep.shapes import Float64

STARTS = 128  # rotations to search from: for q ≠ 2 there are many local optima
TOLERANCE = 1e-7
ITERATIONS = 2000
# |x|^q has no second derivative at 0 for q < 2: √(x² + ε²)^q in its place, of which only the rotation is kept
SMOOTHING = 1e-4
LEAST_CLASSES = 3  # of the proposition; two vectors are a simplex whatever bounds them


@brief
@dataclass(frozen=True, slots=True)
class EtfComparison:
    """A solution beside the best simplex ETF that is feasible, and how far from collapsed it is.

    etf_value       the least value found of h_k = C w_k, a simplex ETF in some rotation, as long as the constraints allow
    advantage       etf_value − value: above 0, the solution is better than any ETF that was found
    least_cosine    between the features h_k of two classes, *uncentered*, since centering would hide the effect; `None`
    largest_cosine  where a feature is zero and has no angle
    duality         ‖W/‖W‖_F − H/‖H‖_F‖_F, which is NC3, uncentered too
    """

    value: float
    etf_value: float
    advantage: float
    least_cosine: float | None
    largest_cosine: float | None
    duality: float


def compare_with_etf(solution: Solution, *, q: Number = 2.0, starts: int = STARTS, seed: int = 0) -> EtfComparison:
    """Put a solution of the nonconvex solver beside the best feasible simplex ETF of its dimension, for the same q.

    >>> from equisep import peeled
    >>> four = peeled.Problem.of_sizes([1] * 4, feature_energy=5, weight_energy=1)
    >>> beside = peeled.compare_with_etf(peeled.solve_nonconvex(four, q=3, dimension=8), q=3)
    >>> beside.advantage > 1e-4  # better than any simplex ETF
    True
    """
    if not isinstance(solution.form, Factors):
        raise InputError(
            f"`compare_with_etf` needs a solution in W and H; found one of the {solution.solver} solver. "
            "Solve with `solve_nonconvex`."
        )
    H = solution.form.H
    norms = np.linalg.norm(H, axis=1, keepdims=True)
    directed = bool((norms > NOTHING * norms.max()).all())
    unit = H / np.where(norms > 0, norms, 1.0)
    cosines = (unit @ unit.T)[~np.eye(len(H), dtype=bool)]
    best = etf_value(solution.problem, dimension=H.shape[1], q=q, starts=starts, seed=seed)
    return EtfComparison(
        value=solution.value,
        etf_value=best,
        advantage=best - solution.value,
        least_cosine=float(cosines.min()) if directed else None,
        largest_cosine=float(cosines.max()) if directed else None,
        duality=solution.geometry.duality,
    )


def etf_value(problem: Problem, *, dimension: int, q: Number = 2.0, starts: int = STARTS, seed: int = 0) -> float:
    """The least loss found of a simplex ETF with (1/K) Σ ‖h_k‖_q^q = E_H and w_k = h_k/C, over all its rotations.

    With unit vectors m_k of the ETF, h_k = r m_k R has r^q = E_H / ((1/K) Σ ‖m_k R‖_q^q), and the loss,
    Σ ω_k · log(1 + (K−1) exp(−√E_W r K/(K−1))), falls with r: the search is for the rotation R of least Σ ‖m_k R‖_q^q.
    """
    if dimension < problem.classes - 1:
        raise InputError(
            f"A simplex ETF of {problem.classes} classes needs at least {problem.classes - 1} dimensions; found "
            f"{dimension}. Solve with a larger `dimension`."
        )
    classes, power = problem.classes, checked_power(q)
    least = 1.0 if power == 2 else _least_power(classes, dimension, q=power, starts=starts, seed=seed)
    radius = (problem.feature_energy / least) ** (1 / power)
    margin = math.sqrt(problem.weight_energy) * radius * classes / (classes - 1)
    return float(problem.class_weights.sum()) * math.log1p((classes - 1) * math.exp(-margin))


def _least_power(classes: int, dimension: int, *, q: float, starts: int, seed: int) -> float:
    """The least (1/K) Σ_k ‖m_k R‖_q^q found over rotations R of the unit vectors m_k of a simplex ETF."""

    def smoothed(a: Float64[Tensor, "b k p"]) -> tuple[Float64[Tensor, " b"], Float64[Tensor, "b k p"]]:
        squares = a.square() + SMOOTHING**2
        return squares.pow(q / 2).sum(dim=(-2, -1)) / classes, q / classes * a * squares.pow(q / 2 - 1)

    generator = torch.Generator("cpu").manual_seed(seed)
    noise = torch.randn(starts, classes, dimension, generator=generator, dtype=torch.float64, device="cpu")
    found = descend(
        _nearest_etf(noise),
        objective=smoothed,
        project=_nearest_etf,
        tolerance=TOLERANCE,
        max_iterations=ITERATIONS,
        reach=classes**-0.5,  # a longer step could leave the part of the manifold that a stationary ETF is nearest to
    )
    return float(found.x.abs().pow(q).sum(dim=(-2, -1)).min()) / classes


def _nearest_etf(vectors: Float64[Tensor, "b k p"]) -> Float64[Tensor, "b k p"]:
    """The simplex ETF of unit vectors nearest to K vectors: singular values of the centered vectors all set to one value."""
    classes = vectors.shape[1]
    centered = vectors - vectors.mean(dim=1, keepdim=True)
    U, _, Vt = torch.linalg.svd(centered, full_matrices=False)
    rank = classes - 1
    etf: Float64[Tensor, "b k p"] = math.sqrt(classes / rank) * U[..., :rank] @ Vt[..., :rank, :]
    return etf


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

    The proposition says that with features bounded in the q-norm, q ≠ 2, neural collapse does not emerge for K ≥ 3 classes in
    p ≥ K dimensions (Fang, He, Long & Su 2021, slides). Where K vectors of ±1 in p dimensions form a simplex ETF, it fails for
    every q > 2.

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
