"""Which modules of a model are read: declared sites, names, globs, or a sensible choice from the module tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torch import nn

from equisep.errors import SiteError, did_you_mean

INPUT = "input"
INPUT_MODULE = "input:1"  # the first call of a module that is itself called `input`
GRAINS = ("auto", "layers", "blocks")
Sites = str | Sequence[str]

_ACTIVATIONS = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish,
    nn.Softplus, nn.Softsign, nn.Tanh, nn.Sigmoid, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid,
)  # fmt: skip

_WILD = {"**.": r"(?:.*\.)?", "**": ".*", "*": "[^.]*", "?": "[^.]"}


def resolve_sites(model: nn.Module, sites: Sites = "auto") -> tuple[str, ...]:
    """Module names to read, the raw input first; a measurement orders them as the forward pass calls them.

    A grain (`auto`, `layers`, `blocks`) asks the model's own `sites`, or the module tree where it declares none.
    Otherwise each entry is a module name or a glob: `*` stands for one part of a dotted name, `**` for any number.
    """
    if isinstance(sites, str) and sites in GRAINS:
        names = _declared(model, sites) or _proposed(model, sites)
        if not names:
            raise SiteError(f"`{type(model).__name__}` has no module whose output could be read. Name the sites.")
        return (INPUT, *names)
    patterns = [sites] if isinstance(sites, str) else list(sites)
    known = module_names(model)
    chosen: dict[str, None] = {INPUT: None}
    for pattern in patterns:
        chosen.update(dict.fromkeys(_matches(model, pattern, known)))
    if len(chosen) == 1:
        raise SiteError(f"No site was asked for. Name modules of `{type(model).__name__}`, or use `auto`.")
    return tuple(chosen)


def module_names(model: nn.Module) -> list[str]:
    """The names of all modules inside a model, in tree order."""
    return list(site_modules(model))


def site_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Every module inside a model by site name; one called `input` is `input:1`, since `input` is the raw input."""
    return {INPUT_MODULE if name == INPUT else name: module for name, module in model.named_modules() if name}


def _matches(model: nn.Module, pattern: str, known: list[str]) -> list[str]:
    if pattern == INPUT or pattern in known:
        return [pattern]
    if "*" in pattern or "?" in pattern:
        expression = _glob(pattern)
        found = [name for name in known if expression.fullmatch(name)]
        if not found:
            raise SiteError(
                f"The glob `{pattern}` matches none of the {len(known)} modules of `{type(model).__name__}`. "
                "`equisep sites` lists them; `*` stands for one part of a name, `**` for any number."
            )
        return found
    raise SiteError(
        f"No module `{pattern}` in `{type(model).__name__}`.{did_you_mean(pattern, known)} "
        f"`equisep sites` lists all {len(known)}."
    )


def _glob(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*\.|\*\*|\*|\?)", pattern)
    return re.compile("".join(_WILD.get(part, re.escape(part)) for part in parts))


def _declared(model: nn.Module, grain: str) -> tuple[str, ...]:
    declared = getattr(model, "sites", None)
    if not isinstance(declared, Mapping):
        return ()
    return tuple(declared.get("layers" if grain == "auto" else grain, ()))


def _proposed(model: nn.Module, grain: str) -> tuple[str, ...]:
    """Blocks: repeated siblings of one class. Layers: activations, or layers with weights but for the last linear one."""
    if grain == "blocks" and (blocks := _repeated(model)):
        return blocks
    leaves = [
        (name, module) for name, module in site_modules(model).items() if not any(True for _ in module.children())
    ]
    activations = tuple(name for name, module in leaves if isinstance(module, _ACTIVATIONS))
    if activations:
        return activations
    weighted = [name for name, module in leaves if any(True for _ in module.parameters(recurse=False))]
    linear = [name for name, module in leaves if isinstance(module, nn.Linear)]
    return tuple(name for name in weighted if not (linear and name == linear[-1])) or tuple(weighted)


def _repeated(model: nn.Module) -> tuple[str, ...]:
    found: list[str] = []
    for name, module in model.named_modules():
        if any(name.startswith(f"{block}.") for block in found):
            continue
        if isinstance(module, nn.Sequential | nn.ModuleList):
            children = [(key, child) for key, child in module.named_children() if any(True for _ in child.children())]
            kinds = {type(child) for _, child in children}
            if children and len(kinds) == 1 and not kinds & {nn.Sequential, nn.ModuleList}:
                found += [f"{name}.{key}" if name else key for key, _ in children]
    return tuple(found)
