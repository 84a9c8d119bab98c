"""Samples in memory as batches that come in the same order every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy.typing as npt
import torch

from equisep.data.sampling import ORDER, permutation
from equisep.errors import InputError
from equisep.labels import as_tensor, label_vector
from equisep.shapes import Int

ORDERS = ("given", "mixed")


class Batches:
    """(x, y) batches of fixed content, the same at every iteration, so that data can be read twice.

    `mixed` is one seeded permutation of all samples, which mixes the classes; `given` keeps the order of `x`. `drawn`, as
    positions, is the order in which the samples were drawn where that is another than the one of `x`, such as a walk
    of `equisep.data.draw`: the reading `drawn` takes it. A last batch of a single sample joins the one before it, because
    BatchNorm cannot normalize one sample. `class_names` travel with the samples.

    >>> import torch
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> from equisep.data import Batches
    >>> [len(labels) for _, labels in Batches(x, y, batch_size=40)]
    [40, 40, 10]
    """

    def __init__(
        self,
        x: torch.Tensor | npt.NDArray[Any],
        y: torch.Tensor | npt.NDArray[Any],
        batch_size: int = 100,
        seed: int = 0,
        order: str = "mixed",
        class_names: Sequence[str] = (),
        drawn: torch.Tensor | npt.NDArray[Any] | None = None,
    ) -> None:
        if len(x) != len(y):
            raise InputError(f"`Batches` got {len(x)} samples and {len(y)} labels. Give one label for each sample.")
        if len(x) == 0:
            raise InputError("`Batches` got no samples. Give at least one.")
        if batch_size < 1:
            raise InputError(f"`batch_size` was {batch_size}; at least 1 is needed.")
        if order not in ORDERS:
            raise InputError(f"`order` was {order!r}; known are {', '.join(ORDERS)}.")
        self.x = x if isinstance(x, torch.Tensor) else as_tensor(x, what="The samples")
        labels, note = label_vector(y)
        self.y = torch.from_numpy(labels).to(self.x.device)
        self.notes = () if note is None else (note,)
        self.batch_size = batch_size
        self.seed = seed
        self.order = order
        self.class_names = tuple(class_names)
        n = len(self.x)
        self._drawn = None if drawn is None else _order_of(n, drawn)
        mixed = torch.from_numpy(permutation(n, seed=seed, use=ORDER))
        self._index = (mixed if order == "mixed" else torch.arange(n, device="cpu")).to(self.x.device)
        self.starts = batch_starts(n, batch_size)  # the number of the first sample of each batch, in the order read
        self._stops = [*self.starts[1:], n]

    @property
    def mixes(self) -> bool:
        """Whether the order is a uniform permutation of ours."""
        return self.order == "mixed"

    def in_drawn_order(self) -> Batches:
        """The same samples in the order in which they were drawn; that of `x` unless `drawn` told another."""
        if self._drawn is None and self.order == "given":
            return self
        other = copy(self)
        index = torch.arange(len(self.x), device="cpu") if self._drawn is None else self._drawn
        other.order, other._index = "drawn", index.to(self.x.device)
        return other

    def subset(self, positions: Int[torch.Tensor, " m"]) -> Batches:
        """Some of the samples, batched as these are; the order in which they were drawn is kept among them."""
        drawn = None
        if self._drawn is not None:
            place = torch.full((len(self.x),), -1, device="cpu")
            place[positions] = torch.arange(len(positions), device="cpu")
            kept = place[self._drawn]
            drawn = kept[kept >= 0]
        there = positions.to(self.x.device)
        order = "given" if self.order == "drawn" else self.order
        other = Batches(self.x[there], self.y[there], self.batch_size, self.seed, order, self.class_names, drawn)
        other.notes = self.notes
        return other.in_drawn_order() if self.order == "drawn" else other

    @property
    def samples(self) -> int:
        """How many samples the batches hold."""
        return sum(stop - start for start, stop in zip(self.starts, self._stops, strict=True))

    def only(self, batches: slice) -> Batches:
        """Some of the batches, as they are: their `starts` stay those in the whole."""
        other = copy(self)
        other.starts, other._stops = self.starts[batches], self._stops[batches]
        return other

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for start, stop in zip(self.starts, self._stops, strict=True):
            index = self._index[start:stop]
            yield self.x[index], self.y[index]

    def __repr__(self) -> str:
        return f"Batches({len(self.x)} samples, batch_size={self.batch_size}, seed={self.seed}, order={self.order!r})"


def _order_of(n: int, drawn: torch.Tensor | npt.NDArray[Any]) -> torch.Tensor:
    order = torch.as_tensor(drawn).cpu().to(torch.int64)
    if not torch.equal(order.sort().values, torch.arange(n, device="cpu")):
        raise InputError(f"`drawn` is no order of the {n} samples. Give each position from 0 to {n - 1} once.")
    return order


def batch_starts(n: int, batch_size: int) -> list[int]:
    """Where each batch begins; a last batch of one sample joins the one before it."""
    return [start for start in range(0, n, batch_size) if start == 0 or batch_size == 1 or start != n - 1]
