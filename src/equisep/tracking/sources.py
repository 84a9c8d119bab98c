"""What samples can be drawn from without a training noticing: data that can be indexed, and streams of batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, islice
from operator import index
from typing import Any

import numpy
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from equisep.data.batches import Batches
from equisep.data.feed import Feed
from equisep.data.inputs import LABELS
from equisep.data.ordered import MappedBatches, MixedLoader
from equisep.errors import DataError, EquisepError
from equisep.labels import label_vector
from equisep.measuring.distributed.control import in_group
from equisep.shapes import Int
from equisep.taps import random_state_kept

Positions = Int[numpy.ndarray, " m"]
PASSES = 2  # times as many indices as there are samples are taken from a sampler of someone's own, which may never end


@dataclass(slots=True)
class Indexed:
    """Samples by position: `fetch` makes a batch of some; `labels` of `positions`, where they are known beforehand."""

    what: str
    positions: Int[numpy.ndarray, " n"]
    fetch: Callable[[Positions], Any]
    labels: Int[numpy.ndarray, " n"] | None = None
    loader: Any = None


@dataclass(slots=True)
class Streamed:
    """Batches in a row, which can be had from the beginning again."""

    what: str
    batches: Callable[[], Iterator[Any]]
    loader: Any = None


def source_of(feed: Feed) -> Indexed | Streamed:
    """How samples are drawn from data that a feed has made batches of."""
    source = feed.source
    if isinstance(source, Batches):
        return Indexed(feed.what, _all(len(source.y)), _Rows(source.x, source.y), _numbers(source.y))
    if isinstance(source, MappedBatches):
        return Indexed(feed.what, _all(len(source.y)), _Mapped(source), _numbers(source.y))
    if isinstance(source, MixedLoader):
        return _of_loader(source.loader, feed.what)
    if isinstance(source, DataLoader):
        return _of_loader(source, feed.what)
    if not feed.again:
        raise DataError(
            f"The {feed.what} data can be read only once (they are an iterator), and what a tracker reads the training would "
            "miss. Pass the loader, the data set or a pair (X, Y)."
        )
    return Streamed(feed.what, lambda: iter(source), source)


def _of_loader(loader: DataLoader[Any], what: str) -> Indexed | Streamed:
    """A loader's data set, put into batches by its own `collate_fn`; the loader itself is left alone."""
    data: Any = loader.dataset
    collate = loader.collate_fn
    if isinstance(data, IterableDataset):
        alone = DataLoader(data, batch_size=loader.batch_size, collate_fn=collate, drop_last=bool(loader.drop_last))
        return Streamed(what, lambda: iter(alone), loader)
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        return Streamed(what, lambda: iter(loader), loader)
    if loader.batch_sampler is None:  # every entry is a batch already
        return Streamed(what, lambda: (collate(data[each]) for each in range(len(data))), loader)
    bounds = _bounds(loader, len(data))
    positions = _all(len(data)) if bounds is None else bounds
    known = _known_labels(data)
    inside = not len(positions) or (positions.min() >= -len(data) and positions.max() < len(data))
    labels = known[positions] if known is not None and inside else None
    return Indexed(what, positions, _Samples(data, collate, what), labels, loader)


def _bounds(loader: DataLoader[Any], count: int) -> Positions | None:
    """The positions that a loader may draw, each once, as its sampler has them; None where they are all, or nobody can tell."""
    batched: Any = loader.batch_sampler
    sampler: Any = batched.sampler if type(batched) is BatchSampler else None
    if isinstance(sampler, SubsetRandomSampler):
        return _whole_numbers(dict.fromkeys(map(index, sampler.indices)))
    if isinstance(sampler, WeightedRandomSampler):
        return _whole_numbers((sampler.weights > 0).nonzero().flatten().tolist())
    if isinstance(sampler, SequentialSampler | RandomSampler):
        return _all(min(count, len(sampler.data_source)))
    if isinstance(sampler, DistributedSampler) or in_group():
        return None  # what one process draws is a part that changes, and all read the same samples
    try:
        # a copy: a sampler of someone's own making may count how often it was asked, and may never end
        drawn = deepcopy(batched, {id(loader.dataset): loader.dataset})
        with seeded(0, loader):
            return numpy.unique(_whole_numbers(islice(chain.from_iterable(drawn), PASSES * count)))
    except Exception:  # it cannot be copied, or gives what only the data set understands
        return None


def _whole_numbers(indices: Iterable[Any]) -> Positions:
    """Whole numbers as an array; a TypeError where they are something else."""
    return numpy.fromiter(map(index, indices), dtype=numpy.int64)


@contextmanager
def seeded(seed: int, *owners: Any) -> Iterator[None]:
    """Random numbers of this seed for the while, then every state as it was.

    Only the CPU's: to seed a GPU that is not yet in use would change its numbers once it is.
    """
    with random_state_kept(*owners):
        torch.default_generator.manual_seed(seed)
        numpy.random.seed(seed % 2**32)  # noqa: NPY002 (data sets use it)
        random.seed(seed)
        yield


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples of a data set by position, put together by a loader's own function; no closure, so that it can be pickled."""

    data: Any
    collate: Callable[[Any], Any]
    what: str

    def __call__(self, rows: Positions) -> Any:
        chosen = rows.tolist()
        try:
            several = getattr(self.data, "__getitems__", None)
            return self.collate(several(chosen) if callable(several) else [self.data[each] for each in chosen])
        except EquisepError:
            raise
        except Exception as error:  # whatever a user's data set raises
            words = str(error).strip().partition("\n")[0]
            raise DataError(
                f"Samples {chosen[:3]} … of the {self.what} data could not be fetched: {type(error).__name__}: {words}. "
                "Correct the data set; a plain loop over it fails alike."
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows of a pair."""

    x: torch.Tensor
    y: torch.Tensor

    def __call__(self, rows: Positions) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.from_numpy(rows)
        return self.x[chosen.to(self.x.device)], self.y[chosen.to(self.y.device)]


@dataclass(frozen=True, slots=True)
class _Mapped:
    """Rows of columns by name."""

    source: MappedBatches

    def __call__(self, rows: Positions) -> Any:
        return self.source.part(torch.from_numpy(rows))


def _known_labels(data: Any) -> Int[numpy.ndarray, " n"] | None:
    """The labels that a data set tells without being read: torchvision's `targets`, tensors, a column of its own."""
    if isinstance(data, Subset):
        whole = _known_labels(data.dataset)
        return None if whole is None else whole[numpy.asarray(data.indices, dtype=numpy.int64)]
    told: Any = data.tensors[1] if isinstance(data, TensorDataset) and len(data.tensors) > 1 else None
    if told is None:
        told = getattr(data, "targets", None)
    columns = getattr(data, "column_names", None)
    if told is None and isinstance(columns, Iterable):
        name = next((name for name in LABELS if name in columns), None)
        told = None if name is None else data[name]
    if told is None:
        return None
    try:
        labels, _ = label_vector(told if hasattr(told, "dtype") else list(told))
    except (EquisepError, TypeError):
        return None
    return labels if len(labels) == len(data) else None


def _all(count: int) -> Int[numpy.ndarray, " n"]:
    return numpy.arange(count, dtype=numpy.int64)


def _numbers(labels: torch.Tensor) -> Int[numpy.ndarray, " n"]:
    numbers: Int[numpy.ndarray, " n"] = labels.cpu().numpy()
    return numbers
