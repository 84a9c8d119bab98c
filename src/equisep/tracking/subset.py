"""The samples that a tracker reads again and again: drawn once, as many of each class, from whatever the data are.

A training must not notice. A loader is never iterated where its data set can be indexed: its iterator may be in use, and its
workers may live on. Random states, also those that loaders own, are given back. The draw depends on the seed and the data
alone, also where the data set augments at random, so that a training begun anew reads the same samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy
import torch
from torch import Tensor

from equisep.data.batches import batch_starts
from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.data.ordered import OWN_BATCH
from equisep.data.sampling import ORDER, WALK, permutation
from equisep.errors import DataError
from equisep.labels import check_range
from equisep.measuring.fingerprint import Fingerprint
from equisep.results import Note
from equisep.shapes import Int
from equisep.tracking.sources import Indexed, Streamed, seeded

MOST_A_CLASS, LEAST_A_CLASS, MOST = 30, 5, 300  # samples drawn by default: about 300, within these limits per class
LARGE_BATCH, SMALL_INPUT = 500, 4096  # samples at once, of inputs of no more numbers than these
TRIED = 8  # samples show what a model does
SCANNED = 20  # times as many samples as are wanted may be looked at, where labels are not known beforehand

Batch = tuple[Inputs, Int[Tensor, " b"]]
Check = Callable[[Any], Feed]  # raw batches as inputs and labels


def batch_size_for(inputs: Inputs, samples: int, *, reading: str) -> int:
    """Samples read at once: small inputs many, so that a GPU is asked less often; 100 where BatchNorm reads the batch itself.

    `inputs` are those of some `samples`.
    """
    numbers = sum(x.numel() for x in inputs.tensors.values()) / max(samples, 1)
    return LARGE_BATCH if reading == "eval" and numbers <= SMALL_INPUT else OWN_BATCH


def samples_per_class(classes: int) -> int:
    """How many samples of each class are drawn where nobody says."""
    return max(LEAST_A_CLASS, min(MOST_A_CLASS, MOST // classes))


@dataclass(frozen=True, slots=True)
class Subset:
    """Batches that are the same at every reading: kept, or where they are too large fetched anew.

    `class_sizes` are those of all the data, where the labels are known without a look at every sample. `mixes` says that the
    order is a uniform permutation, as the reading `mixed` asks for; else it is that of the draw, in which classes run out.
    """

    fetch: Callable[[], Iterator[Batch]]
    batches: int
    counts: tuple[int, ...]
    fingerprint: str
    class_sizes: tuple[int, ...] | None = None
    notes: tuple[Note, ...] = ()
    mixes: bool = False

    @property
    def samples(self) -> int:
        """How many."""
        return sum(self.counts)

    def on(self, device: torch.device) -> _Placed:
        """As data for a model on this device."""
        return _Placed(self, device)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A subset as batches of a loader, on one device."""

    subset: Subset
    device: torch.device

    @property
    def mixes(self) -> bool:
        return self.subset.mixes

    def __len__(self) -> int:
        return self.subset.batches

    def __iter__(self) -> Iterator[tuple[Any, Int[Tensor, " b"]]]:
        for inputs, labels in self.subset.fetch():
            here = inputs.changed(lambda x: x.to(self.device))
            x = here.kwargs or (here.args if len(here.args) > 1 else here.args[0])
            yield x, labels.to(self.device)


@dataclass(frozen=True, slots=True)
class _Held:
    """Batches that are kept; no function inside another, so that a tracker can be pickled."""

    batches: tuple[Batch, ...]

    def __call__(self) -> Iterator[Batch]:
        return iter(self.batches)


@dataclass(frozen=True, slots=True)
class _Checked:
    """Raw batches as inputs and labels that the model can have; what is to be said of them goes into `notes`."""

    check: Check
    classes: int
    owner: str
    what: str
    notes: dict[str, Note]

    def __call__(self, raw: Any) -> Iterator[Batch]:
        feed = self.check(raw)
        for inputs, labels in feed:
            check_range(labels, self.classes, owner=self.owner, where=f"the {self.what} data")
            yield inputs, labels
        self.notes.update(feed.notes)


@dataclass(frozen=True, slots=True, eq=False)
class _Fetched:
    """Batches that are fetched anew whenever they are read."""

    source: Indexed
    checked: _Checked
    positions: Int[numpy.ndarray, " m"]
    batch_size: int
    seed: int

    def __call__(self) -> Iterator[Batch]:
        starts = batch_starts(len(self.positions), self.batch_size)
        for start, stop in zip(starts, [*starts[1:], len(self.positions)], strict=True):
            # never around a `yield`: who asks for batches may never come back
            with seeded(self.seed + start, self.source.loader):
                part = list(self.checked([self.source.fetch(self.positions[start:stop])]))
            yield from part


