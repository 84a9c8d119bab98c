"""Fingerprints of what a reading saw: labels and inputs in the order of the samples, however they were batched."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.data.inputs import Inputs
from equisep.results import SampleOrder
from equisep.shapes import Int, Shaped

LOOKED_AT = (
    64  # numbers of each sample, evenly spread: other images, other preparation or augmentation change some of them
)


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


def _some(x: Tensor) -> Shaped[Tensor, "b m"]:
    """At most `LOOKED_AT` numbers of each sample, as float64: exact for every type of input but 64-bit whole numbers."""
    flat = x.detach().flatten(1) if x.ndim > 1 else x.detach().unsqueeze(1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).flatten(1)
    return flat[:, :: max(1, -(-flat.shape[1] // LOOKED_AT))].to(torch.float64)
