"""Separation fuzziness D = Tr(SSw SSb⁺), of all classes together and of each (He & Su 2023, Eq. 1 and SI)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from equisep.errors import InputError, NumericalError
from equisep.separation.arrays import labeled_rows
from equisep.separation.convention import Center, Convention, Normalization, Weighting
from equisep.separation.site import PRECISIONS, Spread
from equisep.separation.subspace import ClassSubspace
from equisep.shapes import Float64


def class_fuzziness_of(spread: Spread) -> Float64[Tensor, " k"]:
    """D_k = Tr(SSw^k SSb⁺) = Σ_j (1/s_j²) (1/n_k) Σ_i (v_jᵀ(x_ki − m_k))²; 0 for a class without samples."""
    kept, projections = slice(0, spread.subspace.rank), spread.projections
    weights = spread.subspace.singular_values[kept].square().reciprocal()  # r
    return projections.squares[:, kept] @ weights / projections.counts.clamp(min=1)


def fuzziness_of(spread: Spread, convention: Convention) -> float | None:
    """D = Σ_k w_k D_k with the within-class weights of the convention; None where all class means coincide."""
    if spread.subspace.rank == 0:
        return None
    value = float(spread.subspace.within_weights @ class_fuzziness_of(spread))
    if convention.normalization == "none":
        return value
    return convention.normalized(value, classes=int((spread.subspace.counts > 0).sum()))


def fuzziness(
    x: Any,
    y: Any,
    *,
    weighting: Weighting = "sample",
    center: Center | None = None,
    normalization: Normalization = "none",
    tol: float | None = None,
    precision: str = "float64",
) -> float:
    """D = Tr(SSw SSb⁺) of features x (n × …, flattened) with integer labels y; tensors or arrays.

    Invariant to translation, rotation, a common scale, the order of samples and the names of classes. D is that of the
    numbers as given, except that directions in which class means differ by no more than the rounding of these numbers leaves
    of a mean are cut (`rounding_cut`): they would be noise over noise. Numbers far from zero in float32 have such directions
    sooner; `tol=0` cuts none. The options are those of `equisep.separation.Convention`. `precision="float32"` computes products
    of many classes in float32, which is quicker, where they are proven to keep six digits of D, in float64 where they are not.

    >>> import equisep
    >>> round(equisep.fuzziness([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]), 9)
    0.04
    """
    convention = Convention(weighting=weighting, center=center, normalization=normalization, tol=tol)
    if precision not in PRECISIONS:
        raise InputError(f"`precision` is float64 or float32; found `{precision}`.")
    spread = labeled_rows(x, y, asked="`fuzziness`").spread(convention, precision=precision)
    value = fuzziness_of(spread, convention)
    if value is None:
        raise _coincide("fuzziness", spread.subspace)
    return value


def class_fuzziness(
    x: Any,
    y: Any,
    *,
    weighting: Weighting = "sample",
    center: Center | None = None,
    tol: float | None = None,
) -> list[float]:
    """D_k = Tr(SSw^k SSb⁺) of every class, in the order of the sorted labels; D is their weighted mean.

    >>> import equisep
    >>> [round(value, 6) for value in equisep.class_fuzziness([[0.0], [2.0], [10.0], [10.0]], [0, 0, 1, 1])]
    [0.049383, 0.0]
    """
    convention = Convention(weighting=weighting, center=center, tol=tol)
    spread = labeled_rows(x, y, asked="`class_fuzziness`").spread(convention)
    if spread.subspace.rank == 0:
        raise _coincide("class_fuzziness", spread.subspace)
    return [float(value) for value in class_fuzziness_of(spread)]


def _coincide(asked: str, subspace: ClassSubspace) -> NumericalError:
    return NumericalError(
        f"`{asked}` needs class means that differ; all {int((subspace.counts > 0).sum())} coincide to rounding "
        f"(below {subspace.cut:.2g}). Check that the features are not constant."
    )
