"""The shape of a feed-forward network: what members of one ensemble have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from equisep.errors import InputError, ModelError
from equisep.models import Fnn, build


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that decides the parameters of an `Fnn`: hidden `widths`, inputs, classes, BatchNorm, ReLU."""

    widths: tuple[int, ...] = (100,) * 7
    inputs: int = 100
    classes: int = 10
    norm: bool = True
    activation: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))  # a list would do, but cannot be hashed
        if min(self.widths, default=1) < 1 or self.inputs < 1 or self.classes < 2:
            raise InputError(
                f"A network needs widths and inputs of at least 1 and 2 classes; found widths={list(self.widths)}, "
                f"inputs={self.inputs}, classes={self.classes}."
            )

    @staticmethod
    def deep(
        depth: int,
        *,
        width: int = 100,
        inputs: int = 100,
        classes: int = 10,
        norm: bool = True,
        activation: bool = True,
    ) -> Shape:
        """`depth` linear layers, the classifier included, with equal hidden widths."""
        if depth < 1:
            raise InputError(f"A network needs a depth of at least 1; found {depth}.")
        return Shape((width,) * (depth - 1), inputs, classes, norm, activation)

    @staticmethod
    def of(network: Fnn) -> Shape:
        """The shape of a network that exists."""
        blocks = [block for block in network.blocks if isinstance(block, nn.Sequential)]
        linears = [block.get_submodule("linear") for block in blocks]
        kinds = {type(part) for block in blocks for part in block}
        return Shape(
            widths=tuple(int(linear.out_features) for linear in linears if isinstance(linear, nn.Linear)),
            inputs=int(linears[0].in_features) if linears else network.head.in_features,  # type: ignore[arg-type]
            classes=network.head.out_features,
            norm=nn.BatchNorm1d in kinds or not blocks,
            activation=nn.ReLU in kinds or not blocks,
        )

    @property
    def depth(self) -> int:
        """L, the number of linear layers with the classifier."""
        return len(self.widths) + 1

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of every linear layer, the classifier last."""
        return tuple(pairwise((self.inputs, *self.widths, self.classes)))

    @property
    def parameters(self) -> int:
        """How many numbers one member learns: weights and biases, and two per normalized unit."""
        linear = sum(a * b + b for a, b in self.layers)
        return linear + (2 * sum(self.widths) if self.norm else 0)

    def build(self, seed: int) -> Fnn:
        """The network of this shape with the weights it gets on the CPU after `torch.manual_seed(seed)`."""
        with torch.device("cpu"):
            network = build(
                "fnn", seed=seed, depth=self.depth, widths=self.widths, inputs=self.inputs, classes=self.classes,
                norm=self.norm, activation=self.activation,
            )  # fmt: skip
        assert isinstance(network, Fnn)
        return network

    def check(self, weights: Mapping[str, Tensor], *, what: str) -> None:
        """Refuse weights of another shape, with the first name that differs."""
        wanted = {name: tuple(value.shape) for name, value in self.build(0).state_dict().items()}
        found = {name: tuple(value.shape) for name, value in weights.items()}
        for name in [*wanted, *found]:
            if wanted.get(name) != found.get(name):
                raise ModelError(
                    f"{what} has another shape than {self}: `{name}` is {found.get(name, 'not there')}, "
                    f"where {wanted.get(name, 'nothing')} is needed. Give weights of that shape."
                )

    def __str__(self) -> str:
        same = len(set(self.widths)) <= 1
        hidden = f"width {self.widths[0]}" if same and self.widths else f"widths {list(self.widths)}"
        switches = ("" if self.norm else ", no BatchNorm") + ("" if self.activation else ", no ReLU")
        return f"Fnn-{self.depth} ({self.inputs} inputs, {hidden}, {self.classes} classes{switches})"
