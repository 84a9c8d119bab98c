"""The feed: whatever the user gave as data, as batches of (inputs, labels) on the model's device, checked one by one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from equisep.data.batches import Batches
from equisep.data.dataset import Dataset as StoredDataset
from equisep.data.dataset import class_names_of
from equisep.data.inputs import Inputs, loader_of, without_labels
from equisep.data.mixing import Mixing, class_mixing
from equisep.data.ordered import (
    OWN_BATCH,
    Dealable,
    MappedBatches,
    MixedLoader,
    Ordered,
    in_drawn_order,
    permutes,
    shuffles,
)
from equisep.data.shard import Numbering, Shard
from equisep.errors import DataError, EquisepError, InputError, LabelError
from equisep.labels import as_tensor, class_indices
from equisep.results import Note, Reading
from equisep.shapes import Int

if TYPE_CHECKING:
    Unpack = Callable[[Any], Any]
else:
    Unpack = Any  # so that what is no function reaches the sentence below, whoever checks types at run time


class Feed:
    """An iterable of (inputs, labels): a loader, any iterable of pairs or mappings, arrays, or a torch Dataset.

    `unpack` makes (inputs, labels) of a batch that is something else. `again` says whether the data can be read twice,
    `class_names` how the classes are called, where the data tell. `notes` and `batch_sizes` fill while it is read.

    What we put into batches ourselves comes in one uniform permutation (`mixes`), or for the `reading` `drawn` in the order in
    which it was drawn; loaders are read as they come (`as_it_comes`).
    """

    def __init__(
        self,
        data: Any,
        *,
        what: str,
        device: torch.device,
        dtype: torch.dtype | None,
        unpack: Unpack | None = None,
        reading: Reading = "eval",
        shard: Shard | None = None,
    ) -> None:
        self.what, self.shard = what, shard
        if unpack is not None and not callable(unpack):
            raise InputError(f"`unpack` should be a function of a batch; found {type(unpack).__name__}.")
        data, told = loader_of(data, what=what)
        self.class_names = class_names_of(data)
        if unpack is not None and isinstance(data, Mapping):  # whole columns
            data, unpack = _unpacked(data, unpack, whose=f"The {what} data"), None
        self._unpack = unpack
        source, note = _as_batches(data, what=what)
        self.as_it_comes = not isinstance(source, Ordered)
        self.source = in_drawn_order(source, what=what) if reading == "drawn" else source
        self.mixes = permutes(self.source)
        self._mixing: Mixing | None = None
        self.again = not isinstance(self.source, Iterator)
        known = (*(each for each in (told, note) if each), *getattr(self.source, "notes", ()))
        self.notes: dict[str, Note] = {entry.code: entry for entry in known if isinstance(entry, Note)}
        self.batch_sizes: set[int] = set()
        self._device, self._dtype = device, dtype
        self._begun: Iterator[Any] | None = None
        self.numbering = Numbering()
        self.first_number = 0  # of the samples of the batch under way, in the whole data
        self.passed_over = 0  # batches at the beginning that were read before, by a process that was stopped
        if shard is not None and (shuffles(self.source) or not self.again):
            how = "shuffles anew in every process" if self.again else "can be read only once"
            raise DataError(
                f"Shards are parts of one order of the samples, and the {what} loader {how}. Pass a loader with "
                "`shuffle=False`, a data set, or a pair (X, Y), which are put into one order."
            )

    @property
    def batches(self) -> int | None:
        """How many batches there are to read, where the source tells."""
        try:
            total = len(self.source) if isinstance(self.source, Sized) else None
        except TypeError:  # a loader over an iterable data set has the method, and refuses
            return None
        if total is None or self.shard is None:
            return total
        return len(range(self.shard.index, total, self.shard.count))

    @property
    def samples(self) -> int | None:
        """How many samples there are to read, where that is known before."""
        source = self.source
        known = getattr(source, "samples", None)
        if isinstance(known, int):
            return known
        if isinstance(source, DataLoader):
            if isinstance(source.dataset, IterableDataset) or source.batch_size is None or source.drop_last:
                return None
            return len(source.sampler) if isinstance(source.sampler, Sized) else None
        if isinstance(source, list | tuple) and all(
            isinstance(batch, list | tuple) and len(batch) == 2 for batch in source
        ):
            return sum(len(labels) for _, labels in source)
        return None

    def note(self, code: str, text: str) -> None:
        """One note more."""
        self.notes[code] = Note(code, text)

    def here(self, inputs: Inputs, labels: Int[Tensor, " b"]) -> tuple[Inputs, Int[Tensor, " b"]]:
        """Samples of another process, where this one reads its own."""
        return inputs.changed(self._placed), labels.to(self._device)

    def first(self) -> tuple[Inputs, Int[Tensor, " b"]]:
        """The first batch that holds samples; the next reading begins with it, so that nothing is read in vain.

        Of a shard it is the first batch of the whole data: every shard looks at the same samples to plan by.
        """
        if self.shard is not None:
            sizes, first = set(self.batch_sizes), next(self._checked(self._fetched(self.source)), None)
            self.batch_sizes = sizes
            if first is None:
                raise self.nothing()
            return first
        live, held = self._fetched(self.source), []

        def watched() -> Iterator[Any]:
            for batch in live:
                held.append(batch)
                yield batch

        for x, y in self._checked(watched()):
            self._begun = chain(held, live)
            return x, y
        raise self.nothing()

    def __iter__(self) -> Iterator[tuple[Inputs, Int[Tensor, " b"]]]:
        begun, self._begun = self._begun, None
        if self.shard is None:
            yield from self._checked(self._fetched(self.source) if begun is None else begun, skip=self.passed_over)
            return
        mine = slice(self.shard.index + self.passed_over * self.shard.count, None, self.shard.count)
        if isinstance(self.source, Dealable):
            part = self.source.only(mine)
            assert isinstance(part, Dealable)
            yield from self._checked(self._fetched(part), starts=part.starts)
        else:  # what a loader has before it must be fetched to be passed over
            yield from self._checked(self._fetched(self.source), mine=mine)

    def restart(self) -> None:
        """Begin the next reading anew, as the one after it will, so that a shuffling loader repeats itself."""
        if self.again:
            self._begun = None

    def mixing(self, labels: Sequence[Int[Tensor, " _"]]) -> Mixing:
        """What the test of class-mixing says of the batches, whose labels these are; asked once."""
        if self._mixing is None:
            vector = torch.cat(list(labels)).cpu().numpy()
            self._mixing = class_mixing(vector, [len(part) for part in labels])
        return self._mixing

    def nothing(self) -> DataError:
        """The error of a reading without a batch: an empty loader, or a stream that was used up before."""
        if self.batch_sizes:
            return DataError(
                f"The {self.what} data can be read only once: a further reading found no batch. "
                "Pass data that can be read twice, or enough `memory` to keep their features."
            )
        return DataError(f"The {self.what} data hold no batch. Check the loader: an empty one has nothing to measure.")

    def _fetched(self, source: Iterable[Any]) -> Iterator[Any]:
        """The batches as they come, with a sentence around whatever the loader or its data set raises."""
        live: Iterator[Any] | None = None
        for index in count():
            try:
                live = iter(source) if live is None else live
                batch = next(live)
            except StopIteration:
                return
            except EquisepError:
                raise
            except Exception as error:  # whatever a user's loader raises
                raise DataError(
                    f"Batch {index} of the {self.what} data could not be fetched: {_reason(error)}. "
                    "Correct the loader or its data set; a plain loop over it fails alike."
                ) from error
            yield batch

    def _checked(
        self,
        batches: Iterable[Any],
        *,
        skip: int = 0,
        starts: Sequence[int] | None = None,
        mine: slice | None = None,
    ) -> Iterator[tuple[Inputs, Int[Tensor, " b"]]]:
        """Batches as inputs and labels: all after the first `skip`, or those of `mine`; `starts` are their first numbers."""
        seen, how = 0, self.numbering  # samples so far
        wanted = range(skip, sys.maxsize) if mine is None else range(mine.start, sys.maxsize, mine.step)
        for index, batch in enumerate(batches):
            whose = f"Batch {index} of the {self.what} data"
            x, target = self._pair(batch, whose=whose)
            try:
                labels, note = class_indices(target)
            except LabelError as error:
                raise LabelError(f"{whose}: {error}") from error
            if note is not None:
                self.notes[note.code] = note
            main = x.main
            if main is None:
                held = ", ".join(f"`{name}`, a {type(value).__name__}" for name, value in x.kwargs.items())
                raise DataError(
                    f"{whose} holds labels, and no tensor for the model{f' but {held}' if held else ''}. Let it hold tensors, by "
                    "themselves or by argument name; `unpack=` takes a function that makes such a pair (x, y) of a batch."
                )
            if main.ndim == 0 or len(main) != len(labels):
                held = f"{len(main) if main.ndim else 1} samples and {len(labels)} labels"
                raise DataError(f"{whose} holds {held}. Each sample needs one label.")
            if how.own is not None and seen + len(labels) > how.own:  # what follows are repeats
                x, labels = x.head(max(0, how.own - seen)), labels[: max(0, how.own - seen)]
            self.first_number = how.first + how.step * seen if starts is None else starts[index]
            seen += len(labels)
            if len(labels) and index in wanted:
                self.batch_sizes.add(len(labels))
                yield x.changed(self._placed), labels.to(self._device)

    def _pair(self, batch: Any, *, whose: str) -> tuple[Inputs, Any]:
        if self._unpack is not None:
            batch = _unpacked(batch, self._unpack, whose=whose)
        elif isinstance(batch, Mapping):
            batch = without_labels(batch, whose=whose)
        elif isinstance(batch, list | tuple) and len(batch) > 2:
            batch, note = _without_extras(batch, whose=whose)
            self.notes[note.code] = note
        if not isinstance(batch, Sequence) or isinstance(batch, str) or len(batch) != 2:
            size = f" of {len(batch)}" if isinstance(batch, Sequence) and not isinstance(batch, str) else ""
            raise DataError(
                f"{whose} should be a pair (x, y); found {type(batch).__name__}{size}. Wrap the loader so that it yields "
                "inputs and class labels, or pass `unpack=`, a function that makes such a pair of a batch."
            )
        x, y = batch
        if isinstance(y, int) or (isinstance(y, Tensor) and y.ndim == 0):
            raise DataError(
                f"{whose} is a single sample (its label is the number {int(y)}). Put the data set in a torch DataLoader."
            )
        return Inputs.of(x, what=f"The inputs of {whose[0].lower()}{whose[1:]}"), y

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


def _as_batches(data: Any, *, what: str) -> tuple[Iterable[Any], Note | None]:
    """The data as an iterable of batches; those that we choose ourselves are class-mixed, in one fixed order."""
    if isinstance(data, Mapping):
        return _mapped(*without_labels(data, whose=f"The {what} data"), what=what)
    pair = data if isinstance(data, list | tuple) and len(data) == 2 else None
    if pair is not None and isinstance(pair[0], Mapping) and not isinstance(pair[1], Mapping):
        return _mapped(*pair, what=what)
    if pair is not None and _is_column(pair[1], rows=pair[0]):
        pair = (pair[0], numpy.asarray(pair[1]))
    if pair is not None and not any(isinstance(part, list | tuple | Mapping) for part in pair):
        x, (y, note) = as_tensor(pair[0], what=f"The {what} inputs"), class_indices(pair[1])
        if x.ndim < 1 or len(x) != len(y):
            raise DataError(
                f"The {what} data hold {len(x) if x.ndim else 1} samples and {len(y)} labels. Each sample needs one."
            )
        return (Batches(x, y, batch_size=OWN_BATCH) if len(y) else []), note
    if isinstance(data, Dataset) and not isinstance(data, IterableDataset):
        return MixedLoader.of(data, what=what), None
    _refuse_no_batches(data, what=what)
    return data, None


def _is_column(labels: Any, *, rows: Any) -> bool:
    """Whether labels are a plain list of numbers or words beside an array of samples: a pair, and no list of two batches."""
    array = isinstance(rows, Tensor | numpy.ndarray) or hasattr(rows, "to_numpy")
    return array and isinstance(labels, list | tuple) and all(isinstance(label, int | float | str) for label in labels)


def _refuse_no_batches(data: Any, *, what: str) -> None:
    """What people pass out of habit, answered with the right call."""
    if isinstance(data, StoredDataset):
        raise DataError(
            f"The {what} data are the data set `{data.name}` as stored. Draw and prepare a split of it: "
            "`Batches(*prepare_split(data), class_names=data.class_names)`."
        )
    if isinstance(data, Tensor | numpy.ndarray) or hasattr(data, "to_numpy"):
        raise DataError(
            f"The {what} data are one array of shape {tuple(data.shape)}: samples without labels, or labels alone. "
            "Pass them as one pair: `(x, y)`."
        )
    if isinstance(data, str | Path):
        raise DataError(
            f"The {what} data are the name `{data}`. Load them first: `equisep.load_data({str(data)!r})`, of which "
            "`prepare_split` makes a pair (x, y)."
        )
    if not isinstance(data, Iterable):
        raise DataError(f"The {what} data should be an iterable of (x, y) batches; found {type(data).__name__}.")


def _mapped(columns: Mapping[str, Any], target: Any, *, what: str) -> tuple[Iterable[Any], Note | None]:
    """Whole columns by name, n rows each, and their labels."""
    inputs, (y, note) = Inputs.of(columns, what=f"The {what} inputs"), class_indices(target)
    for name, column in inputs.tensors.items():
        if column.ndim < 1 or len(column) != len(y):
            rows = len(column) if column.ndim else 1
            raise DataError(
                f"The {what} data hold {rows} rows of `{name}` and {len(y)} labels. Each sample needs one of each."
            )
    return (MappedBatches(inputs, y) if len(y) else []), note


def _unpacked(batch: Any, unpack: Unpack, *, whose: str) -> tuple[Any, Any]:
    try:
        pair = unpack(batch)
    except Exception as error:  # whatever a user's function raises
        raise DataError(f"`unpack` failed on {whose[0].lower()}{whose[1:]}: {_reason(error)}. Correct it.") from error
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        size = f" of {len(pair)}" if isinstance(pair, list | tuple) else ""
        raise DataError(f"`unpack` should return a pair (x, y); it returned {type(pair).__name__}{size}.")
    return pair[0], pair[1]


def _without_extras(batch: Sequence[Any], *, whose: str) -> tuple[tuple[Any, Any], Note]:
    """The first two entries of (x, y, …), where the second can be labels: an index, a weight or a path follows them."""
    x, y = batch[:2]
    try:
        fit = len(class_indices(y)[0]) == len(x)
    except (InputError, TypeError):  # no labels; no length
        fit = False
    if not fit:
        raise DataError(
            f"{whose} should be a pair (x, y); found {type(batch).__name__} of {len(batch)}, whose second entry is no vector "
            "of class labels, one for each entry of the first. Pass `unpack=`, such as "
            "`unpack=lambda batch: ((batch[0], batch[1]), batch[2])` for two inputs and labels."
        )
    text = (
        f"Batches hold {len(batch)} entries: the first was taken as inputs, the second as labels, the others were left out. "
        "`unpack=` chooses otherwise."
    )
    return (x, y), Note("extra-entries", text)


def _reason(error: Exception) -> str:
    """One line of an error: of a loader's worker, which sends its whole traceback as words, the last."""
    lines = str(error).strip().splitlines() or [""]
    if any(line.startswith("Original Traceback") for line in lines):
        return lines[-1].rstrip(".")
    return f"{type(error).__name__}: {lines[0]}".rstrip(".: ")
