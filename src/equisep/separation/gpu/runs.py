"""GroupRuns: the rows of a tensor listed group by group and cut into runs of one group, without waiting for the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from equisep.shapes import Int, Shaped

KINDS = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
)  # of which float64 sums are exact, so that nothing is subtracted before
DEVICE = "cuda"
BLACKWELL = (10, 11)
SHORT = 2**15  # groups up to which keys of 16 bits sort in half the time


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """Run i: rows `order[starts[i]]` … of group `groups[i]`, `lengths[i]` of them, none beyond the last run.

    The runs of group g are those from `firsts[g]` to `firsts[g + 1]`, and have `counts[g]` rows.
    """

    order: Int[Tensor, " n"]
    starts: Int[Tensor, " m"]
    lengths: Int[Tensor, " m"]
    groups: Int[Tensor, " m"]
    firsts: Int[Tensor, " g1"]
    counts: Int[Tensor, " g"]

    @staticmethod
    def of(keys: Int[Tensor, " n"], groups: int, *, rows: int) -> GroupRuns:
        """Runs of at most so many rows; as many runs as there can be, so that their number need not be fetched."""
        n, device = keys.numel(), keys.device
        ordered, order = keys.to(torch.int16 if groups < SHORT else torch.int64).sort(stable=True)
        numbers = torch.arange(groups, device=device, dtype=ordered.dtype)
        ends = torch.searchsorted(ordered, numbers, right=True)  # g
        begins = torch.cat([ends.new_zeros(1), ends[:-1]])
        counts = ends - begins
        pieces = (counts + rows - 1) // rows
        firsts = torch.cat([ends.new_zeros(1), pieces.cumsum(0)])  # g+1
        each = torch.arange(-(-n // rows) + groups, device=device)
        group = torch.searchsorted(firsts, each, right=True).sub_(1).clamp_(max=groups - 1)
        starts = begins[group] + (each - firsts[group]) * rows
        lengths = (ends[group] - starts).clamp_(min=0, max=rows)
        return GroupRuns(order, starts, lengths, group, firsts, counts)


def kernels_fit(features: Shaped[Tensor, "n d"]) -> bool:
    """Whether the kernels can read these features: on a CUDA device, of 24 bits or fewer, rows in one piece, Triton at hand."""
    return features.dtype in KINDS and features.stride(1) == 1 and installed(features)


@cache
def _there() -> bool:
    return find_spec("triton") is not None


@cache
def multiplies(device: torch.device) -> bool:
    """Whether a GPU has products of float64 tiles: from NVIDIA's Ampere on. Older ones are left to torch."""
    return device.type != "cuda" or torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def in_tiles(device: torch.device) -> bool:
    """Whether Triton has a product of float64 tiles for a GPU: for NVIDIA's large Blackwells (10.x) its compiler fails."""
    return device.type != "cuda" or torch.cuda.get_device_capability(device)[0] not in BLACKWELL


def installed(x: Tensor) -> bool:
    """Whether kernels of our own can work where this tensor lies."""
    return x.device.type == DEVICE and _there() and multiplies(x.device)
