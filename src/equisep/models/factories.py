"""A model from code of the user's: a function, a class or an object in any importable module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from equisep.errors import ModelError, did_you_mean


def factory_model(module_name: str, attribute: str, options: Mapping[str, Any]) -> nn.Module:
    """What `module_name:attribute` makes (or is): its code is imported and run, the working folder searched first."""
    with _working_folder_importable():
        return _made(_attribute(_imported(module_name), module_name, attribute), f"{module_name}:{attribute}", options)


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    """As `python -m` would."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        needed = "" if missing == name or name.startswith(f"{missing}.") else f", which `{name}` imports"
        raise ModelError(f"No module `{missing}`{needed}. Run from the folder that holds it, or install it.") from error
    except Exception as error:
        raise ModelError(f"Importing `{name}` failed: {type(error).__name__}: {error}") from error


def _attribute(module: Any, name: str, attribute: str) -> Any:
    value = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            hint = did_you_mean(part, [entry for entry in dir(value) if not entry.startswith("_")])
            raise ModelError(f"`{name}` has no `{attribute}`.{hint}")
        value = getattr(value, part)
    return value


def _made(value: Any, spec: str, options: Mapping[str, Any]) -> nn.Module:
    if isinstance(value, nn.Module):
        if options:
            raise ModelError(f"`{spec}` is a model already: nothing is made that could take `{next(iter(options))}`.")
        return value
    if not callable(value):
        raise ModelError(f"`{spec}` should be a model or a function that makes one; it is a {type(value).__name__}.")
    call = f"{spec}({', '.join(f'{key}={given!r}' for key, given in options.items())})"
    try:
        model = value(**options)
    except Exception as error:
        raise ModelError(f"`{call}` failed: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise ModelError(f"`{call}` should return a torch.nn.Module; it returned {type(model).__name__}.")
    return model
