"""The minimal NCC depth of a family on data: the least depth at whose top nearest class centers separate the training samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equisep.display import brief
from equisep.errors import InputError
from equisep.law.effective_depth import is_perfect


@brief
@dataclass(frozen=True, slots=True)
class MinimalNccDepth:
    """An upper estimate of Galanti & Galanti's minimal NCC depth, from trained networks (2022, Definition 3).

    depth        the least depth tried, in linear layers with the classifier, of which *some* network separates; None: not reached
    every        the least depth of which every seed's network does
    separated    by depth: how many of its networks do, and
    networks     how many there are
    best         by depth: the least share of training samples that nearest centers miss at the last layer
    """

    epsilon: float
    depth: int | None
    every: int | None
    separated: Mapping[int, int]
    networks: Mapping[int, int]
    best: Mapping[int, float | None]

    @property
    def hidden(self) -> int | None:
        """The same in hidden layers, as Galanti & Galanti count."""
        return None if self.depth is None else self.depth - 1


def minimal_ncc_depth(ncc_train: Mapping[int, Sequence[float | None]], *, epsilon: float = 0.01) -> MinimalNccDepth:
    """The least depth at which a network's last layer has an NCC training error of ε at most.

    `ncc_train` holds for each depth the accuracy of nearest class centers on the training samples at the last layer before the
    classifier, one number per network; None for one that diverged. The minimal NCC depth of a family is the least depth of which
    *some* network separates the samples, trained or not: what training reaches is an upper estimate, and a depth at which no
    network was seen to separate is not excluded.

    >>> from equisep.advice.depth import minimal_ncc_depth
    >>> minimal_ncc_depth({2: [0.93, 0.95], 4: [0.99, 1.0], 8: [1.0, 1.0]}, epsilon=0.01).depth
    4
    """
    if not ncc_train or not all(ncc_train.values()):
        raise InputError("A minimal NCC depth needs networks of one depth or more; found none. Train some.")
    counts = {depth: sum(is_perfect(value, epsilon) for value in values) for depth, values in sorted(ncc_train.items())}
    networks = {d: len(ncc_train[d]) for d in counts}
    best = {d: min((1 - value for value in ncc_train[d] if value is not None), default=None) for d in counts}
    return MinimalNccDepth(
        epsilon=epsilon,
        depth=next((d for d, count in counts.items() if count), None),
        every=next((d for d, count in counts.items() if count == networks[d]), None),
        separated=counts,
        networks=networks,
        best=best,
    )
