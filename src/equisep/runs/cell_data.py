"""What a cell learns from: its data set, its own samples and labels, its test set, prepared as it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equisep.data import (
    Dataset,
    Preparation,
    draw,
    full_per_class,
    load_data,
    named_preparation,
    prepare,
    randomize_labels,
)
from equisep.errors import DataError, InputError
from equisep.figures.cell import Training

# what stands in at smoke scale for a data set that is not there, by whether 10 × 10 is enough
SMALL, LARGE = "embedded-10x10", "embedded-28x28"


@dataclass(frozen=True, slots=True)
class Sample:
    """Positions in the training split and labels of one cell; the second sample, where there is one, begins at `first`.

    `drawn`, for a cell that asks for this reading, is the order of the walk among them; the second sample comes after the first.
    `held` are positions and labels of its validation samples, where it has any.
    """

    positions: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    first: int
    drawn: npt.NDArray[np.int64] | None = None
    held: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None


@dataclass(frozen=True, slots=True)
class CellData:
    """The samples of several cells that share a data set: a pool, each cell's rows and labels in it, and test data."""

    pool: Tensor
    pool_labels: Tensor
    rows: tuple[Tensor, ...]
    labels: tuple[Tensor, ...]
    firsts: tuple[int, ...]
    test: tuple[Tensor, Tensor]
    classes: int
    checksum: str
    drawn: tuple[Tensor | None, ...] = ()
    held: tuple[tuple[Tensor, Tensor], ...] | None = None

    def of(self, index: int) -> tuple[Tensor, Tensor]:
        """Samples and labels that one cell trains on."""
        return self.pool[self.rows[index]], self.labels[index]


def cell_data_of(
    cells: Sequence[Training], *, data_dir: str | None = None, classes: tuple[int, ...] | None = None
) -> CellData:
    """The data of cells that share data, preparation and classes; only the samples that are drawn are prepared.

    `classes` replaces those of the cells, as for the first stage of a transfer.
    """
    cell = cells[0]
    dataset = dataset_of(cell.data, data_dir)
    preparation = fitted(cell, dataset)
    chosen = classes if classes is not None else cell.classes
    samples = [sample_of(each, dataset, classes=chosen) for each in cells]
    if not all(len(sample.positions) for sample in samples):
        raise InputError("A cell has no sample to train on. Ask for `per_class` or `sizes` of 1 or more.")
    held = [sample.held for sample in samples if sample.held is not None]
    used = np.unique(np.concatenate([*(sample.positions for sample in samples), *(rows for rows, _ in held)]))
    known = range(dataset.classes) if chosen is None else chosen
    renumber = {label: index for index, label in enumerate(known)}
    names = np.array([renumber[int(label)] for label in dataset.y_train[used]], dtype=np.int64)
    return CellData(
        pool=prepare(dataset.x_train[used], preparation),
        pool_labels=torch.from_numpy(names),
        rows=tuple(torch.from_numpy(np.searchsorted(used, sample.positions)) for sample in samples),
        labels=tuple(torch.from_numpy(sample.labels) for sample in samples),
        firsts=tuple(sample.first for sample in samples),
        test=_test_of(cell.data, data_dir, preparation, chosen, cell.test_per_class),
        classes=len(known),
        checksum=dataset.checksum,
        drawn=tuple(None if sample.drawn is None else torch.from_numpy(sample.drawn) for sample in samples),
        held=tuple((torch.from_numpy(np.searchsorted(used, rows)), torch.from_numpy(names)) for rows, names in held)
        or None,
    )


def sample_of(cell: Training, dataset: Dataset, *, classes: tuple[int, ...] | None = None) -> Sample:
    """The draw of one cell by its `data_seed`: labels numbered anew within `classes`, then made noisy as it asks.

    The second sample is what a larger draw of the same seed holds beyond the first.
    """
    known = list(range(dataset.classes)) if classes is None else list(classes)
    first = _drawn(cell, dataset, known, more=0)
    positions = first
    if cell.second:
        both = _drawn(cell, dataset, known, more=cell.second)
        positions = np.concatenate([first, np.setdiff1d(both, first)])
    renumber = np.full(int(dataset.classes), -1, dtype=np.int64)
    renumber[known] = np.arange(len(known))
    labels = renumber[dataset.y_train[positions]]
    if cell.label_noise:
        labels[: len(first)] = randomize_labels(
            labels[: len(first)], share=cell.label_noise, classes=len(known), seed=cell.data_seed
        )
    if cell.second_noise:
        labels[len(first) :] = randomize_labels(
            labels[len(first) :], share=cell.second_noise, classes=len(known), seed=cell.data_seed
        )
    walked = _walked(cell, dataset, known, positions, first)
    held = _validation(cell, dataset, known, positions, renumber)
    if cell.copies is not None:
        often = _copies(cell, labels, classes=len(known))
        positions, labels = np.repeat(positions, often), np.repeat(labels, often)
        return Sample(positions, labels, len(positions), held=held)
    return Sample(positions, labels, len(first), walked, held)


