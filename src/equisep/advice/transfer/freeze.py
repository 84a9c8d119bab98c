"""A copy of a model with its first layers fixed, a new classifier, and the layers between them to be trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from equisep.advice.transfer.answer import Start
from equisep.data.inputs import Inputs
from equisep.errors import ModelError, SiteError
from equisep.measuring.forward import Calling, run_model
from equisep.taps import eager, inner, reading_mode, recorded_calls, scores_of, site_modules
from equisep.taps.calls import Call


@dataclass(frozen=True, slots=True)
class Order:
    """Which modules have run when a site is there, by one forward pass; `classifier` gives the scores from `width` features."""

    ran: Mapping[str, frozenset[str]]
    classifier: str
    width: int

    @staticmethod
    def of(model: nn.Module, inputs: Inputs, calling: Calling, sites: Sequence[str]) -> Order:
        """By the calls of a forward pass, in the order in which they end."""
        with recorded_calls(model) as calls, reading_mode(model, "eval"), eager(), torch.no_grad():
            output = run_model(inner(model), inputs, calling, what="the first batch")
            recorded = list(calls)
        name, layer = _classifier(model, recorded, output)
        ran = {}
        for site in sites:
            ended = next((i + 1 for i, call in enumerate(recorded) if call.site == site), None)
            if ended is None:
                ended = next((i for i, call in enumerate(recorded) if call.given_site == site), None)
            if ended is None:
                raise SiteError(
                    f"`{site}` is no module's output or input, so that no layers end there. Name other `sites`."
                )
            before = frozenset(call.module for call in recorded[:ended])
            if name in before:
                raise SiteError(f"`{site}` lies behind the classifier `{name}`. Name other `sites`.")
            ran[site] = before
        return Order(ran, name, layer.in_features)


def _classifier(model: nn.Module, calls: Sequence[Call], output: Any) -> tuple[str, nn.Linear]:
    """The last linear layer that is as wide as the scores."""
    scores, modules = scores_of(output), site_modules(model)
    for call in reversed(calls):
        layer = modules.get(call.module)
        if scores is not None and isinstance(layer, nn.Linear) and layer.out_features == scores.shape[1]:
            return call.module, layer
    raise ModelError(
        f"`transfer` puts a new classifier in place of the last linear layer, and none gives the scores of "
        f"`{type(inner(model)).__name__}`."
    )


class Transferred(nn.Module):
    """The copy: kept modules stay in `eval` with fixed weights, all others train; gives class scores."""

    def __init__(self, model: nn.Module, order: Order, *, keep: str | None, classes: int, start: Start) -> None:
        super().__init__()
        self.model = deepcopy(inner(model))
        modules = site_modules(self.model)
        kept = order.ran[keep] if keep is not None else frozenset()
        if start == "new":
            _renew(modules, kept, order.classifier)
        self.fixed = [modules[name] for name in modules if name in kept]
        # a module that has begun and not ended at the kept site, the model itself among them, keeps its own parameters fixed
        begun = [module for name, module in modules.items() if any(other.startswith(f"{name}.") for other in kept)]
        for parameter in self.model.parameters():
            parameter.requires_grad_(True)
        for module in (*self.fixed, *begun, *([self.model] if kept else ())):
            for parameter in module.parameters(recurse=False):
                parameter.requires_grad_(False)
        old = modules[order.classifier]
        assert isinstance(old, nn.Linear)
        head = nn.Linear(
            order.width, classes, bias=old.bias is not None, device=old.weight.device, dtype=old.weight.dtype
        )
        path, _, last = order.classifier.rpartition(".")
        setattr(self.model.get_submodule(path), last, head)
        self.train()

    @property
    def trained(self) -> int:
        """How many numbers are trained."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def train(self, mode: bool = True) -> Transferred:
        """Kept modules stay as they are used: BatchNorm by its running statistics, no dropout."""
        super().train(mode)
        for module in self.fixed:
            for each in module.modules():
                each.training = False
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Class scores."""
        scores = scores_of(self.model(x))
        assert scores is not None  # the first batch had them
        return scores


def _renew(modules: Mapping[str, nn.Module], kept: frozenset[str], classifier: str) -> None:
    """Draw the weights of all modules behind the kept ones anew, as torch's own modules do."""
    for name, module in modules.items():
        inside = any(other.startswith(f"{name}.") for other in kept)
        if name in kept or inside or name == classifier or not list(module.parameters(recurse=False)):
            continue
        renew = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
        if renew is None:
            raise ModelError(
                f"Module `{name}` ({type(module).__name__}) has no `reset_parameters`, so that it cannot get new weights. Give "
                "it one, or train on from its weights: `start='pretrained'`."
            )
        renew()
