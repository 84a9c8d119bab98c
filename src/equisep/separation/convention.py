"""The named conventions under which published values of D differ; each is a field saved with the number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from equisep.errors import InputError, did_you_mean

Weighting = Literal["sample", "class", "mixed"]
Center = Literal["samples", "classes"]
Normalization = Literal["none", "classes"]


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
        _check("weighting", self.weighting, get_args(Weighting))
        _check("normalization", self.normalization, get_args(Normalization))
        if self.center is not None:
            _check("center", self.center, get_args(Center))
        if self.tol is not None and not 0 <= self.tol < 1:
            raise InputError(f"`tol` is relative to the largest singular value: 0 ≤ tol < 1; found {self.tol}.")

    @property
    def centered_on(self) -> Center:
        """The center in force."""
        return self.center or ("samples" if self.weighting == "sample" else "classes")


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        hint = did_you_mean(str(value), known)
        raise InputError(f"No {name} `{value}`.{hint} Known: {', '.join(known)}.")


PAPER = Convention()
PHD20 = Convention(weighting="mixed")
