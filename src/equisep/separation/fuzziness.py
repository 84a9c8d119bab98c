"""Separation fuzziness D = Tr(SSw SSb⁺), of all classes together and of each (He & Su 2023, Eq. 1 and SI)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from equisep.errors import NumericalError
from equisep.separation.arrays import read_arrays
from equisep.separation.convention import Center, Convention, Normalization, Weighting
from equisep.separation.projections import Projections
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64


def class_fuzziness_of(subspace: ClassSubspace, projections: Projections) -> Float64[Tensor, " k"]:
    """D_k = Tr(SSw^k SSb⁺) = Σ_j (1/s_j²) (1/n_k) Σ_i (v_jᵀ(x_ki − m_k))²; 0 for a class without samples."""
    kept = slice(0, subspace.rank)
    spread = projections.squares[:, kept] / projections.counts.clamp(min=1).unsqueeze(1)  # k r
    return (spread / subspace.singular_values[kept].square()).sum(dim=1)


def fuzziness_of(subspace: ClassSubspace, projections: Projections, convention: Convention) -> float | None:
    """D = Σ_k w_k D_k with the within-class weights of the convention; None where all class means coincide."""
    if subspace.rank == 0:
        return None
    value = float(subspace.within_weights @ class_fuzziness_of(subspace, projections))
    return value / int((subspace.counts > 0).sum()) if convention.normalization == "classes" else value


def fuzziness(
    x: Any,
    y: Any,
    *,
    weighting: Weighting = "sample",
    center: Center | None = None,
    normalization: Normalization = "none",
    tol: float | None = None,
) -> float:
    """D = Tr(SSw SSb⁺) of features x (n × …, flattened) with integer labels y; tensors or arrays.

    Exactly invariant to translation, rotation, a common scale, the order of samples and the names of classes.
    The options are those of `equisep.separation.Convention`.
    """
    convention = Convention(weighting=weighting, center=center, normalization=normalization, tol=tol)
    read = read_arrays(x, y, asked="`fuzziness`", convention=convention)
    value = fuzziness_of(read.subspace, read.projections, convention)
    if value is None:
        raise _coincide("fuzziness", read.subspace)
    return value


def class_fuzziness(
    x: Any,
    y: Any,
    *,
    weighting: Weighting = "sample",
    center: Center | None = None,
    tol: float | None = None,
) -> list[float]:
    """D_k = Tr(SSw^k SSb⁺) of every class, in the order of the sorted labels; D is their weighted mean."""
    convention = Convention(weighting=weighting, center=center, tol=tol)
    read = read_arrays(x, y, asked="`class_fuzziness`", convention=convention)
    if read.subspace.rank == 0:
        raise _coincide("class_fuzziness", read.subspace)
    return [float(value) for value in class_fuzziness_of(read.subspace, read.projections)]


def _coincide(asked: str, subspace: ClassSubspace) -> NumericalError:
    return NumericalError(
        f"`{asked}` needs class means that differ; all {int((subspace.counts > 0).sum())} coincide to rounding "
        f"(below {subspace.cut:.2g}). Check that the features are not constant."
    )
