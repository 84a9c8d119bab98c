"""FeatureBuffer: features kept in memory, so that one reading of the data serves both passes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from equisep.shapes import Int, Shaped

CHUNK_NUMBERS = 4 * 2**20  # numbers handled at once: 32 MiB in float64


class FeatureBuffer:
    """Features of every site in the order they came, and how many bytes they take (`used`)."""

    def __init__(self) -> None:
        self.used = 0
        self._chunks: dict[int, list[Tensor]] = {}

    def __contains__(self, site: int) -> bool:
        return site in self._chunks

    def add(self, site: int, features: Shaped[Tensor, "n d"]) -> None:
        """Keep a copy, since in-place activations overwrite what a hook saw."""
        self.used += bytes_of(features)
        self._chunks.setdefault(site, []).append(features.detach().clone())

    def drop(self, site: int) -> None:
        """Let go of one site, so that the others may go on."""
        self.used -= sum(map(bytes_of, self._chunks.pop(site, [])))

    def parts(self, site: int) -> list[Shaped[Tensor, "b d"]]:
        """All features of one site in pieces as they came, small ones joined: wide features need no second copy.

        They leave the buffer, so that memory falls as sites are worked off.
        """
        found: list[list[Tensor]] = []
        numbers = 0
        for part in self._chunks.pop(site):
            self.used -= bytes_of(part)
            numbers += part.numel()
            if not found or numbers > CHUNK_NUMBERS:
                found.append([])
                numbers = part.numel()
            found[-1].append(part)
        return [group[0] if len(group) == 1 else torch.cat(group) for group in found]


def bytes_of(features: Tensor) -> int:
    """What a tensor takes."""
    return features.numel() * features.element_size()


def in_chunks(
    features: Shaped[Tensor, "n d"], labels: Int[Tensor, " n"]
) -> Iterator[tuple[Shaped[Tensor, "b d"], Int[Tensor, " b"]]]:
    """Rows in pieces small enough that their float64 copies stay small."""
    rows = max(1, CHUNK_NUMBERS // max(1, features.shape[1]))
    yield from zip(features.split(rows), labels.split(rows), strict=True)
