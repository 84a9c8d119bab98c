"""The face of a folder: its public names, each imported from its home when it is first asked for (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def on_demand(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names have these homes: a module each, or the name's own module.

    What was asked for once stays, so that it is looked up no more.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        value = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return list(sys.modules[package].__all__)

    return get, names
