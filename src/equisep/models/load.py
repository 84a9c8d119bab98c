"""Models by name: a factory in any importable module, and weights from a checkpoint file."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from equisep.errors import ModelError, did_you_mean

PREFIXES = ("module.", "_orig_mod.", "model.")  # what DataParallel, torch.compile and Lightning put before every name
WRAPPERS = ("state_dict", "model_state_dict", "model", "net")  # where trainers put the weights inside a checkpoint


def load_model(spec: str, *, checkpoint: str | Path | None = None) -> nn.Module:
    """The model that `pkg.module:factory` makes (or is), with the weights of a checkpoint where one is given.

    This imports and runs the code that the spec names; the working folder is searched as `python -m` would.
    Checkpoints are read with `weights_only=True`: they can hold tensors, never code.
    """
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute:
        raise ModelError(
            f"`--model` takes pkg.module:factory; found `{spec}`. For example `equisep.models:Fnn`, or `mynet:make_model`."
        )
    with _working_folder_importable():
        model = _made(_attribute(_imported(module_name), module_name, attribute), spec)
    if checkpoint is not None:
        load_weights(model, checkpoint)
    return model


@contextmanager
def _working_folder_importable() -> Iterator[None]:
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


def _made(value: Any, spec: str) -> nn.Module:
    if isinstance(value, nn.Module):
        return value
    if not callable(value):
        raise ModelError(f"`{spec}` should be a model or a function that makes one; it is a {type(value).__name__}.")
    try:
        model = value()
    except Exception as error:
        raise ModelError(f"`{spec}()` failed: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise ModelError(f"`{spec}()` should return a torch.nn.Module; it returned {type(model).__name__}.")
    return model


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load a state dict, or a checkpoint that wraps one, into a model; every key must fit."""
    source = Path(path)
    if not source.is_file():
        raise ModelError(f"No checkpoint at `{source}`.")
    try:
        content = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files raise whatever the reader trips over
        first = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")[0].split(". ")[0]
        raise ModelError(
            f"`{source}` cannot be read as a checkpoint of plain weights ({first}). "
            "Save it again with `torch.save(model.state_dict(), path)`."
        ) from error
    expected = model.state_dict()
    weights = _unprefixed(_state_dict(content, source), expected)
    # checkpoints older than torch 1.0 do not count batches; torch itself fills the counts in
    weights |= {
        key: value for key, value in expected.items() if key.endswith(".num_batches_tracked") and key not in weights
    }
    missing = [key for key in expected if key not in weights]
    strange = [key for key in weights if key not in expected]
    if missing or strange:
        raise ModelError(
            f"`{source}` does not fit `{type(model).__name__}`: {len(missing)} keys are missing{_few(missing)}, "
            f"{len(strange)} unexpected{_few(strange)}."
        )
    for key, value in weights.items():
        if value.shape != expected[key].shape:
            raise ModelError(
                f"`{source}` does not fit `{type(model).__name__}`: `{key}` has shape {tuple(value.shape)}, "
                f"the model {tuple(expected[key].shape)}."
            )
    model.load_state_dict(weights)


def _state_dict(content: Any, source: Path) -> dict[str, Tensor]:
    for key in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    plain = isinstance(content, Mapping) and all(isinstance(key, str) for key in content)
    if not plain or not all(isinstance(value, Tensor) for value in content.values()):
        raise ModelError(f"`{source}` holds no state dict (names to tensors) but a {type(content).__name__}.")
    return dict(content)


def _unprefixed(weights: dict[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for prefix in PREFIXES:
        foreign = not any(name.startswith(prefix) for name in expected)
        if weights and foreign and all(name.startswith(prefix) for name in weights):
            weights = {name.removeprefix(prefix): value for name, value in weights.items()}
    return weights


def _few(keys: list[str]) -> str:
    return f" ({', '.join(f'`{key}`' for key in keys[:3])}{', …' if len(keys) > 3 else ''})" if keys else ""
