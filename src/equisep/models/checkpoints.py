"""Weights from a file into a model: state dicts as trainers write them, never code."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from equisep.errors import MissingExtraError, ModelError

PREFIXES = ("module.", "_orig_mod.", "model.")  # what DataParallel, torch.compile and Lightning put before every name
WRAPPERS = ("state_dict", "model_state_dict", "model", "net")  # where trainers put the weights inside a checkpoint


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load a state dict, or a checkpoint that wraps one, into a model; every key must fit.

    Files that `torch.save` wrote are read with `weights_only=True`; `.safetensors` files hold nothing but tensors.
    """
    source = Path(path)
    lazy = [name for name, value in model.named_parameters() if isinstance(value, UninitializedParameter)]
    if lazy:
        raise ModelError(
            f"`{source}` cannot be loaded yet: `{lazy[0]}` of the model has no shape. Run it on a batch first."
        )
    expected = model.state_dict()
    weights = _unprefixed(_state_dict(_content(source), source), expected)
    # checkpoints older than torch 1.0 do not count batches; torch itself fills the counts in
    weights |= {
        key: value for key, value in expected.items() if key.endswith(".num_batches_tracked") and key not in weights
    }
    missing = [key for key in expected if key not in weights]
    computed = {name for name, _ in model.named_buffers()} - set(expected)  # such as position numbers, once saved too
    weights = {key: value for key, value in weights.items() if key not in computed}
    strange = [key for key in weights if key not in expected]
    if missing or strange:
        raise ModelError(
            f"`{source}` does not fit `{type(model).__name__}`: {len(missing)} keys are missing{first_few(missing)}, "
            f"{len(strange)} unexpected{first_few(strange)}."
        )
    for key, value in weights.items():
        if value.shape != expected[key].shape:
            raise ModelError(
                f"`{source}` does not fit `{type(model).__name__}`: `{key}` has shape {tuple(value.shape)}, "
                f"the model {tuple(expected[key].shape)}."
            )
    model.load_state_dict(weights)


def first_few(keys: list[str]) -> str:
    """The first three keys in parentheses, for a message; nothing where there are none."""
    return f" ({', '.join(f'`{key}`' for key in keys[:3])}{', …' if len(keys) > 3 else ''})" if keys else ""


def _content(source: Path) -> Any:
    if not source.is_file():
        raise ModelError(f"No checkpoint at `{source}`.")
    tensors_only = source.suffix == ".safetensors"
    try:
        if tensors_only:
            return importlib.import_module("safetensors.torch").load_file(source)
        return torch.load(source, map_location="cpu", weights_only=True)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            needed_for=f"The checkpoint `{source}`", package="safetensors", extra="transformers"
        ) from error
    except Exception as error:  # damaged files raise whatever the reader trips over
        first = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")[0].split(". ")[0]
        advice = "" if tensors_only else " Save it again with `torch.save(model.state_dict(), path)`."
        raise ModelError(f"`{source}` cannot be read as a checkpoint of plain weights ({first}).{advice}") from error


def _state_dict(content: Any, source: Path) -> dict[str, Tensor]:
    while isinstance(content, Mapping) and (
        wrapper := next((key for key in WRAPPERS if isinstance(content.get(key), Mapping)), None)
    ):
        content = content[wrapper]
    plain = isinstance(content, Mapping) and all(isinstance(key, str) for key in content)
    if not plain or not all(isinstance(value, Tensor) for value in content.values()):
        raise ModelError(f"`{source}` holds no state dict (names to tensors) but a {type(content).__name__}.")
    return dict(content)


def _unprefixed(weights: dict[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    foreign = [prefix for prefix in PREFIXES if not any(name.startswith(prefix) for name in expected)]
    while weights and (on := [prefix for prefix in foreign if all(name.startswith(prefix) for name in weights)]):
        weights = {name.removeprefix(on[0]): value for name, value in weights.items()}
    return weights