def draw_subset(
    source: Indexed | Streamed,
    check: Check,
    *,
    classes: int,
    owner: str,
    per_class: int | None,
    batch_size: int,
    seed: int,
    memory: int,
    mixed: bool,
) -> Subset:
    """As many samples of each class as there are, up to `per_class`; `owner` says who told the number of classes."""
    wanted = samples_per_class(classes) if per_class is None else per_class
    notes: dict[str, Note] = {}
    checked = _Checked(check, classes, owner, source.what, notes)
    if isinstance(source, Streamed):
        with seeded(seed, source.loader):
            parts, looked = _streamed(checked(source.batches()), classes=classes, wanted=wanted, batch_size=batch_size)
        return _told(_kept(parts, source, classes, memory, notes), looked, source)
    with seeded(seed, source.loader):
        positions, looked = _positions(source, checked, classes=classes, owner=owner, wanted=wanted, seed=seed)
    if mixed:
        positions = positions[permutation(len(positions), seed=seed, use=WALK)]
    fetch = _Fetched(source, checked, positions, batch_size, seed)
    sizes = None
    if source.labels is not None:
        sizes = tuple(numpy.bincount(source.labels, minlength=classes).tolist())
    return _told(replace(_kept(fetch, source, classes, memory, notes, sizes), mixes=mixed), looked, source)


def first_samples(source: Indexed | Streamed, *, seed: int) -> list[Any]:
    """A raw batch of the data, to try a model with."""
    with seeded(seed, source.loader):
        if isinstance(source, Streamed):
            return list(islice(source.batches(), 1))
        if not len(source.positions):
            return []
        return [source.fetch(_order(source, seed)[:TRIED])]


def _order(source: Indexed, seed: int) -> Int[numpy.ndarray, " n"]:
    """All positions, in the one mixed order of a seed."""
    return source.positions[permutation(len(source.positions), seed=seed, use=ORDER)]


def _positions(
    source: Indexed, checked: Callable[[Any], Iterator[Batch]], *, classes: int, owner: str, wanted: int, seed: int
) -> tuple[Int[numpy.ndarray, " m"], int | None]:
    """Where the samples stand, in a mixed order: by labels that are known and true, or by a look at one after the other.

    And how many were looked at, where not all were and some may be missing.
    """
    order = _order(source, seed)
    if source.labels is not None:
        labels = source.labels[permutation(len(source.positions), seed=seed, use=ORDER)]
        check_range(torch.from_numpy(labels), classes, owner=owner, where=f"the {source.what} data")
        chosen = _first_of_each(labels, classes, wanted)
        some = slice(0, OWN_BATCH)
        told = [y for _, y in checked([source.fetch(order[chosen][some])])]
        if numpy.array_equal(torch.cat(told).cpu().numpy(), labels[chosen][some]):
            return numpy.asarray(order[chosen]), None
        source.labels = None  # the data set says other labels than its samples have: `target_transform`, say
    seen: list[Int[numpy.ndarray, " b"]] = []
    for start in range(0, min(len(order), max(SCANNED * wanted * classes, OWN_BATCH)), OWN_BATCH):
        part = order[start : start + OWN_BATCH]
        seen.append(torch.cat([y for _, y in checked([source.fetch(part)])]).cpu().numpy())
        counts = numpy.bincount(numpy.concatenate(seen), minlength=classes)
        if counts.min() >= wanted:
            break
    labels = numpy.concatenate(seen)
    looked = len(labels) if len(labels) < len(order) else None
    return numpy.asarray(order[_first_of_each(labels, classes, wanted)]), looked


def _first_of_each(
    labels: Int[numpy.ndarray, " n"], classes: int, wanted: int, taken: Int[numpy.ndarray, " k"] | None = None
) -> Int[numpy.ndarray, " m"]:
    """The first samples of each class, in order; `taken` have been before."""
    before = numpy.zeros(classes, dtype=numpy.int64) if taken is None else taken
    rows = [numpy.flatnonzero(labels == k)[: max(0, wanted - before[k])] for k in range(classes)]
    return numpy.sort(numpy.concatenate(rows))


def _streamed(
    batches: Iterator[Batch], *, classes: int, wanted: int, batch_size: int
) -> tuple[list[Batch], int | None]:
    """Rows of one batch after the other; and how many samples were looked at, where that may not have been all."""
    taken, looked = numpy.zeros(classes, dtype=numpy.int64), 0
    parts: list[Batch] = []
    for inputs, labels in batches:
        numbers = labels.cpu().numpy()
        chosen = _first_of_each(numbers, classes, wanted, taken)
        if len(chosen):
            parts.append(_rows(inputs, labels, torch.from_numpy(chosen).to(labels.device)))
            taken += numpy.bincount(numbers[chosen], minlength=classes)
        looked += len(numbers)
        if taken.min() >= wanted or looked >= SCANNED * wanted * classes:
            return _joined(parts, batch_size), looked
    return _joined(parts, batch_size), None


