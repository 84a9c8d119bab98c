"""What a solver returns: logits, the value, a verdict, and the certificate that proves it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from equisep.display import brief
from equisep.errors import InputError, NumericalError
from equisep.peeled.geometry import (
    GroupGeometry,
    expand,
    factors_of_dense,
    factors_of_reduced,
    geometry_of_factors,
    geometry_of_reduced,
)
from equisep.peeled.problem import Problem
from equisep.shapes import Float64

SolverName = Literal["reduced", "general", "cvxpy", "nonconvex"]

TINY = float(np.finfo(np.float64).tiny)
FEASIBLE = 1e-12  # relative excess over the budget that rounding explains
DENSE_LIMIT = 4096  # classes: one K×K matrix of float64 is then 128 MiB
COLLAPSED = 1e-3  # a solver without groups is right to about the root of its gap, so classifiers this near coincide


class Result(StrEnum):
    """How a solver ended; the value is the sentence shown."""

    SOLVED = "solved"
    STATIONARY = "stationary, not proven to be the optimum"
    STOPPED = "stopped early, not solved"

    @property
    def word(self) -> str:
        """One word for a file: solved, stationary or stopped."""
        return self.name.lower()


@brief
@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof that a value is near the least one: f − f* ≤ ⟨∇f, Z⟩ + τ‖∇f‖_op for any Z with ‖Z‖_* ≤ τ.

    f is convex, so f − f* ≤ ⟨∇f, Z − Z*⟩, and the bound is 0 at the optimum; it holds however Z was found.


    feasibility         (‖Z‖_* − τ)/τ where that is positive, otherwise 0
    gap                 the bound on f − f*
    relative_gap        gap/f
    multiplier          μ = ‖∇f‖_op, at the optimum the multiplier of the constraint
    distance_to_convex  f minus the least value of the convex form, for the nonconvex solver
    stationarity        how far a projected gradient step still moves W and H, for the nonconvex solver; 0 where stationary
    """

    feasibility: float
    gap: float
    relative_gap: float
    multiplier: float
    distance_to_convex: float | None = None
    stationarity: float | None = None


