"""Optimizers of `torch.optim` by name, options behind it: `AdamW`, `rmsprop,alpha=0.9`, `adam,betas=[0.8,0.99]`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from equisep.errors import InputError, did_you_mean
from equisep.user_code import split_options

NEEDS_MORE = ("LBFGS", "SparseAdam")  # a closure that is called again and again; gradients that are sparse
ELSEWHERE = {"lr": "rate", "weight_decay": "weight_decay"}  # options that a recipe has fields for


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
