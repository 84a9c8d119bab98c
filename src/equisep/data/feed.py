"""The feed: whatever the user gave as data, as batches of (x, labels) on the model's device, checked one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from equisep.data.batches import Batches
from equisep.errors import DataError, InputError
from equisep.labels import as_tensor, class_indices
from equisep.results import Note
from equisep.shapes import Int

OWN_BATCH = 100  # batches of 100, as He & Su read them, where we choose


class Feed:
    """An iterable of (x, labels): a loader, any iterable of pairs, a pair of arrays, or a torch Dataset.

    `again` says whether it can be read twice. `notes` and `batch_sizes` fill while it is read.
    """

    def __init__(self, data: Any, *, what: str, device: torch.device, dtype: torch.dtype | None) -> None:
        self.what = what
        self.source = _as_batches(data, what=what)
        self.again = not isinstance(self.source, Iterator)
        self.notes: dict[str, Note] = {}
        self.batch_sizes: set[int] = set()
        self._device, self._dtype = device, dtype
        self._held: Any = None
        self._live: Iterator[Any] | None = None

    @property
    def batches(self) -> int | None:
        """How many batches there are, where the source tells."""
        try:
            return len(self.source) if isinstance(self.source, Sized) else None
        except TypeError:  # a loader over an iterable data set has the method, and refuses
            return None

    def first(self) -> tuple[Tensor, Int[Tensor, " b"]]:
        """The first batch, without using it up."""
        for x, y in self._checked(self._hold_first()):
            return x, y
        raise DataError(f"The {self.what} data hold no batch. Check the loader: an empty one has nothing to measure.")

    def __iter__(self) -> Iterator[tuple[Tensor, Int[Tensor, " b"]]]:
        if self._live is not None:  # an iterator that gave its first batch away early
            live, self._live = self._live, None
            held, self._held = self._held, None
            yield from self._checked([held])
            yield from self._checked(live)
        else:
            yield from self._checked(self.source)

    def _hold_first(self) -> list[Any]:
        if self.again:
            return [batch for batch, _ in zip(self.source, range(1), strict=False)]
        if self._live is None:
            self._live = iter(self.source)
            self._held = next(self._live, None)
        return [] if self._held is None else [self._held]

    def _checked(self, batches: Iterable[Any]) -> Iterator[tuple[Tensor, Int[Tensor, " b"]]]:
        for index, batch in enumerate(batches):
            x, target = _pair(batch, what=self.what, index=index)
            labels, note = class_indices(target)
            if note is not None:
                self.notes[note.code] = note
            if x.ndim == 0 or len(x) != len(labels):
                raise DataError(
                    f"Batch {index} of the {self.what} data holds {len(x) if x.ndim else 1} samples and {len(labels)} labels. "
                    "Each sample needs one label."
                )
            if len(labels):
                self.batch_sizes.add(len(labels))
                yield self._placed(x), labels.to(self._device)

    def _placed(self, x: Tensor) -> Tensor:
        if x.device != self._device:
            if x.device.type != "cpu":
                raise InputError(
                    f"The {self.what} data are on {x.device}, the model on {self._device}. "
                    f"Move one of them, or pass `device='{x.device}'`."
                )
            x = x.to(self._device)
        if self._dtype is not None and x.is_floating_point() and x.dtype != self._dtype:
            note = Note("cast", f"The inputs came as {x.dtype} and were cast to the model's {self._dtype}.")
            self.notes[note.code] = note
            x = x.to(self._dtype)
        return x


def _as_batches(data: Any, *, what: str) -> Iterable[Any]:
    if isinstance(data, list | tuple) and len(data) == 2 and not any(isinstance(part, list | tuple) for part in data):
        x, y = as_tensor(data[0], what=f"The {what} inputs"), class_indices(data[1])[0]
        if x.ndim < 1 or len(x) != len(y):
            raise DataError(
                f"The {what} data hold {len(x) if x.ndim else 1} samples and {len(y)} labels. Each sample needs one."
            )
        return Batches(x, y, batch_size=OWN_BATCH)
    if isinstance(data, Dataset) and not isinstance(data, IterableDataset):
        return DataLoader(data, batch_size=OWN_BATCH)
    if not isinstance(data, Iterable):
        raise DataError(f"The {what} data should be an iterable of (x, y) batches; found {type(data).__name__}.")
    return data


def _pair(batch: Any, *, what: str, index: int) -> tuple[Tensor, Any]:
    if not isinstance(batch, Sequence) or isinstance(batch, str) or len(batch) != 2:
        size = f" of {len(batch)}" if isinstance(batch, Sequence) and not isinstance(batch, str) else ""
        raise DataError(
            f"Batch {index} of the {what} data should be a pair (x, y); found {type(batch).__name__}{size}. "
            "Wrap the loader so that it yields inputs and class labels."
        )
    x, y = batch
    if isinstance(y, int):
        raise DataError(
            f"Batch {index} of the {what} data is a single sample (its label is the number {y}). "
            "Put the data set in a torch DataLoader."
        )
    return as_tensor(x, what=f"The inputs of batch {index} of the {what} data"), y
