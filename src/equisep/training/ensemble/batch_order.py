"""The order in which every member sees its samples: the one it would see alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from equisep.shapes import Int

BLOCK_NUMBERS = 16 * 2**20  # positions drawn ahead at once: 128 MiB


class Orders:
    """One `randperm` per epoch and seed, from a CPU generator of its own, as `train` draws it.

    Members of one seed share an order, so that a sweep over rates draws it once.
    """

    def __init__(self, seeds: Sequence[int], n: int, *, device: torch.device) -> None:
        self.distinct = list(dict.fromkeys(seeds))
        self.of_member = torch.tensor([self.distinct.index(seed) for seed in seeds], device="cpu").to(device)
        self.n = n
        self.device = device
        self._generators = [torch.Generator("cpu").manual_seed(seed) for seed in self.distinct]

    def epochs(self, count: int) -> Iterator[Int[Tensor, "m n"]]:
        """The positions of every member's samples, epoch after epoch."""
        for start in range(0, count, self.most):
            for epoch in self.draw(min(self.most, count - start)).to(self.device):
                yield epoch[self.of_member]

    @property
    def most(self) -> int:
        """The most epochs that are drawn at once."""
        return max(1, BLOCK_NUMBERS // (len(self.distinct) * self.n))

    def skip(self, count: int) -> None:
        """As if so many epochs had been drawn."""
        for _ in range(count):
            self.draw(1)

    def draw(self, count: int) -> Int[Tensor, "e s n"]:
        """The next epochs of every distinct seed, on the CPU."""
        block = torch.empty(count, len(self.distinct), self.n, dtype=torch.int64, device="cpu")
        for epoch in block:
            for row, generator in zip(epoch, self._generators, strict=True):
                torch.randperm(self.n, generator=generator, out=row, device="cpu")
        return block
