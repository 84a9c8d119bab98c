"""Watching single sites of one forward pass: what a module gives, or is given, the moment it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import nn

from equisep.errors import SiteError
from equisep.taps.names import INPUT, module_of, port_of
from equisep.taps.wrappers import site_modules

Seen = Callable[[Any], None]


@contextmanager
def watched(model: nn.Module, sites: Mapping[str, Seen]) -> Iterator[None]:
    """Hand what each site gives to its function, during one forward pass inside the `with`.

    No flag is touched, nothing is copied or kept: the forward pass stays what it is, for tracing and for timing too. A function
    may raise, which ends the forward pass.
    """
    modules = site_modules(model)
    wanted: dict[str, dict[int, Seen]] = {}
    for site, seen in sites.items():
        if site == INPUT:
            raise SiteError("The raw input `input` is no module. Name a module of the model.")
        port, number = port_of(site, modules)
        wanted.setdefault(port, {})[number] = seen
    counts: Counter[str] = Counter()

    def called(port: str, value: Any) -> None:
        counts[port] += 1
        seen = wanted[port].get(counts[port])
        if seen is not None:
            seen(value)

    with ExitStack() as stack:
        for port in wanted:
            module = modules[module_of(port, modules)]
            if port in modules:
                stack.callback(module.register_forward_hook(_behind(port, called)).remove)
            else:
                stack.callback(module.register_forward_pre_hook(_before(port, called), with_kwargs=True).remove)
        yield


def _behind(port: str, called: Callable[[str, Any], None]) -> Callable[[nn.Module, Any, Any], None]:
    def hook(module: nn.Module, args: Any, output: Any) -> None:
        called(port, output)

    return hook


def _before(port: str, called: Callable[[str, Any], None]) -> Callable[[nn.Module, Any, Any], None]:
    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        called(port, (*args, kwargs))

    return hook
