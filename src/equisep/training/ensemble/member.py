"""What an ensemble is made of: the shape its networks share, each member, and the stages all of them go through."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from equisep.errors import InputError, ModelError, did_you_mean
from equisep.models import Fnn, build
from equisep.training.recipe import Recipe

FrozenNorm = Literal["follow", "hold"]


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
                "fnn",
                seed=seed,
                depth=self.depth,
                widths=self.widths,
                inputs=self.inputs,
                classes=self.classes,
                norm=self.norm,
                activation=self.activation,
            )
        assert isinstance(network, Fnn)
        return network

    def check(self, weights: Mapping[str, Tensor], *, what: str) -> None:
        """Refuse weights of another shape, with the first name that differs."""
        wanted = {name: tuple(value.shape) for name, value in self.build(0).state_dict().items()}
        given = {name: tuple(value.shape) for name, value in weights.items()}
        for name in [*wanted, *given]:
            if wanted.get(name) != given.get(name):
                raise ModelError(
                    f"{what} has another shape than {self}: `{name}` is {given.get(name, 'not there')}, "
                    f"where {wanted.get(name, 'nothing')} is needed. Give weights of that shape."
                )

    def __str__(self) -> str:
        same = len(set(self.widths)) <= 1
        hidden = f"width {self.widths[0]}" if same and self.widths else f"widths {list(self.widths)}"
        switches = ("" if self.norm else ", no BatchNorm") + ("" if self.activation else ", no ReLU")
        return f"Fnn-{self.depth} ({self.inputs} inputs, {hidden}, {self.classes} classes{switches})"


@dataclass(frozen=True, slots=True)
class Member:
    """One network: its shape, its recipe (whose seed makes the weights and orders the batches), its data.

    `data_seed` draws its samples and its noisy labels. `label_noise` is the share of labels replaced by random ones.
    `class_weights` multiply the loss of each class; the sum is divided by the plain batch size, or by the sum of the
    weights in the batch with `weighted_mean` (torch's `cross_entropy(weight=…)`). `logit_adjustment` is added to the
    scores in the loss alone, one number per class (Menon et al. 2021: log of the class shares); answers go without it.

    >>> from equisep.training import Member, Recipe, Shape
    >>> member = Member(Recipe(epochs=20, seed=1), Shape.deep(4), data_seed=1)
    >>> member.shape.widths
    (100, 100, 100)
    """

    recipe: Recipe = field(default_factory=Recipe)
    shape: Shape = field(default_factory=Shape)
    data_seed: int = 0
    label_noise: float = 0.0
    class_weights: tuple[float, ...] | None = None
    weighted_mean: bool = False
    logit_adjustment: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self.recipe.check_side_by_side()
        if isinstance(self.data_seed, bool) or not isinstance(self.data_seed, int) or self.data_seed < 0:
            raise InputError(f"`data_seed` is a whole number from 0 on; found {self.data_seed!r}.")
        if not 0 <= self.label_noise <= 1:
            raise InputError(f"`label_noise` is a share of the labels, from 0 to 1; found {self.label_noise}.")
        for name in ("class_weights", "logit_adjustment"):
            own = getattr(self, name)
            if own is not None and len(own) != self.shape.classes:
                raise InputError(
                    f"`{name}` has {len(own)} numbers for {self.shape.classes} classes. Give one for each class."
                )
        if self.class_weights is not None:
            check_class_weights(self.class_weights)
        if self.logit_adjustment is not None and not all(map(math.isfinite, self.logit_adjustment)):
            raise InputError(f"`logit_adjustment` are finite numbers; found {list(self.logit_adjustment)}.")


def check_class_weights(weights: Sequence[float]) -> None:
    """Refuse weights of classes that are no weights, or leave nothing to learn."""
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise InputError(f"`class_weights` are numbers from 0 on; found {list(weights)}.")
    if not any(weights):
        raise InputError("`class_weights` are all 0, so that there is nothing to learn. Give one above 0.")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of training: which layers learn, for how long, on which schedule.

    `trains` numbers the layers that learn, 1 … L, the classifier being L; None is all. The other layers are frozen:
    their weights, biases and BatchNorm scales stay bit-identical. `milestones` replace those of every member's recipe;
    an empty tuple keeps the rate constant. `frozen_norm` rules their BatchNorm statistics:
    `follow` normalizes by the batch and lets running statistics go on following it, as torch does for a module in
    training mode whose parameters ask for no gradient; `hold` normalizes by the running statistics and leaves them.
    Every stage has an optimizer of its own and orders its batches from the member's seed anew, as separate calls of
    `train` would. With `leaky` it goes on with the optimizer of the stage before, which then still steps the layers
    that learned there and are frozen now: gradient zero, but weight decay and old moments move them, as a loop does
    that zeroes gradients instead of dropping them.
    """

    epochs: int = 600
    trains: tuple[int, ...] | None = None
    milestones: tuple[float, ...] | None = None
    frozen_norm: FrozenNorm = "follow"
    leaky: bool = False

    def __post_init__(self) -> None:
        if self.frozen_norm not in get_args(FrozenNorm):
            hint = did_you_mean(str(self.frozen_norm), get_args(FrozenNorm))
            raise InputError(f"No rule `{self.frozen_norm}` for frozen BatchNorm.{hint} Known: follow, hold.")
        if self.trains is not None and not self.trains:
            raise InputError("A stage needs a layer that learns; `trains` is empty. Leave it out to train all.")
        self.recipe(Recipe())  # which checks the rest

    def recipe(self, recipe: Recipe) -> Recipe:
        """A member's recipe with this stage's length and schedule."""
        milestones = recipe.milestones if self.milestones is None else self.milestones
        return replace(recipe, epochs=self.epochs, milestones=milestones)

    def learning(self, depth: int) -> tuple[bool, ...]:
        """Whether each of `depth` layers learns."""
        if self.trains is None:
            return (True,) * depth
        strange = [layer for layer in self.trains if not 1 <= layer <= depth]
        if strange:
            raise InputError(f"A stage trains layer {strange[0]} of a network of {depth}. Layers are 1 to {depth}.")
        return tuple(layer in self.trains for layer in range(1, depth + 1))


def check_members(members: Sequence[Member], stages: Sequence[Stage]) -> Shape:
    """The common shape, once it is sure that these members can be trained side by side, in these stages."""
    if not members:
        raise InputError("An ensemble needs at least one member; found none.")
    first = members[0]
    for index, member in enumerate(members):
        if member.shape != first.shape:
            raise InputError(
                f"Members of one ensemble share a shape; member 0 is {first.shape}, member {index} is {member.shape}. "
                "Train one ensemble for each shape."
            )
        for name in ("batch_size", *(() if stages else ("epochs",))):
            if getattr(member.recipe, name) != getattr(first.recipe, name):
                raise InputError(
                    f"Members of one ensemble share `{name}`; member 0 has {getattr(first.recipe, name)}, "
                    f"member {index} has {getattr(member.recipe, name)}. Train one ensemble for each."
                )
    for index, stage in enumerate(stages):
        stage.learning(first.shape.depth)
        if stage.leaky and index == 0:
            raise InputError("The first stage cannot be `leaky`: there is no optimizer before it to go on with.")
    return first.shape