def _copies(cell: Training, labels: npt.NDArray[np.int64], *, classes: int) -> npt.NDArray[np.int64]:
    """How often each sample stands in an epoch."""
    assert cell.copies is not None
    if len(cell.copies) != classes or min(cell.copies) < 1:
        raise InputError(
            f"`copies` are whole numbers from 1 on, one for each of {classes} classes; found {list(cell.copies)}."
        )
    if cell.second or "drawn" in cell.readings:
        raise InputError(
            "A cell with `copies` has one sample, and no order in which its copies were drawn. Leave out `second`, and the "
            "reading `drawn`."
        )
    return np.asarray(cell.copies, dtype=np.int64)[labels]


def _validation(
    cell: Training, dataset: Dataset, known: list[int], taken: npt.NDArray[np.int64], renumber: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """What a larger draw of the same seed holds beyond the samples that are trained on, with as many changed labels."""
    if not cell.validation:
        return None
    if cell.validation < 0 or (cell.per_class is None and cell.sizes is None):
        raise InputError(
            f"A cell asks for `validation={cell.validation}` samples per class and trains on "
            f"{'all there are' if cell.validation > 0 else 'the others'}. Give 1 or more, and `per_class` or `sizes`."
        )
    held = np.setdiff1d(_drawn(cell, dataset, known, more=cell.second + cell.validation), taken)
    labels = randomize_labels(
        renumber[dataset.y_train[held]], share=cell.label_noise, classes=len(known), seed=cell.data_seed
    )
    return held, labels


def _walked(
    cell: Training, dataset: Dataset, known: list[int], positions: npt.NDArray[np.int64], first: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64] | None:
    """The order in which the samples were drawn, for a cell that is read so: of the official set that `dataset` is a part of."""
    if "drawn" not in cell.readings:
        return None
    pool = full_per_class(dataset)
    walk = _drawn(cell, dataset, known, more=0, order="walk", pool_per_class=pool)
    if cell.second:
        both = _drawn(cell, dataset, known, more=cell.second, order="walk", pool_per_class=pool)
        walk = np.concatenate([walk, both[~np.isin(both, first)]])
    at = np.argsort(positions)
    return at[np.searchsorted(positions, walk, sorter=at)].astype(np.int64)


def _drawn(cell: Training, dataset: Dataset, known: list[int], *, more: int, **order: Any) -> npt.NDArray[np.int64]:
    if cell.sizes is not None:
        sizes = [size + more for size in cell.sizes]
        return draw(dataset.y_train, sizes=sizes, seed=cell.data_seed, classes=known, **order)
    per_class = None if cell.per_class is None else cell.per_class + more
    return draw(dataset.y_train, per_class=per_class, seed=cell.data_seed, classes=known, **order)


@lru_cache(maxsize=4)
def dataset_of(name: str, data_dir: str | None = None) -> Dataset:
    """The data set, loaded once per process."""
    local = _local(name, data_dir)
    return load_data(name, data_dir=data_dir) if local is None else local


@lru_cache(maxsize=32)
def at_hand(name: str, data_dir: str | None = None) -> bool:
    """Whether a data set can be had without the network."""
    return _local(name, data_dir) is not None


@lru_cache(maxsize=4)
def _local(name: str, data_dir: str | None) -> Dataset | None:
    """The data set as it lies here, its checksums tested once for both questions; None where it does not."""
    try:
        return load_data(name, data_dir=data_dir, download=False)
    except DataError:
        return None


def substitute_for(cell: Training) -> str:
    """The embedded images that stand in at smoke scale: those of 10 × 10 where the cell wants no larger ones."""
    size = named_preparation(cell.preparation).size
    return SMALL if size == (10, 10) else LARGE


def fitted(cell: Training, dataset: Dataset) -> Preparation:
    """The cell's preparation; gray images that stand in for color ones are used as all three channels, or as the one."""
    preparation = named_preparation(cell.preparation)
    gray = dataset.x_train.ndim == 3
    if not gray or not cell.stands_for:
        return preparation
    mean = () if preparation.normalize is None else preparation.normalize[0]
    several = isinstance(mean, tuple) and len(mean) > 1
    return replace(preparation, channels="rgb" if several else "all")


@lru_cache(maxsize=8)
def _test_of(
    name: str, data_dir: str | None, preparation: Preparation, classes: tuple[int, ...] | None, per_class: int | None
) -> tuple[Tensor, Tensor]:
    dataset = dataset_of(name, data_dir)
    known = list(range(dataset.classes)) if classes is None else list(classes)
    chosen = draw(dataset.y_test, per_class=per_class, classes=known)
    labels = np.array([known.index(int(label)) for label in dataset.y_test[chosen]], dtype=np.int64)
    return prepare(dataset.x_test[chosen], preparation), torch.from_numpy(labels)
