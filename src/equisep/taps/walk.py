"""Every module and every parameter of a model once, as torch lists them, in a fraction of its time: a reading asks often."""

from __future__ import annotations

from torch import Tensor, nn


def modules_of(model: nn.Module) -> list[nn.Module]:
    """What `model.modules()` gives, in its order."""
    found: dict[nn.Module, None] = {}
    waiting = [model]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found[module] = None
            children = module._modules
            if children:  # most have none
                waiting += [child for child in reversed(list(children.values())) if child is not None]
    return list(found)


def parameters_of(model: nn.Module) -> list[Tensor]:
    """What `model.parameters()` gives, in its order."""
    found: dict[int, Tensor] = {}
    for module in modules_of(model):
        for parameter in module._parameters.values():
            if parameter is not None:
                found.setdefault(id(parameter), parameter)
    return list(found.values())
