"""How a network is trained: optimizer (ours, or one of torch.optim by name), rate, schedule and seed as one frozen record."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import torch
from torch import nn

from equisep.errors import InputError, did_you_mean
from equisep.training.eager import Adam, Sgd
from equisep.user_code import split_options

NEEDS_MORE = ("LBFGS", "SparseAdam")  # a closure that is called again and again; gradients that are sparse
ELSEWHERE = {"lr": "rate", "weight_decay": "weight_decay"}  # options that a recipe has fields for
OptimizerName = Literal["sgd", "momentum", "adam"]  # of the papers; networks side by side train with these


@cache
def optimizer_names() -> Mapping[str, type[torch.optim.Optimizer]]:
    """The optimizers of torch that step on plain gradients, by their names in small letters."""
    classes = [each for each in vars(torch.optim).values() if inspect.isclass(each)]
    return {
        each.__name__.lower(): each
        for each in classes
        if issubclass(each, torch.optim.Optimizer)
        and each is not torch.optim.Optimizer
        and each.__name__ not in NEEDS_MORE
    }


@dataclass(frozen=True, slots=True)
class TorchOptimizer:
    """A class of `torch.optim` and its options; `of` reads it from text, whose case does not matter."""

    text: str
    kind: type[torch.optim.Optimizer]
    options: Mapping[str, Any]

    @staticmethod
    def of(text: str, *, beside: Iterable[str] = ()) -> TorchOptimizer:
        """The optimizer that `text` names; an unknown one is refused with its near matches, among them those `beside`."""
        name, options = split_options(text)
        known = optimizer_names()
        if name.lower() not in known:
            names = dict.fromkeys((*beside, *sorted(known)))
            raise InputError(f"No optimizer `{name}`.{did_you_mean(name.lower(), names)} Known: {', '.join(names)}.")
        kind = known[name.lower()]
        taken = list(inspect.signature(kind).parameters)[1:]
        for option in options:
            if option in ELSEWHERE:
                raise InputError(f"`{text}`: `{option}` is not an option here. Use `{ELSEWHERE[option]}`.")
            if option not in taken:
                others = [each for each in taken if each not in ELSEWHERE]
                raise InputError(
                    f"`{kind.__name__}` takes no `{option}`.{did_you_mean(option, others)} It takes {', '.join(others)}."
                )
        return TorchOptimizer(text, kind, options)

    def check(self, *, rate: float, weight_decay: float) -> None:
        """Refuse options of values that this optimizer does not take."""
        self.make([nn.Parameter(torch.zeros(2, 2, device="cpu"))], rate=rate, weight_decay=weight_decay)

    def make(self, parameters: Iterable[nn.Parameter], *, rate: float, weight_decay: float) -> torch.optim.Optimizer:
        """The optimizer over these parameters."""
        name = self.kind.__name__
        settings: dict[str, Any] = {"lr": rate, **self.options}
        if "weight_decay" in inspect.signature(self.kind).parameters:
            settings["weight_decay"] = weight_decay
        elif weight_decay:
            raise InputError(
                f"`{name}` has no weight decay, and the training asks for {weight_decay:g}. Set `weight_decay` to 0."
            )
        try:
            return self.kind(list(parameters), **settings)
        except (TypeError, ValueError, RuntimeError) as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise InputError(
                f"`{self.text}` cannot be used here: {reason}. Change its options, or take another."
            ) from error


@dataclass(frozen=True, slots=True)
class Recipe:
    """The papers' training (He & Su 2023): cross-entropy, batches of 128, 600 epochs, coupled weight decay.

    `optimizer` is `sgd`, `momentum` or `adam`, or any of `torch.optim` with its options: `AdamW`, `rmsprop,alpha=0.9`.
    The rate is divided by 1/`factor` at each of `milestones`, given as shares of the epochs.
    `seed` orders the batches (and, by convention, made the weights).

    >>> from equisep.training import Recipe
    >>> Recipe(optimizer="adam", rate=1e-3, epochs=60).batch_size
    128
    """

    optimizer: str = "adam"
    rate: float = 3e-3
    epochs: int = 600
    batch_size: int = 128
    weight_decay: float = 5e-4
    momentum: float = 0.9
    milestones: tuple[float, ...] = (1 / 3, 2 / 3)
    factor: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.of_papers:
            TorchOptimizer.of(self.optimizer, beside=get_args(OptimizerName))
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**32:
            raise InputError(f"`seed` is a whole number, 0 ≤ seed < 2³²; found {self.seed!r}.")
        for name in ("rate", "factor"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"`{name}` must be a positive number; found {value}.")
        for name in ("weight_decay", "momentum"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"`{name}` must be a number from 0 on; found {value}.")
        if self.epochs < 0 or self.batch_size < 1:
            raise InputError(
                f"Training needs epochs ≥ 0 and batch_size ≥ 1; found epochs={self.epochs}, batch_size={self.batch_size}."
            )
        if not self.of_papers:
            TorchOptimizer.of(self.optimizer).check(rate=self.rate, weight_decay=self.weight_decay)

    @property
    def of_papers(self) -> bool:
        """Whether the optimizer is one of the papers', with which networks can train side by side."""
        return self.optimizer in get_args(OptimizerName)

    def check_side_by_side(self) -> None:
        """Refuse an optimizer that ensembles do not have."""
        if not self.of_papers:
            raise InputError(
                f"Networks train side by side with {', '.join(get_args(OptimizerName))}; found `{self.optimizer}`. Use one of "
                "these, or `train`, which takes any of torch.optim."
            )

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        passed = sum(epoch >= share * self.epochs for share in self.milestones)
        return self.rate * self.factor**passed

    def check_normalized(self, n: int) -> None:
        """Refuse a number of samples of which one is left for the last batch, where BatchNorm needs two."""
        if self.batch_size == 1 or n % self.batch_size == 1:
            raise InputError(
                f"{n} samples in batches of {self.batch_size} leave a last batch of one, which BatchNorm cannot "
                "normalize. Change `batch_size` or the number of samples."
            )

    def make_optimizer(self, parameters: Iterable[nn.Parameter], *, capturable: bool = False) -> torch.optim.Optimizer:
        """Torch's own optimizer, with weight decay on every parameter; `capturable` if its steps become a CUDA graph."""
        decay = self.weight_decay
        if not self.of_papers:
            return TorchOptimizer.of(self.optimizer).make(parameters, rate=self.rate, weight_decay=decay)
        if self.optimizer == "adam":
            return Adam(parameters, lr=self.rate, weight_decay=decay, fused=True, capturable=capturable)
        momentum = self.momentum if self.optimizer == "momentum" else 0.0
        return Sgd(parameters, lr=self.rate, momentum=momentum, weight_decay=decay, fused=True)
