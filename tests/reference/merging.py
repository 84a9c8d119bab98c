"""Data cut into random batches, and states merged along a random tree."""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

import numpy as np
import torch

from equisep.separation import PAPER, Assignments, Convention, GroupSums, SiteTask, Spread, TrainSite
from equisep.separation.fuzziness import fuzziness_of
from equisep.separation.pairs.directional import AxisSums
from equisep.separation.site import SecondPass
from equisep.separation.subspace import AS_GIVEN
from reference.scenes import Scene


class Mergeable(Protocol):
    def merge(self, other: Self) -> Self: ...


S = TypeVar("S", bound=Mergeable)


def random_parts(scene: Scene, rng: np.random.Generator, *, parts: int) -> list[Scene]:
    """The samples in random order, cut at random places; a part may be empty."""
    order = rng.permutation(len(scene.y))
    cuts = np.sort(rng.integers(0, len(scene.y) + 1, size=parts - 1))
    return [Scene(scene.x[rows], scene.y[rows]) for rows in np.split(order, cuts)]


def merged_in_any_order(states: list[S], rng: np.random.Generator) -> S:
    """Two random states become one until one is left."""
    left = list(states)
    while len(left) > 1:
        one = left.pop(rng.integers(len(left)))
        other = left.pop(rng.integers(len(left)))
        left.append(one.merge(other))
    return left[0]


def streamed_fuzziness(
    scene: Scene, rng: np.random.Generator, *, parts: int = 8, convention: Convention = PAPER
) -> float | None:
    """D by two passes, each over batches of its own in an order of its own."""
    classes = int(scene.y.max()) + 1
    first = [sums_of(part, classes=classes) for part in random_parts(scene, rng, parts=parts)]
    centers = merged_in_any_order(first, rng).centers
    second = []
    for part in random_parts(scene, rng, parts=parts):
        if len(part.y):
            looking = SecondPass(centers, convention)
            for _ in looking.look([torch.tensor(part.x)], Assignments(torch.tensor(part.y))):
                pass
            second.append(looking.projections)
    whole = SecondPass(centers, convention)
    whole.projections = merged_in_any_order(second, rng)
    return fuzziness_of(whole.spread(steps=AS_GIVEN), convention)


def sums_of(scene: Scene, *, classes: int | None = None) -> GroupSums:
    """The first pass over one scene."""
    sums = GroupSums(classes=classes or int(scene.y.max()) + 1)
    sums.add([torch.as_tensor(scene.x)], Assignments(torch.as_tensor(scene.y)))
    return sums


def spread_of(
    scene: Scene, convention: Convention = PAPER, *, classes: int | None = None, steps: float = AS_GIVEN
) -> Spread:
    """Both passes over one scene, of arrays or tensors of any precision."""
    second = SecondPass(sums_of(scene, classes=classes).centers, convention)
    for _ in second.look([torch.as_tensor(scene.x)], Assignments(torch.as_tensor(scene.y))):
        pass
    return second.spread(steps=steps)


def directional_cdnv(scene: Scene, *, size: int = 10**6, classes: int | None = None) -> float | None:
    """Both passes over a scene, some rows at a time."""
    x, y = torch.as_tensor(scene.x), torch.as_tensor(scene.y)
    site = TrainSite(SiteTask(classes=classes or int(y.max()) + 1, directional=True))
    for part, labels in zip(x.split(size), y.split(size), strict=True):
        site.first([part], Assignments(labels))
    site.turn()
    for part, labels in zip(x.split(size), y.split(size), strict=True):
        site.second([part], Assignments(labels))
    found = site.statistics()
    return found.axes.mean_cdnv(found.spread.projections, found.spread.centers)


def merged_directional_cdnv(scene: Scene, rng: np.random.Generator, *, parts: int) -> float | None:
    """The same from parts of the second pass, each with a state of its own."""
    spread, states = spread_of(scene), list[AxisSums]()
    for part in random_parts(scene, rng, parts=parts):
        y, state = torch.as_tensor(part.y), AxisSums(spread.subspace)
        state.look(spread.centers.residuals(torch.as_tensor(part.x), y) @ spread.subspace.directions, y)
        states.append(state)
    return merged_in_any_order(states, rng).mean_cdnv(spread.projections, spread.centers)
