"""Stack: the parameters of many networks of one shape, one row per member, and their BatchNorm statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from equisep.shapes import Float, Int
from equisep.training.ensemble.member import Shape

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Entry:
    """One parameter tensor of a member: its layer (from 0), its name in the state dict, its place in the row."""

    layer: int
    name: str
    shape: tuple[int, ...]
    start: int
    stop: int


@cache
def row(shape: Shape) -> tuple[Entry, ...]:
    """Where the parameters of one member lie in its row: layer after layer, each as weight, bias, scale, shift."""
    entries: list[Entry] = []
    for layer, (inputs, outputs) in enumerate(shape.layers):
        hidden = layer < shape.depth - 1
        linear = f"blocks.{layer}.linear" if hidden else "head"
        tensors: list[tuple[str, tuple[int, ...]]] = [
            (f"{linear}.weight", (outputs, inputs)),
            (f"{linear}.bias", (outputs,)),
        ]
        if hidden and shape.norm:
            tensors += [(f"blocks.{layer}.norm.weight", (outputs,)), (f"blocks.{layer}.norm.bias", (outputs,))]
        for name, sizes in tensors:
            start = entries[-1].stop if entries else 0
            entries.append(Entry(layer, name, sizes, start, start + math.prod(sizes)))
    return tuple(entries)


def segments(shape: Shape, learning: Sequence[bool]) -> list[tuple[int, int]]:
    """The stretches of a row whose layers learn, neighbors joined."""
    stretches: list[tuple[int, int]] = []
    for entry in row(shape):
        if not learning[entry.layer]:
            continue
        if stretches and stretches[-1][1] == entry.start:
            stretches[-1] = (stretches[-1][0], entry.stop)
        else:
            stretches.append((entry.start, entry.stop))
    return stretches


def vector_positions(shape: Shape, members: int, learning: Sequence[bool] | None = None) -> Int[Tensor, " v"]:
    """Positions of every bias, scale and shift (of learning layers) in the flattened stack: by layer, name, member."""
    first = torch.arange(members, device="cpu") * shape.parameters  # m
    positions = [
        (first.unsqueeze(1) + torch.arange(entry.start, entry.stop, device="cpu")).flatten()
        for entry in row(shape)
        if len(entry.shape) == 1 and (learning is None or learning[entry.layer])
    ]
    return torch.cat(positions)


@dataclass(frozen=True, slots=True)
class Stack:
    """m networks of one shape. `theta` holds one row of all parameters per member, so that an optimizer steps it in one go.

    `vectors` lists the positions, in the flattened `theta`, of all biases, scales and shifts, layer by layer and within
    a layer member by member: one gather makes them contiguous, which torch's BatchNorm kernels need.
    `running_mean`, `running_var` and `tracked` have one entry a hidden layer (none without BatchNorm), members side by side, so
    that one call of torch's own BatchNorm serves all members: m·d channels.
    """

    shape: Shape
    theta: Float[Tensor, "m p"]
    running_mean: tuple[Float[Tensor, " _"], ...]
    running_var: tuple[Float[Tensor, " _"], ...]
    tracked: Int[Tensor, "h m"]
    vectors: Int[Tensor, " v"]

    @staticmethod
    def of(weights: Sequence[Weights], shape: Shape, *, device: torch.device, dtype: torch.dtype) -> Stack:
        """The stack of these state dicts, one per member; equal ones may be the same object, which is then read once."""
        flat: dict[int, Tensor] = {}
        for state in weights:
            if id(state) not in flat:
                flat[id(state)] = torch.cat([state[entry.name].detach().flatten().cpu() for entry in row(shape)])
        theta = torch.stack([flat[id(state)] for state in weights]).to(device, dtype)
        norms = range(len(shape.widths)) if shape.norm else range(0)

        def joined(name: str) -> tuple[Tensor, ...]:
            return tuple(
                torch.cat([state[f"blocks.{layer}.norm.{name}"].detach().cpu() for state in weights]).to(device, dtype)
                for layer in norms
            )

        tracked = [[int(state[f"blocks.{layer}.norm.num_batches_tracked"]) for state in weights] for layer in norms]
        return Stack(
            shape=shape,
            theta=theta,
            running_mean=joined("running_mean"),
            running_var=joined("running_var"),
            tracked=torch.tensor(tracked, dtype=torch.int64, device="cpu").view(len(norms), len(weights)),
            vectors=vector_positions(shape, len(weights)).to(device),
        )

    @property
    def members(self) -> int:
        """m, the number of networks."""
        return self.theta.shape[0]

    def weight(self, layer: int, *, of: Tensor | None = None) -> Float[Tensor, "m o i"]:
        """The weight matrices of one layer (counted from 0), or the same place in another tensor of theta's shape."""
        inputs, outputs = self.shape.layers[layer]
        start = _weight_start(self.shape, layer)
        source = self.theta if of is None else of
        return source[:, start : start + inputs * outputs].view(self.members, outputs, inputs)

    def state(self, member: int) -> dict[str, Tensor]:
        """The state dict that an ordinary `Fnn` loads."""
        values = self.theta[member].detach().cpu()
        tensors = {entry.name: values[entry.start : entry.stop].view(entry.shape).clone() for entry in row(self.shape)}
        for layer, (mean, var) in enumerate(zip(self.running_mean, self.running_var, strict=True)):
            norm = f"blocks.{layer}.norm"
            tensors[f"{norm}.running_mean"] = mean.view(self.members, -1)[member].detach().cpu().clone()
            tensors[f"{norm}.running_var"] = var.view(self.members, -1)[member].detach().cpu().clone()
            tensors[f"{norm}.num_batches_tracked"] = self.tracked[layer, member].clone()
        return tensors

    def on(self, device: torch.device) -> Stack:
        """The same stack on another device."""
        return Stack(
            shape=self.shape,
            theta=self.theta.to(device),
            running_mean=tuple(mean.to(device) for mean in self.running_mean),
            running_var=tuple(var.to(device) for var in self.running_var),
            tracked=self.tracked,
            vectors=self.vectors.to(device),
        )


@cache
def _weight_start(shape: Shape, layer: int) -> int:
    """Where a layer's weight matrix begins; it stands first of the layer's parameters."""
    return next(entry.start for entry in row(shape) if entry.layer == layer)
