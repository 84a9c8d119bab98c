"""What modules return: the tensor to read in tuples, mappings and records, and the class scores of a whole model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

FEATURES = "last_hidden_state"  # what Hugging Face calls the features of a model
SCORES = "logits"  # … and its class scores


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in a tensor, tuple, list, mapping or dataclass, depth first.

    Where entries have names, `last_hidden_state` comes first, then `logits`: a model's output may begin with its loss.
    """
    if isinstance(value, Tensor):
        return value
    return next((tensor for entry in _entries(value) if (tensor := first_tensor(entry)) is not None), None)


def _entries(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        named = dict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        named = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    else:
        return value if isinstance(value, list | tuple) else ()
    return [*(named.pop(key) for key in (FEATURES, SCORES) if key in named), *named.values()]


def scores_of(output: Any) -> Tensor | None:
    """The class scores, b × K: the output itself, or its entry `logits`; None where there are none."""
    scores = output
    if isinstance(output, Mapping):
        scores = output.get(SCORES)
    elif not isinstance(output, Tensor):
        scores = getattr(output, SCORES, None)
    return scores if isinstance(scores, Tensor) and scores.ndim == 2 and scores.shape[1] >= 2 else None
