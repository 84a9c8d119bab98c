"""The operational modules of a model that declares none (He & Su 2023, section 2C): its layers, and its repeated blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from torch import nn
from torch.nn.modules.conv import _ConvNd

from equisep.results import Note
from equisep.taps.calls import Call
from equisep.taps.wrappers import PARAMETRIZATIONS, inner, kind_name, kind_of

_ACTIVATIONS = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish,
    nn.Softplus, nn.Softsign, nn.Tanh, nn.Sigmoid, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid,
)  # fmt: skip
_ACTIVATION_NAME = re.compile(r"relu|gelu|elu$|silu|swish|mish|tanh|softplus|activation", re.IGNORECASE)
_GATES = (nn.Sigmoid, nn.Hardsigmoid)  # beside other activations these scale features, they are none themselves
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def propose_layers(
    modules: Mapping[str, nn.Module], *, blocks: Sequence[str], calls: Sequence[Call] | None, model: str
) -> tuple[tuple[str, ...], list[Note]]:
    """Every activation; where activations are called as functions, every layer with weights but the last linear one.

    With the calls of a forward pass at hand, a layer whose output goes straight into a normalization is read after it.
    """
    leaves = _leaves(modules)
    activations = _activations(leaves)
    weighted = [name for name, module in leaves.items() if any(True for _ in module.parameters())]
    if activations and not _functional(leaves, activations, weighted, blocks=blocks, calls=calls):
        return tuple(activations), []
    linear = [name for name in weighted if isinstance(leaves[name], nn.Linear)]
    layers = [name for name in weighted if not (linear and name == linear[-1])] or weighted
    if calls is None:
        return tuple(layers), []
    normalized = {call.after for call in calls if call.after is not None and "norm" in call.kind.lower()}
    kept = tuple(name for name in layers if name not in normalized)
    text = (
        f"`{model}` has no activation modules after most of its layers (it calls them as functions, or has none): its layers are "
        "read after their weights and normalization, before the activation. The site `NAME:in` is what the layer NAME is given, "
        "after the activation before it."
    )
    return kept, [Note("functional", text)] if len(kept) > 1 else []


def _leaves(modules: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """Modules without others inside; torch's attention is one, since it never calls what is inside."""
    whole = [f"{name}." for name, module in modules.items() if isinstance(module, nn.MultiheadAttention)]
    leaves: dict[str, nn.Module] = {}
    for name, module in modules.items():
        inside = [key for key, _ in module.named_children() if key != PARAMETRIZATIONS]
        if (not inside or f"{name}." in whole) and not name.startswith(tuple(whole)):
            leaves[name] = module
    return leaves


def _activations(leaves: Mapping[str, nn.Module]) -> list[str]:
    activations = [
        name
        for name, module in leaves.items()
        if isinstance(module, _ACTIVATIONS) or _ACTIVATION_NAME.search(kind_name(module))
    ]
    plain = [name for name in activations if not isinstance(leaves[name], _GATES)]
    return plain or activations


def _functional(
    leaves: Mapping[str, nn.Module],
    activations: Sequence[str],
    weighted: Sequence[str],
    *,
    blocks: Sequence[str],
    calls: Sequence[Call] | None,
) -> bool:
    """Whether most activations are functions: blocks without any of the modules, or far more layers than activations."""
    if blocks:
        inside = [name for name in weighted if _within(name, blocks)]
        return bool(inside) and not any(_within(name, blocks) for name in activations)
    if calls is None:
        return False
    times = [call.module for call in calls]
    layers = [name for name in weighted if isinstance(leaves[name], nn.Linear | _ConvNd)]
    called = sum(times.count(name) for name in activations)
    return 2 * called < sum(times.count(name) for name in layers) - 1  # the classifier has none


def _within(name: str, blocks: Iterable[str]) -> bool:
    return any(name == block or name.startswith(f"{block}.") for block in blocks)


def propose_blocks(model: nn.Module, prefix: str = "") -> tuple[str, ...]:
    """Repeated siblings of one class that have modules inside; where several classes repeat, the one with most parameters.

    Plain containers are looked into first: the stages of a ResNet are no blocks, the residual blocks inside them are.
    """
    children = {name: inner(child) for name, child in model.named_children()}
    composite = {f"{prefix}{name}": child for name, child in children.items() if any(True for _ in child.children())}
    groups: dict[type, list[str]] = {}
    for name, child in composite.items():
        groups.setdefault(kind_of(child), []).append(name)
    repeated = [names for names in groups.values() if len(names) > 1]
    if repeated:
        names = max(repeated, key=lambda group: sum(_size(composite[name]) for name in group))
        if kind_of(composite[names[0]]) not in _CONTAINERS:
            return tuple(names)
        inside = _inside(composite, names)
        if inside:
            return inside
        if isinstance(model, nn.Sequential | nn.ModuleList):
            return tuple(names)
    return _inside(composite, composite)


def _inside(composite: Mapping[str, nn.Module], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(block for name in names for block in propose_blocks(composite[name], f"{name}."))


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
