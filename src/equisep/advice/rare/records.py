"""What is known of rare classes: states, margins and least weights at each energy; read and shown without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from equisep.compare.geometry import NetworkComparison
from equisep.display import brief
from equisep.files import encode
from equisep.peeled.classes import State

# the verdict of the experiment equisep2026/rare: a rule that was not supported recommends nothing
CAUTION = (
    "These weights are what the model asks for on training samples, no recommendation for test data: that they suffice there did "
    "not hold in every setting that was tried (`equisep figures show equisep2026/rare`)."
)


class Fate(StrEnum):
    """What becomes of a class over all energies that were asked for; the value is the word shown."""

    TOLD_APART = "told apart throughout"
    IN_PART = "lost in part"
    LOST = "lost throughout"


@brief
@dataclass(frozen=True, slots=True)
class RareAtEnergy:
    """The answer at one energy E_W·E_H; lists have one entry per class, in the order given.

    states, margins    what the optimum makes of each class at the weights it has, and its own logit less the largest other
    collapse_weights   the least loss weights from which on no two classifiers coincide (w*, which ends collapse and no more)
    margin_weights     the least loss weights at which every margin is above 0
    half_weights       … at which every margin is half that of classes of equal size
    relative_gap       the largest duality gap, over the value, of the solutions behind these numbers
    """

    energy: float
    states: tuple[State, ...]
    margins: tuple[float, ...]
    collapse_weights: tuple[float, ...]
    margin_weights: tuple[float, ...]
    half_weights: tuple[float, ...]
    relative_gap: float

    @property
    def lost(self) -> tuple[int, ...]:
        """The classes, by number, that are not told apart."""
        return tuple(k for k, state in enumerate(self.states) if state.lost)


@brief
@dataclass(frozen=True, slots=True)
class Alternatives:
    """What practice uses against imbalance, one number per class: two kinds of loss weights, and a term added to scores.

    inverse_frequency   w_k ∝ 1/n_k
    effective_number    w_k ∝ (1 − β)/(1 − β^{n_k}), β = 0.999 (Cui et al. 2019)
    logit_adjustment    log π_k, added to the scores in the loss alone (Menon et al. 2021)
    """

    inverse_frequency: tuple[float, ...]
    effective_number: tuple[float, ...]
    logit_adjustment: tuple[float, ...]


@brief
@dataclass(frozen=True, slots=True)
class RareClasses:
    """Who is told apart and who is lost, and the weights that change it.

    sizes, loss_weights   of each class, as given or as the data have them
    at                    the answer at each energy, the least first
    alternatives          what practice uses, from sizes alone
    measured              the model beside its prediction, where one was given
    """

    sizes: tuple[int, ...]
    loss_weights: tuple[float, ...]
    at: tuple[RareAtEnergy, ...]
    alternatives: Alternatives
    measured: NetworkComparison | None = None

    @property
    def fates(self) -> tuple[Fate, ...]:
        """The word for each class over all energies."""
        lost = [sum(k in one.lost for one in self.at) for k in range(len(self.sizes))]
        return tuple(
            Fate.TOLD_APART if not count else Fate.LOST if count == len(self.at) else Fate.IN_PART for count in lost
        )

    @property
    def margin_weights(self) -> tuple[float, ...]:
        """Loss weights at which every class has a margin at the least energy gone through."""
        return self.at[0].margin_weights

    @property
    def answer(self) -> str:
        """The answer in a sentence or two."""
        from equisep.advice.rare.words import answer_of

        return answer_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        content: dict[str, Any] = encode(self, nonfinite="text")
        return {
            "answer": self.answer,
            "caution": CAUTION,
            **content,
            "fates": [fate.value for fate in self.fates],
            "at": [{**one, "lost": list(each.lost)} for one, each in zip(content["at"], self.at, strict=True)],
        }


def rounded_up(weight: float, digits: int = 4) -> float:
    """A weight to so many digits, never below it: a least weight that is rounded down no longer does."""
    unit = 10.0 ** (math.floor(math.log10(weight)) - digits + 1)
    return float(f"{math.ceil(weight / unit - 1e-9) * unit:.{digits}g}")