def _told(subset: Subset, looked: int | None, source: Indexed | Streamed) -> Subset:
    """The subset, with a word about classes that were not met among the `looked` samples, after which the search ended."""
    absent = [number for number, count in enumerate(subset.counts) if not count]
    if looked is None or not absent:
        return subset
    names = ", ".join(map(str, absent[:5])) + (", …" if len(absent) > 5 else "")
    kind = "in a mixed order" if isinstance(source, Indexed) else "of the stream"
    text = (
        f"Of the first {looked:,} samples {kind}, which is as far as was looked, none of the {source.what} data is of "
    )
    cure = "Pass a data set that tells its labels (`targets`), or a pair (X, Y)."
    if isinstance(source, Streamed):
        cure = "Shuffle the stream, or pass a data set that can be indexed or a pair (X, Y)."
    if len(subset.counts) - len(absent) == 1:
        raise DataError(f"{text}another class than {int(numpy.argmax(subset.counts))}. {cure}")
    note = Note(f"absent-{source.what}", f"{text}{len(absent)} of {len(subset.counts)} classes ({names}). {cure}")
    return replace(subset, notes=(*subset.notes, note))


def _rows(inputs: Inputs, labels: Int[Tensor, " b"], rows: Int[Tensor, " m"]) -> Batch:
    """Some samples of a batch: of every tensor that has a row for each."""

    def part(x: Tensor) -> Tensor:
        return x[rows.to(x.device)] if x.ndim and len(x) == len(labels) else x

    return inputs.changed(part), labels[rows]


def _joined(parts: Sequence[Batch], batch_size: int) -> list[Batch]:
    """Small batches of one shape as larger ones, up to what a reading takes at once."""
    joined: list[Batch] = []
    for inputs, labels in parts:
        last = joined[-1] if joined else None
        if last is not None and len(last[1]) + len(labels) <= batch_size and _alike(last, (inputs, labels)):
            more = iter(inputs.tensors.values())
            both = last[0].changed(lambda x, more=more: torch.cat([x, next(more)]))  # type: ignore[misc]
            joined[-1] = (both, torch.cat([last[1], labels]))
        else:
            joined.append((inputs, labels))
    return joined


def _alike(one: Batch, two: Batch) -> bool:
    """Whether two batches hold the same tensors, one row per sample, and nothing else that may differ."""
    shapes = [
        {name: x.shape[1:] if x.ndim and len(x) == len(labels) else None for name, x in inputs.tensors.items()}
        for inputs, labels in (one, two)
    ]
    plain = all(len(inputs.tensors) == len(inputs.args) + len(inputs.kwargs) for inputs, _ in (one, two))
    return plain and shapes[0] == shapes[1] and None not in shapes[0].values()


def _kept(
    batches: Callable[[], Iterator[Batch]] | list[Batch],
    source: Indexed | Streamed,
    classes: int,
    memory: int,
    notes: dict[str, Note],
    sizes: tuple[int, ...] | None = None,
) -> Subset:
    """The subset in memory, or where it does not fit, the way to fetch it again."""
    kept: list[Batch] | None = []
    counts = torch.zeros(classes, dtype=torch.int64, device="cpu")
    used, number, mark = 0, 0, Fingerprint()
    for inputs, labels in batches() if callable(batches) else batches:
        here = labels.cpu()
        counts += torch.bincount(here, minlength=classes)
        mark = mark.after(inputs, here)
        used += sum(x.numel() * x.element_size() for x in inputs.tensors.values())
        number += 1
        if used > memory:
            if not callable(batches):
                raise DataError(
                    f"The samples drawn from the {source.what} data take more than `memory={memory}` bytes, and a stream of "
                    "batches cannot be read again by parts. Pass a smaller `per_class`, or a data set that can be indexed."
                )
            kept = None
        elif kept is not None:
            kept.append((inputs, labels))
    if not number:
        raise DataError(f"The {source.what} data hold no batch. Check the loader: an empty one has nothing to measure.")
    fetch = batches if kept is None and callable(batches) else _Held(tuple(kept or ()))
    seen = mark.saved(n=int(counts.sum()), folds=0, seed=0)
    return Subset(fetch, number, tuple(counts.tolist()), f"{seen.labels}-{seen.inputs}", sizes, tuple(notes.values()))
