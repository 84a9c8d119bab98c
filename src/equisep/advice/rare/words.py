"""The answer on rare classes in sentences: what the model of the last layer says, what the network does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equisep.advice.rare.records import RareClasses
    from equisep.compare.geometry import NetworkComparison

MODEL = "the Layer-Peeled Model"


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
        parts.append(f"{named(group, found.sizes)} {_be(group)} {' and '.join(words)}")
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
    return f"{energy} loses {named(at.lost, found.sizes)}."


def _measured(network: NetworkComparison) -> str:
    """What the network itself does: margins on training samples, and the class it recognizes least on test data."""
    lost = network.lost
    told = (
        "every class has a mean margin above 0"
        if not lost
        else f"{named(lost, network.sizes)} {_have(lost)} none above 0"
    )
    text = f"Measured on its training data, {told}"
    known = [(share, k) for k, share in enumerate(network.test_accuracy or ()) if share is not None]
    if known:
        share, k = min(known)
        text += f"; on test data it recognizes class {k} ({network.sizes[k]} samples) least, {100 * share:.1f} %"
    return f"{text}."


def named(classes: Sequence[int], sizes: Sequence[int]) -> str:
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
