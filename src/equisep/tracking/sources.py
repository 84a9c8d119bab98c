"""What samples can be drawn from without a training noticing: data that can be indexed, and streams of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch.utils.data import DataLoader, IterableDataset, Subset, SubsetRandomSampler, TensorDataset

from equisep.data.batches import Batches
from equisep.data.feed import Feed
from equisep.data.inputs import LABELS
from equisep.data.ordered import MappedBatches, MixedLoader
from equisep.errors import DataError, EquisepError
from equisep.labels import label_vector
from equisep.shapes import Int

Positions = Int[numpy.ndarray, " m"]


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
        return Indexed(
            feed.what, _all(len(source.y)), lambda rows: _rows_of(source.x, source.y, rows), _numbers(source.y)
        )
    if isinstance(source, MappedBatches):
        return Indexed(
            feed.what, _all(len(source.y)), lambda rows: source.part(torch.from_numpy(rows)), _numbers(source.y)
        )
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
        return Streamed(what, lambda: (collate(data[index]) for index in range(len(data))), loader)
    positions = _all(len(data))
    known = _known_labels(data)
    sampler = getattr(loader.batch_sampler, "sampler", None)
    if isinstance(sampler, SubsetRandomSampler):
        positions = numpy.asarray(list(sampler.indices), dtype=numpy.int64)
    labels = None if known is None else known[positions]

    def fetch(rows: Positions) -> Any:
        chosen = rows.tolist()
        try:
            several = getattr(data, "__getitems__", None)
            return collate(several(chosen) if callable(several) else [data[index] for index in chosen])
        except EquisepError:
            raise
        except Exception as error:  # whatever a user's data set raises
            words = str(error).strip().partition("\n")[0]
            raise DataError(
                f"Samples {chosen[:3]} … of the {what} data could not be fetched: {type(error).__name__}: {words}. "
                "Correct the data set; a plain loop over it fails alike."
            ) from error

    return Indexed(what, positions, fetch, labels, loader)


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


def _rows_of(x: torch.Tensor, y: torch.Tensor, rows: Positions) -> tuple[torch.Tensor, torch.Tensor]:
    index = torch.from_numpy(rows)
    return x[index.to(x.device)], y[index.to(y.device)]