@brief
@dataclass(frozen=True, slots=True, eq=False)
class ReducedForm:
    """Z by groups: s_g on the sum-zero vectors of group g, M on the vectors 1_g/√k_g."""

    s: Float64[np.ndarray, " g"]
    M: Float64[np.ndarray, "g g"]


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """Classifiers W and class-mean features H, classes in rows, so that Z = H Wᵀ."""

    W: Float64[np.ndarray, "k p"]
    H: Float64[np.ndarray, "k p"]


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A solved (or not quite solved) Layer-Peeled problem; `form` is what the solver found, the rest follows on demand.

    `value` is Σ_k ω_k CE with the ω of the problem. Row k of `Z` holds the logits of class k; the rows of `W` are the
    classifiers and the rows of `H` the class-mean features, Z = H Wᵀ. `result` is `SOLVED` only where the certificate
    proves it, otherwise `STOPPED`, or `STATIONARY` where the nonconvex solver came to a point without descent that no
    bound proves to be the least. `form` is a `ReducedForm`, `Factors`, or Z itself.

    >>> from equisep import peeled
    >>> solution = peeled.solve(sizes=[100] * 4)
    >>> solution.Z.shape, f"{solution.geometry.within(0):.4f}"  # −1/(K − 1): a simplex
    ((4, 4), '-0.3333')
    """

    problem: Problem
    value: float
    result: Result
    certificate: Certificate
    solver: SolverName
    iterations: int
    form: ReducedForm | Factors | Float64[np.ndarray, "k k"]

    @property
    def Z(self) -> Float64[np.ndarray, "k k"]:  # noqa: N802
        """The logits, one class a row."""
        if isinstance(self.form, ReducedForm):
            self._dense_or_refuse("Z")
            return expand(self.problem, self.form.s, self.form.M)
        if isinstance(self.form, Factors):
            product: Float64[np.ndarray, "k k"] = self.form.H @ self.form.W.T
            return product
        return self.form

    @property
    def W(self) -> Float64[np.ndarray, "k p"]:  # noqa: N802
        """The classifiers, one class a row."""
        return self._factors("W").W

    @property
    def H(self) -> Float64[np.ndarray, "k p"]:  # noqa: N802
        """The class-mean features, one class a row."""
        return self._factors("H").H

    @property
    def geometry(self) -> GroupGeometry:
        """Norms, cosines, duality and distance to the simplex ETF, by group; exists for any number of classes."""
        if isinstance(self.form, ReducedForm):
            return geometry_of_reduced(self.problem, self.form.s, self.form.M)
        factors = self._factors("geometry")
        return geometry_of_factors(self.problem, factors.W, factors.H, tolerance=COLLAPSED)

    def or_raise(self, *, throw: bool = True) -> Solution:
        """The solution itself; where it stopped early, and unless `throw` is false, a `NumericalError` that names the gap."""
        if self.result is not Result.STOPPED or not throw:
            return self
        asked = (
            f"The {self.solver} solver was asked for a proven optimum; it stopped after {self.iterations} iterations "
        )
        if self.value == 0:
            raise NumericalError(
                f"{asked}with losses below the smallest float, a value of 0: a duality gap proves nothing there. The "
                f"energies allow logits of about {self.problem.budget / self.problem.classes:.3g}. Use smaller energies."
            )
        raise NumericalError(
            f"{asked}with a duality gap of {self.certificate.gap:.3g} ({self.certificate.relative_gap:.3g} of the value "
            f"{self.value:.6g}) and the constraint exceeded by {self.certificate.feasibility:.3g} of the budget. "
            "Use another solver or less extreme energies and weights."
        )

    def _factors(self, asked: str) -> Factors:
        if isinstance(self.form, Factors):
            return self.form
        if isinstance(self.form, ReducedForm):
            self._dense_or_refuse(asked)
            return Factors(*factors_of_reduced(self.problem, self.form.s, self.form.M))
        return Factors(*factors_of_dense(self.problem, self.form))

    def _dense_or_refuse(self, asked: str) -> None:
        classes = self.problem.classes
        if classes > DENSE_LIMIT:
            raise InputError(
                f"`{asked}` was asked for {classes} classes, a matrix of {classes} × {classes}; at most {DENSE_LIMIT} "
                "classes are written out. Read `geometry`, which is by group, or `form.s` and `form.M`."
            )


def form_of(solution: Solution) -> ReducedForm:
    """What the reduced solver found."""
    assert isinstance(solution.form, ReducedForm)  # no other solver was asked
    return solution.form


def dense_gap(
    weights: Float64[np.ndarray, " k"], Z: Float64[np.ndarray, "k k"], tau: float
) -> tuple[float, Certificate]:
    """Value and certificate of any K×K logits, row k those of class k: ∇f = diag(ω)(P − I)."""
    own = np.diag(Z)
    margins = Z - own[:, None]
    top = np.maximum(margins.max(axis=1), 0.0)
    shares = np.exp(margins - top[:, None])
    np.fill_diagonal(shares, 0.0)
    others = shares.sum(axis=1)
    loss = top + np.where(top > 0, np.log(np.exp(-top) + others), np.log1p(others))
    pull = weights[:, None] * np.exp(margins - loss[:, None])
    np.fill_diagonal(pull, 0.0)
    np.fill_diagonal(pull, -pull.sum(axis=1))
    value = float(weights @ loss)
    multiplier = float(np.linalg.norm(pull, 2))
    gap = max(float((pull * Z).sum()) + tau * multiplier, 0.0)
    excess = float(np.linalg.svd(Z, compute_uv=False).sum()) / tau - 1
    return value, Certificate(
        feasibility=max(excess, 0.0), gap=gap, relative_gap=gap / max(value, TINY), multiplier=multiplier
    )


def verdict(value: float, certificate: Certificate, tolerance: float) -> Result:
    """Solved where the certificate proves it, otherwise stopped; a loss of 0 has underflowed, and says nothing of Z."""
    return Result.SOLVED if value > 0 and proves(certificate, tolerance) else Result.STOPPED


def proves(certificate: Certificate, tolerance: float) -> bool:
    """Whether a certificate allows the word `solved`: feasible, and the gap at most `tolerance` of the value."""
    return certificate.feasibility <= FEASIBLE and certificate.relative_gap <= tolerance
