"""The named conventions under which published values of D differ; each is a field saved with the number."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Literal, get_args

from equisep.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor

    from equisep.shapes import Float64, Int

Weighting = Literal["sample", "class", "mixed"]
Center = Literal["samples", "classes"]
Normalization = Literal["none", "classes"]
WEIGHTINGS, CENTERS, NORMALIZATIONS = get_args(Weighting), get_args(Center), get_args(Normalization)


@dataclass(frozen=True, slots=True)
class Weights:
    """What every class weighs: in SSb, in SSw, and in the global mean that the class means are taken from."""

    between: Float64[Tensor, "*m k"]
    within: Float64[Tensor, "*m k"]
    center: Float64[Tensor, "*m k"]


@dataclass(frozen=True, slots=True)
class Convention:
    """How classes are weighed, what the means are centered on, and whether D is divided by K.

    weighting      `sample`: n_k/n in SSw and SSb (He & Su 2023, Eq. 1).  `class`: 1/K in both (their main script).
                   `mixed`: SSw by sample, SSb by class (Papyan, Han & Donoho 2020, code).
    center         the global mean m: `samples` or `classes` (the mean of class means); by default the one that goes
                   with the weighting of SSb, so that its rows sum to zero.
    normalization  `none`, or `classes`: D/K.
    tol            singular values of the class means below `tol · s_max` count as null; by default rounding decides.
    """

    weighting: Weighting = "sample"
    center: Center | None = None
    normalization: Normalization = "none"
    tol: float | None = None

    def __post_init__(self) -> None:
        _check("weighting", self.weighting, WEIGHTINGS)
        _check("normalization", self.normalization, NORMALIZATIONS)
        if self.center is not None:
            _check("center", self.center, CENTERS)
        if self.tol is not None:
            object.__setattr__(self, "tol", _share(self.tol))

    @property
    def centered_on(self) -> Center:
        """The center in force."""
        return self.center or ("samples" if self.weighting == "sample" else "classes")

    def weights(self, counts: Int[Tensor, "*m k"]) -> Weights:
        """The weights of classes with these numbers of samples; a class without samples weighs nothing."""
        sizes = counts.double()
        total = sizes.sum(dim=-1, keepdim=True)
        by_sample = sizes / total.masked_fill(total == 0, 1)  # sizes are also weights, whose sum may be below 1
        by_class = by_sample
        if self.weighting != "sample" or self.centered_on == "classes":
            present = (counts > 0).double()
            by_class = present / present.sum(dim=-1, keepdim=True).clamp(min=1)
        return Weights(
            between=by_sample if self.weighting == "sample" else by_class,
            within=by_class if self.weighting == "class" else by_sample,
            center=by_sample if self.centered_on == "samples" else by_class,
        )

    def normalized(self, value: float, *, classes: int) -> float:
        """D, divided by the number of classes where the convention asks for it."""
        return value / classes if self.normalization == "classes" else value


def _share(tol: object) -> float:
    """A number of Python's own: one of numpy's could not be saved."""
    if not isinstance(tol, Real) or not 0 <= float(tol) < 1:
        raise InputError(f"`tol` is relative to the largest singular value: 0 ≤ tol < 1; found {tol!r}.")
    return float(tol)


def _check(name: str, value: object, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise InputError(f"No {name} `{value}`.{did_you_mean(str(value), known)} Known: {', '.join(known)}.")


PAPER = Convention()
PHD20 = Convention(weighting="mixed")
