"""How the training kernel sees a stack: one padded row per member, a plan of layers, the sizes it is compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

from equisep.shapes import Float, Int
from equisep.training.ensemble.member import Shape
from equisep.training.ensemble.passes import Plan
from equisep.training.ensemble.stack import Stack, row

BATCH, LEAD, WARPS = 128, 132, 8  # as in the source: samples of a batch, numbers between units of a buffer
WIDEST, MOST_CLASSES, MOST_LAYERS = 128, 16, 64
PLAIN, BY_BATCH, HELD = 0, 1, 2  # how a layer normalizes
FIELDS, HEADER = 10, 16  # numbers of a layer and of the header in the plan
SMALL_BYTES = 4 * 64 + 2 * 4 * BATCH  # sums; positions and labels of a batch


def rounded(units: int) -> int:
    """Up to a multiple of 4, the numbers of one 16-byte access."""
    return (units + 3) // 4 * 4


def quotient_up(a: int, b: int) -> int:
    """A / b, rounded up."""
    return -(-a // b)


def across(chunk: int) -> int:
    """The numbers between rows of so many that tensor cores read across: an odd multiple of 8, for all banks."""
    return 8 * (quotient_up(chunk, 8) | 1)


def obstacle(shape: Shape, batch_size: int) -> str | None:
    """Why the kernel cannot train networks of this shape, or None."""
    if not shape.widths:
        return "a network without hidden layers has nothing to keep on the chip"
    if max(shape.widths) > WIDEST:
        return f"the kernel has room for widths up to {WIDEST}, and a layer has {max(shape.widths)}"
    if shape.classes > MOST_CLASSES:
        return f"the kernel has room for {MOST_CLASSES} classes, and there are {shape.classes}"
    if shape.depth > MOST_LAYERS:
        return f"the kernel has room for {MOST_LAYERS} layers, and there are {shape.depth}"
    if batch_size > BATCH:
        return f"the kernel has room for batches of {BATCH}, and these are of {batch_size}"
    return None


@dataclass(frozen=True, slots=True)
class Build:
    """What the kernel is compiled for; networks of any depth share a build."""

    columns: int  # units of a layer that one warp computes
    classes: int
    chunk: int  # inputs of a product that are in shared memory at a time
    stride: int  # between the rows of weights there: an odd multiple of 4, so that lanes meet all banks
    x_rows: int
    d_rows: int
    cluster: int  # blocks that train one member
    resident: int  # blocks that share a multiprocessor
    tf32: bool = False  # products by tensor cores, of factors rounded to 10 bits

    @staticmethod
    def of(shape: Shape, *, cluster: int = 1, resident: int = 1, tf32: bool = False) -> Build:
        """The build for networks of this shape."""
        widest = max(shape.widths)
        pieces = quotient_up(shape.inputs, WIDEST)
        chunk = max(rounded(widest), rounded(quotient_up(shape.inputs, pieces)))
        stride = chunk if chunk // 4 % 2 else chunk + 4
        columns = quotient_up(quotient_up(widest, cluster), WARPS)
        # rows that lanes read beyond the last unit are thrown away, but have to be there
        beyond = (WARPS - 1) * columns + (8 * quotient_up(columns, 8) if tf32 else columns)
        lead = BATCH if tf32 else LEAD
        weights = quotient_up(max(beyond, shape.classes) * stride, lead)
        d_rows = max(rounded(widest), weights)
        # those of the layer above stand there as they are, or turned round
        above = max(widest, rounded(shape.classes)) * across(chunk) if tf32 else weights * lead
        x_rows = max(chunk, WARPS * shape.classes, quotient_up(above, lead))
        return Build(columns, shape.classes, chunk, stride, x_rows, d_rows, cluster, resident, tf32)

    @property
    def lead(self) -> int:
        """Numbers between the rows of a buffer; those of tensor cores are turned instead of padded."""
        return BATCH if self.tf32 else LEAD

    @property
    def options(self) -> dict[str, int]:
        """The names that the source has for these."""
        names = ("columns", "classes", "chunk", "stride", "x_rows", "d_rows", "cluster", "resident", "tf32")
        return {name.upper(): int(getattr(self, name)) for name in names}

    def shared_bytes(self, depth: int) -> int:
        """Shared memory of one block."""
        # the row of D that a warp may read
        last = (self.cluster - 1) * quotient_up(self.d_rows, self.cluster) + WARPS * self.columns + 16 * self.tf32
        rows = max(self.x_rows + max(self.d_rows + rounded(self.classes), last), 4 * 32)
        return 4 * self.lead * rows + SMALL_BYTES + 4 * FIELDS * depth


@dataclass(frozen=True)
class Layout:
    """Where everything lies in a member's row and in its scratch memory, in numbers."""

    shape: Shape
    build: Build

    @cached_property
    def _starts(self) -> tuple[tuple[tuple[int, int], ...], int]:
        """(weights, vectors) of every layer, and the length of a row; vectors are bias, scale, shift, mean, variance."""
        starts, at = [], 0
        for inputs, outputs in self.shape.layers:
            vectors = at + outputs * rounded(inputs)
            starts.append((at, vectors))
            at = vectors + 5 * rounded(outputs)
        return tuple(starts), at

    @property
    def length(self) -> int:
        """Numbers of a member's row."""
        return self._starts[1]

    @cached_property
    def _scratch(self) -> tuple[tuple[tuple[int, int], ...], int]:
        """(linear outputs, what they are normalized by) of every hidden layer, and where slopes are exchanged."""
        starts, at = [], 0
        for outputs in self.shape.widths:
            starts.append((at, at + outputs * BATCH))
            at += outputs * BATCH + 4 * rounded(outputs)
        return tuple(starts), at

    @property
    def scratch(self) -> int:
        """Numbers of a member's scratch memory."""
        return self._scratch[1] + 2 * self.build.d_rows * BATCH

    def plan(self, plan: Plan, numbers: dict[str, int]) -> Int[Tensor, " _"]:
        """The header with these numbers of a launch, and one row a layer."""
        values = {
            "layers": self.shape.depth, "lowest": plan.lowest, "row": self.length, "scratch": self.scratch,
            "exchange": self._scratch[1], "relu": int(self.shape.activation), **numbers,
        }  # fmt: skip
        order = (
            "layers", "lowest", "n", "batch", "epochs", "members", "orders", "row", "scratch", "exchange", "relu", "weighted",
            "weighted_mean", "adjusted", "steps_before",
        )  # fmt: skip
        table = [values[name] for name in order] + [0]
        for layer, (inputs, outputs) in enumerate(self.shape.layers):
            hidden = layer < self.shape.depth - 1
            mode = PLAIN if not (hidden and self.shape.norm) else HELD if plan.held[layer] else BY_BATCH
            z, norm = self._scratch[0][layer] if hidden else (0, 0)
            table += [inputs, outputs, rounded(inputs), *self._starts[0][layer], z, norm, plan.learning[layer], mode, 0]
        return torch.tensor(table, dtype=torch.int32, device="cpu")

    def pack(self, stack: Stack) -> Float[Tensor, "m r"]:
        """The rows of all members."""
        rows = stack.theta.new_zeros(stack.members, self.length)
        rows[:, self._positions(stack.theta.device)] = stack.theta
        for place, values in self._running(stack):
            rows[:, place] = values.view(stack.members, -1)
        return rows

    def unpack(self, rows: Float[Tensor, "m r"], stack: Stack) -> None:
        """The rows back into the stack."""
        torch.index_select(rows, 1, self._positions(rows.device), out=stack.theta)
        for place, values in self._running(stack):
            values.view(stack.members, -1).copy_(rows[:, place])

    def _positions(self, device: torch.device) -> Int[Tensor, " p"]:
        return _positions(self.shape).to(device)

    def _running(self, stack: Stack) -> list[tuple[slice, Tensor]]:
        kept = []
        for layer, (mean, var) in enumerate(zip(stack.running_mean, stack.running_var, strict=True)):
            outputs, vectors = self.shape.widths[layer], self._starts[0][layer][1]
            for index, values in enumerate((mean, var), start=3):
                start = vectors + index * rounded(outputs)
                kept.append((slice(start, start + outputs), values))
        return kept


