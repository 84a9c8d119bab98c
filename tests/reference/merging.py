"""Data cut into random batches, and states merged along a random tree."""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

import numpy as np
import torch

from equisep.separation import PAPER, ClassMoments, ClassSubspace, Convention, Projections, project
from equisep.separation.fuzziness import fuzziness_of
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
    first = [
        ClassMoments.of(torch.tensor(part.x), torch.tensor(part.y), classes=classes)
        for part in random_parts(scene, rng, parts=parts)
    ]
    space = ClassSubspace.of(merged_in_any_order(first, rng), convention)
    second = [
        Projections.of(
            project(torch.tensor(part.x), torch.tensor(part.y), subspace=space), torch.tensor(part.y), classes=classes
        )
        for part in random_parts(scene, rng, parts=parts)
    ]
    return fuzziness_of(space, merged_in_any_order(second, rng), convention)
