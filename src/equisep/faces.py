"""The face of a folder: its public names, each imported from its home when it is first asked for (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def on_demand(
    package: str, homes: Mapping[str, str], *, loaded: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package: its modules with their public names, and names `loaded` already.

    A name that is a module's own stands for the module. What was asked for once stays, so that it is looked up no more.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}
    everything = sorted({*home_of, *loaded})

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(f"{package}.{home_of[name]}")
        value = home if home_of[name] == name else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: list(everything), everything
