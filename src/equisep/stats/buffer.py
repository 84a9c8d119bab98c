"""FeatureBuffer: features kept while they fit a memory budget, so that one reading of the data serves both passes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from equisep.shapes import Int, Shaped

CHUNK_NUMBERS = 4 * 2**20  # numbers handled at once: 32 MiB in float64


class FeatureBuffer:
    """Features of every site in the order they came, until `budget` bytes are full; then it lets go of everything."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.used = 0
        self.overflowed = False
        self._chunks: dict[str, list[Tensor]] = {}

    def add(self, site: str, features: Shaped[Tensor, "n d"]) -> None:
        """Keep a copy, since in-place activations overwrite what a hook saw."""
        if self.overflowed:
            return
        self.used += features.numel() * features.element_size()
        if self.used > self.budget:
            self.overflowed = True
            self._chunks.clear()
            return
        self._chunks.setdefault(site, []).append(features.detach().clone())

    def drop(self, site: str) -> None:
        """Let go of one site, so that the others may go on."""
        self.used -= sum(part.numel() * part.element_size() for part in self._chunks.pop(site, []))

    def take(self, site: str) -> Shaped[Tensor, "n d"]:
        """All features of one site; they leave the buffer, so that memory falls as sites are worked off."""
        return torch.cat(self._chunks.pop(site))

    def parts(self, site: str) -> list[Shaped[Tensor, "b d"]]:
        """The same in pieces as they came, small ones joined: wide features need no second copy."""
        found: list[list[Tensor]] = []
        numbers = 0
        for part in self._chunks.pop(site):
            numbers += part.numel()
            if not found or numbers > CHUNK_NUMBERS:
                found.append([])
                numbers = part.numel()
            found[-1].append(part)
        return [group[0] if len(group) == 1 else torch.cat(group) for group in found]


def in_chunks(
    features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"]
) -> Iterator[tuple[Shaped[Tensor, "b d"], Int[Tensor, " b"]]]:
    """Rows in pieces small enough that their float64 copies stay small."""
    rows = max(1, CHUNK_NUMBERS // max(1, features.shape[1]))
    yield from zip(features.split(rows), labels.split(rows), strict=True)
