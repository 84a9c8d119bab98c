"""Fingerprints of what a reading saw: labels and inputs in the order of the samples, however they were batched or divided."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from equisep.data.inputs import Inputs
from equisep.results import SampleOrder
from equisep.shapes import Int, Shaped

LOOKED_AT = (
    64  # numbers of each sample, evenly spread: other images, other preparation or augmentation change some of them
)
LABEL_BYTES = 8
POLYNOMIAL = 0xEDB88320  # of CRC-32, its bits in reverse


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """CRC-32 of labels and of some numbers of every sample, in their order; it does not depend on batches."""

    labels: int = 0
    inputs: int | None = 0

    def after(self, inputs: Inputs, labels: Int[Tensor, " b"]) -> Fingerprint:
        """That of one batch more."""
        parts = [_some(x) for x in inputs.tensors.values() if x.ndim and len(x) == len(labels)]
        seen = None
        if parts and self.inputs is not None:
            seen = zlib.crc32(torch.cat(parts, dim=1).cpu().numpy().tobytes(), self.inputs)
        return Fingerprint(zlib.crc32(labels.to("cpu", torch.int64).numpy().tobytes(), self.labels), seen)

    def saved(self, *, n: int, folds: int, seed: int) -> SampleOrder:
        """As it is saved, with what deals out the folds."""
        inputs = None if self.inputs is None else f"{self.inputs:08x}"
        return SampleOrder(n=n, labels=f"{self.labels:08x}", inputs=inputs, folds=folds, seed=seed)


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """The fingerprint of samples that follow each other in the whole data, from the number `first` on."""

    first: int
    samples: int
    labels: int
    inputs: int | None
    size: int  # bytes of the inputs that were looked at


def runs_of(inputs: Inputs, labels: Int[Tensor, " b"], *, first: int, step: int) -> list[Run]:
    """The runs of one batch: one, or where its samples lie apart in the whole, one for each of them."""
    parts = [_some(x) for x in inputs.tensors.values() if x.ndim and len(x) == len(labels)]
    seen = torch.cat(parts, dim=1).cpu().numpy() if parts else None
    names = labels.to("cpu", torch.int64).numpy()
    count = len(names) if step == 1 else 1
    return [
        Run(
            first=first + step * begin,
            samples=count,
            labels=zlib.crc32(names[begin : begin + count].tobytes()),
            inputs=None if seen is None else zlib.crc32(seen[begin : begin + count].tobytes()),
            size=0 if seen is None else seen[begin : begin + count].nbytes,
        )
        for begin in range(0, len(names), count)
    ]


def joined_runs(runs: Sequence[Run]) -> Fingerprint:
    """The fingerprint of all samples in their order, from those of runs in any order."""
    labels, inputs = 0, 0
    known = all(run.inputs is not None for run in runs)
    for run in sorted(runs):
        labels = _appended(labels, run.labels, LABEL_BYTES * run.samples)
        inputs = _appended(inputs, run.inputs or 0, run.size)
    return Fingerprint(labels, inputs if known and runs else None)


def _appended(one: int, two: int, size: int) -> int:
    """CRC-32 of two messages one after the other, from those of both, the second `size` bytes long.

    CRC-32 is linear over the field of two elements: what is before is carried through `size` zero bytes, and added.
    """
    carried = 0
    for bit, column in enumerate(_zeros(size)):
        if one >> bit & 1:
            carried ^= column
    return carried ^ two


@lru_cache(maxsize=256)
def _zeros(size: int) -> tuple[int, ...]:
    """The matrix, by columns, that carries a CRC-32 through `size` zero bytes."""
    result = tuple(1 << bit for bit in range(32))
    power: tuple[int, ...] = (POLYNOMIAL, *(1 << bit for bit in range(31)))  # one zero bit
    left = 8 * size
    while left:
        if left & 1:
            result = tuple(_applied(power, column) for column in result)
        power, left = tuple(_applied(power, column) for column in power), left >> 1
    return result


def _applied(matrix: tuple[int, ...], vector: int) -> int:
    total, bit = 0, 0
    while vector:
        if vector & 1:
            total ^= matrix[bit]
        vector, bit = vector >> 1, bit + 1
    return total


def _some(x: Tensor) -> Shaped[Tensor, "b m"]:
    """At most `LOOKED_AT` numbers of each sample, as float64: exact for every type of input but 64-bit whole numbers."""
    flat = x.detach().flatten(1) if x.ndim > 1 else x.detach().unsqueeze(1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).flatten(1)
    return flat[:, :: max(1, -(-flat.shape[1] // LOOKED_AT))].to(torch.float64)
