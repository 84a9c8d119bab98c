"""The tap: forward hooks that hand every activation on inside the hook, and always come off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from equisep.errors import InputError, SiteError
from equisep.shapes import Shaped
from equisep.taps.modes import Mode, random_state_kept, reading_mode
from equisep.taps.sites import INPUT, Sites, resolve_sites, site_modules

Consume = Callable[[str, Tensor], None]
"""Called as `consume(site, features)` with features of shape b × d, the moment the module has computed them."""


@contextmanager
def tap(model: nn.Module, sites: Sites = "auto", *, consume: Consume, mode: Mode = "eval") -> Iterator[tuple[str, ...]]:
    """Read activations of a model while the `with` lasts; run the model inside it as usual.

    >>> with tap(model, ["blocks.*"], consume=lambda site, features: print(site, features.shape)):
    ...     model(x)

    `consume` sees each activation flattened to b × d before any later layer runs, so an in-place activation cannot
    overwrite it; what it wants to keep it must copy. The raw input comes first, as site `input`. A module called more
    than once in a forward pass gives one site a call: `relu`, then `relu:2`, …. Flags and global random states are
    given back at the end.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"`tap` reads a torch.nn.Module; found {type(model).__name__}.")
    names = resolve_sites(model, sites)
    calls: Counter[str] = Counter()
    modules = site_modules(model)

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.clear()
        consume(INPUT, features_of((*args, kwargs), site=INPUT))

    def after(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            calls[name] += 1
            site = name if calls[name] == 1 else f"{name.removesuffix(':1')}:{calls[name]}"
            consume(site, features_of(output, site=site))

        return hook

    with ExitStack() as stack:
        stack.enter_context(random_state_kept())
        stack.enter_context(reading_mode(model, mode))
        stack.callback(model.register_forward_pre_hook(before, with_kwargs=True, prepend=True).remove)
        for name in names:
            if name != INPUT:
                stack.callback(modules[name].register_forward_hook(after(name)).remove)
        yield names


def features_of(output: Any, *, site: str) -> Shaped[Tensor, "b d"]:
    """The first tensor of what a module took or returned, flattened to one row a sample."""
    found = first_tensor(output)
    if found is None:
        raise SiteError(f"Site `{site}` gives no tensor but {type(output).__name__}. Choose another site.")
    return found.detach().flatten(1) if found.ndim > 1 else found.detach().reshape(-1, 1)


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in a tensor, tuple, list or mapping, depth first."""
    if isinstance(value, Tensor):
        return value
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return next((found for entry in entries if (found := first_tensor(entry)) is not None), None)