def bytes_needed(shape: Shape, optimizer: str, n: int) -> int:
    """What one member takes on the device while the kernel trains it, in batches of any size.

    Its row and moments, scratch memory, its row of the stack; positions and labels as the stack and as the kernel have
    them, and its order of one epoch.
    """
    layout = Layout(shape, Build.of(shape))
    rows = {"sgd": 1, "momentum": 2, "adam": 3}[optimizer]
    kept = shape.parameters + 2 * sum(shape.widths) + 2 * shape.classes + 16  # and settings, rates, sums of an epoch
    return 4 * (rows * layout.length + layout.scratch + kept) + n * (2 * 8 + 2 * 4 + 4)


@cache
def _positions(shape: Shape) -> Int[Tensor, " p"]:
    """For every parameter of a stack's row its position in the padded row."""
    starts = Layout(shape, Build.of(shape))._starts[0]
    parts, vector = [], 0
    for entry in row(shape):
        weight, vectors = starts[entry.layer]
        if len(entry.shape) == 2:
            outputs, inputs = entry.shape
            across = torch.arange(outputs, device="cpu").unsqueeze(1) * rounded(inputs)
            parts.append((weight + across + torch.arange(inputs, device="cpu")).flatten())
            vector = 0
        else:
            outputs = entry.shape[0]
            parts.append(vectors + vector * rounded(outputs) + torch.arange(outputs, device="cpu"))
            vector += 1
    return torch.cat(parts)
