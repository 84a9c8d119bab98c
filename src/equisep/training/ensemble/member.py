"""One network of an ensemble, and the stages all of them go through, as frozen records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from equisep.errors import InputError, did_you_mean
from equisep.training.ensemble.shape import Shape
from equisep.training.recipe import Recipe

FrozenNorm = Literal["follow", "hold"]


@dataclass(frozen=True, slots=True)
class Member:
    """One network: its shape, its recipe (whose seed makes the weights and orders the batches), its data.

    `data_seed` draws its samples and its noisy labels. `label_noise` is the share of labels replaced by random ones.
    `class_weights` multiply the loss of each class; the sum is divided by the plain batch size, or by the sum of the
    weights in the batch with `weighted_mean` (torch's `cross_entropy(weight=…)`).
    """

    recipe: Recipe = field(default_factory=Recipe)
    shape: Shape = field(default_factory=Shape)
    data_seed: int = 0
    label_noise: float = 0.0
    class_weights: tuple[float, ...] | None = None
    weighted_mean: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.data_seed, bool) or not isinstance(self.data_seed, int) or self.data_seed < 0:
            raise InputError(f"`data_seed` is a whole number from 0 on; found {self.data_seed!r}.")
        if not 0 <= self.label_noise <= 1:
            raise InputError(f"`label_noise` is a share of the labels, from 0 to 1; found {self.label_noise}.")
        if self.class_weights is None:
            return
        if len(self.class_weights) != self.shape.classes:
            raise InputError(
                f"`class_weights` has {len(self.class_weights)} numbers for {self.shape.classes} classes. "
                "Give one for each class."
            )
        if not all(math.isfinite(weight) and weight >= 0 for weight in self.class_weights):
            raise InputError(f"`class_weights` are numbers from 0 on; found {list(self.class_weights)}.")
        if not any(self.class_weights):
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

    @staticmethod
    def freezing(
        bottom: int,
        *,
        depth: int,
        epochs: int = 600,
        milestones: tuple[float, ...] | None = None,
        frozen_norm: FrozenNorm = "follow",
    ) -> Stage:
        """A stage in which the first `bottom` layers of `depth` are frozen and the rest learn."""
        if not 0 <= bottom < depth:
            raise InputError(
                f"{bottom} layers cannot be frozen in a network of {depth}: at least one has to learn. "
                f"Freeze 0 to {depth - 1}."
            )
        return Stage(epochs, tuple(range(bottom + 1, depth + 1)), milestones, frozen_norm)

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


def check_members(members: Sequence[Member], stages: Sequence[Stage]) -> tuple[Shape, tuple[Stage, ...]]:
    """The common shape and the stages, once it is sure that these members can be trained side by side."""
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
    return first.shape, tuple(stages)
