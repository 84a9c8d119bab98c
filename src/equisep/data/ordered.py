"""Samples whose order is known, in batches of ours: class-mixed for most readings, in the order drawn for the reading `drawn`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
)

from equisep.data.batches import Batches
from equisep.data.inputs import Inputs
from equisep.errors import DataError
from equisep.shapes import Int

OWN_BATCH = 100  # batches of 100, as He & Su read them, where we choose
PERMUTING = (RandomSampler, SubsetRandomSampler)


@runtime_checkable
class Ordered(Protocol):
    """Batches of ours: samples of a known order, which `drawn` reads, mixed by us for the other readings."""

    @property
    def mixes(self) -> bool:
        """Whether the order is a uniform permutation."""

    def in_drawn_order(self) -> Iterable[Any]:
        """The same in the order drawn."""


@runtime_checkable
class Dealable(Protocol):
    """Batches of ours that are there one by one, so that some of them can be read without the others."""

    @property
    def starts(self) -> list[int]:
        """The number of the first sample of each batch, in the order read."""

    def only(self, batches: slice) -> Iterable[Any]:
        """Some of the batches, as they are."""


def in_drawn_order(source: Iterable[Any], *, what: str) -> Iterable[Any]:
    """The source in the order in which its samples were drawn; a loader that shuffles anew every time has none."""
    if isinstance(source, Ordered):
        return source.in_drawn_order()
    if shuffles(source):
        raise DataError(
            f"`drawn` reads samples in the order in which they were drawn, and the {what} loader shuffles them anew at every "
            "reading: their order is not known. Pass a loader with `shuffle=False`, or a pair (X, Y), or read `mixed`."
        )
    return source


def shuffles(source: Iterable[Any]) -> bool:
    """Whether a torch loader draws its samples anew at every reading: no two processes need read it in one order."""
    return any(isinstance(sampler, (*PERMUTING, WeightedRandomSampler)) for sampler in _samplers(source))


def permutes(source: Iterable[Any]) -> bool:
    """Whether the batches are known to be a uniform permutation: of ours, or of torch's own loader that shuffles samples.

    A loader with something of the user's making in it may shuffle and yet sort: a batch sampler may group what it draws, a data
    set or a function that collates may give whole batches, of one class each, for the entries that are shuffled.
    """
    if getattr(source, "mixes", None) is True:
        return True
    if type(source) is not DataLoader or source.collate_fn is not default_collate:
        return False
    batched: Any = source.batch_sampler
    sampler = batched.sampler if type(batched) is BatchSampler else None
    return type(sampler) in PERMUTING and not getattr(sampler, "replacement", False)


def dividing_sampler(source: Iterable[Any]) -> Any:
    """The sampler of a torch loader that divides samples among processes, by itself or inside its batches; else None."""
    return next((sampler for sampler in _samplers(source) if hasattr(sampler, "num_replicas")), None)


def _samplers(source: Iterable[Any]) -> tuple[Any, ...]:
    """The sampler of a loader, and what its batch sampler draws from; that stands as the sampler where entries are batches."""
    owners = (source, getattr(source, "sampler", None), getattr(source, "batch_sampler", None))
    return tuple(getattr(owner, "sampler", None) for owner in owners)


def _positions(n: int, batch_size: int) -> Batches:
    """The positions of n samples in the batches that `Batches` would choose."""
    positions = torch.arange(n, device="cpu")
    return Batches(positions, torch.zeros_like(positions), batch_size=batch_size)


class MappedBatches:
    """Columns by name in the batches that `Batches` would choose."""

    def __init__(self, inputs: Inputs, y: Int[Tensor, " n"], order: Batches | None = None) -> None:
        self.inputs, self.y = inputs, y
        self.order = _positions(len(y), OWN_BATCH) if order is None else order

    @property
    def mixes(self) -> bool:
        """Whether the order is a uniform permutation of ours."""
        return self.order.mixes

    def in_drawn_order(self) -> MappedBatches:
        """The same rows in the order given."""
        return MappedBatches(self.inputs, self.y, self.order.in_drawn_order())

    @property
    def starts(self) -> list[int]:
        """The number of the first sample of each batch, in the order read."""
        return self.order.starts

    @property
    def samples(self) -> int:
        """How many samples the batches hold."""
        return self.order.samples

    def only(self, batches: slice) -> MappedBatches:
        """Some of the batches, as they are."""
        return MappedBatches(self.inputs, self.y, self.order.only(batches))

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[tuple[Mapping[str, Any], Int[Tensor, " b"]]]:
        for rows, _ in self.order:
            yield self.part(rows)

    def part(self, rows: Int[Tensor, " b"]) -> tuple[Mapping[str, Any], Int[Tensor, " b"]]:
        """Some samples."""

        def chosen(column: Tensor) -> Tensor:
            return column[rows.to(column.device)]

        return self.inputs.changed(chosen).kwargs, chosen(self.y)


class MixedLoader:
    """A torch data set in the batches that `Batches` would choose, the same at every reading."""

    def __init__(self, data: Dataset[Any], order: Batches) -> None:
        self.dataset, self._order = data, order
        self.loader = DataLoader(data, batch_sampler=[index.tolist() for index, _ in order])

    @staticmethod
    def of(data: Dataset[Any], *, what: str, batch_size: int = OWN_BATCH) -> Iterable[Any]:
        """The data set in class-mixed batches; no batch at all of an empty one."""
        if not isinstance(data, Sized):
            raise DataError(
                f"The {what} data are a {type(data).__name__} without a length. Give it `__len__`, or pass a DataLoader."
            )
        return MixedLoader(data, _positions(len(data), batch_size)) if len(data) else []

    @property
    def mixes(self) -> bool:
        """Whether the order is a uniform permutation of ours."""
        return self._order.mixes

    def in_drawn_order(self) -> MixedLoader:
        """The same samples in the order of the data set."""
        return MixedLoader(self.dataset, self._order.in_drawn_order())

    @property
    def starts(self) -> list[int]:
        """The number of the first sample of each batch, in the order read."""
        return self._order.starts

    @property
    def samples(self) -> int:
        """How many samples the batches hold."""
        return self._order.samples

    def only(self, batches: slice) -> MixedLoader:
        """Some of the batches, as they are."""
        return MixedLoader(self.dataset, self._order.only(batches))

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.loader)
