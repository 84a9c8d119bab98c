"""What is known of rare classes, in records and in sentences: states, margins, least weights at each energy; without torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
MODEL = "the Layer-Peeled Model"


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


def rounded_up(weight: float) -> float:
    """A weight to four digits, never below it: a least weight that is rounded down no longer does."""
    unit = 10.0 ** (math.floor(math.log10(weight)) - 3)
    return float(f"{math.ceil(weight / unit - 1e-9) * unit:.4g}")


def answer_of(found: RareClasses) -> str:
    """Who is lost, at which energies; of a network also who is lost by its own margins."""
    if found.measured is not None:
        return f"{_of_network(found, found.measured)} {_measured(found.measured)}"
    return _of_sizes(found)


def _of_sizes(found: RareClasses) -> str:
    """Over the energies that were gone through: who is lost at all of them, at which of them, and at none."""
    energies = tuple(one.energy for one in found.at)
    classes = range(len(found.sizes))
    lost_at = [tuple(one.energy for one in found.at if k in one.lost) for k in classes]
    if not any(lost_at):
        return (
            f"All {len(classes)} classes are told apart at E_W·E_H = {_listed(energies)} in {MODEL}: no class needs a weight for "
            "a margin on its training samples."
        )
    parts = []
    for lost in sorted(set(lost_at), key=len, reverse=True):
        group = [k for k in classes if lost_at[k] == lost]
        apart = [energy for energy in energies if energy not in lost]
        words = []
        if lost:
            words.append(f"lost at E_W·E_H = {_listed(lost)}")
        if apart:
            words.append(f"told apart at {_listed(apart)}" if lost else "told apart at all of these")
        parts.append(f"{name_list(group, found.sizes)} {_be(group)} {' and '.join(words)}")
    return f"In {MODEL} {'; '.join(parts)}."


def _listed(energies: Sequence[float]) -> str:
    """`1, 2 and 5`."""
    words = [f"{energy:g}" for energy in energies]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _of_network(found: RareClasses, network: NetworkComparison) -> str:
    at = found.at[0]
    energy = f"At this model's energies, E_W·E_H = {at.energy:.4g}, {MODEL}"
    if not at.lost:
        return f"{energy} tells all {len(found.sizes)} classes apart: no class needs a weight for a margin on training data."
    return f"{energy} loses {name_list(at.lost, found.sizes)}."


def _measured(network: NetworkComparison) -> str:
    """What the network itself does: margins on training samples, and the class it recognizes least on test data."""
    lost = network.lost
    told = (
        "every class has a mean margin above 0"
        if not lost
        else f"{name_list(lost, network.sizes)} {_have(lost)} none above 0"
    )
    text = f"Measured on its training data, {told}"
    known = [(share, k) for k, share in enumerate(network.test_accuracy or ()) if share is not None]
    if known:
        share, k = min(known)
        text += f"; on test data it recognizes class {k} ({network.sizes[k]} samples) least, {100 * share:.1f} %"
    return f"{text}."


def name_list(classes: Sequence[int], sizes: Sequence[int]) -> str:
    """`class 3 (5 samples)`, `classes 5–9 (5 to 50 samples each)`."""
    own = [sizes[k] for k in classes]
    low, high = min(own), max(own)
    if len(classes) == 1:
        return f"class {classes[0]} ({low} sample{'' if low == 1 else 's'})"
    size = f"{low} samples each" if low == high else f"{low} to {high} samples each"
    return f"classes {_runs(classes)} ({size})"


def _runs(classes: Sequence[int]) -> str:
    """`0–4, 7, 9`: neighbors joined."""
    runs: list[list[int]] = []
    for k in sorted(classes):
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _be(classes: Sequence[int]) -> str:
    return "is" if len(classes) == 1 else "are"


def _have(classes: Sequence[int]) -> str:
    return "has" if len(classes) == 1 else "have"
