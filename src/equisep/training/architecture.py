"""Whether networks are of one architecture, and whether each of their parts has a stacked form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from equisep.errors import InputError, ModelError

INSTEAD = "Train these networks one after the other with `train`."


def check_alike(networks: Sequence[nn.Module]) -> None:
    """Refuse networks that differ in more than the values of weights and buffers, with the first difference."""
    if not networks:
        raise InputError("A stack needs at least one network; found none.")
    wanted = _facts(networks[0])
    for index, network in enumerate(networks):
        if network is networks[0]:
            continue
        found = _facts(network)
        for where in (*wanted, *found):
            if wanted.get(where) != found.get(where):
                raise ModelError(
                    f"Networks of one stack share an architecture; {where} is {wanted.get(where, 'not there')} in "
                    f"network 0 and {found.get(where, 'not there')} in network {index}. Train one stack for each."
                )


def check_parts(network: nn.Module, *, known: Collection[type[nn.Module]]) -> None:
    """Refuse parts that cannot be stacked: those with tensors of their own and no `known` form, ties, chance."""
    owners: dict[int, str] = {}
    for name, part in network.named_modules():
        kind = type(part).__name__
        tensors = _tensors(part)
        if tensors and type(part) not in known:
            forms = ", ".join(sorted(form.__name__ for form in known))
            raise ModelError(
                f"{_where(name)} is a {kind} and holds `{next(iter(tensors))}`, which only {forms} may in a stack. {INSTEAD}"
            )
        if isinstance(part, _DropoutNd) and part.p > 0:
            raise ModelError(f"{_where(name)} is a {kind}, which would draw other numbers than alone. {INSTEAD}")
        if isinstance(part, _BatchNorm) and part.track_running_stats and part.momentum is None:
            raise ModelError(f"{_where(name)} averages statistics without a momentum, which no stack does. {INSTEAD}")
        for entry, tensor in tensors.items():
            full = f"{name}.{entry}" if name else entry
            other = owners.setdefault(id(tensor), full)
            if other != full:
                raise ModelError(f"`{other}` and `{full}` are one tensor, which a stack would tear apart. {INSTEAD}")


def _facts(network: nn.Module) -> dict[str, str]:
    """What makes an architecture: kinds of parts, their settings, names and shapes of their tensors, in order."""
    found: dict[str, str] = {}
    for name, part in network.named_modules(remove_duplicate=False):
        found[_where(name)] = f"{type(part).__name__}({part.extra_repr()})"
        for entry, value in sorted(vars(part).items()):
            plain = value is None or isinstance(value, bool | int | float | str | tuple)
            if plain and not entry.startswith("_") and entry != "training":
                found[_where(name, entry)] = repr(value)
        for entry, tensor in {**part._parameters, **part._buffers}.items():
            found[_where(name, entry)] = "None" if tensor is None else _described(tensor)
    return found


def _described(tensor: Tensor) -> str:
    kind = str(tensor.dtype).removeprefix("torch.")
    frozen = isinstance(tensor, nn.Parameter) and not tensor.requires_grad
    return f"{kind} {tuple(tensor.shape)} on {tensor.device}" + (" (frozen)" if frozen else "")


def _tensors(part: nn.Module) -> dict[str, Any]:
    """The parameters and buffers that a part holds itself, not through its children."""
    return {name: value for name, value in {**part._parameters, **part._buffers}.items() if value is not None}


def _where(*names: str) -> str:
    path = ".".join(name for name in names if name)
    return f"`{path}`" if path else "the network"
