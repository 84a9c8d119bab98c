"""What one batch gives a model: tensors in order, or by name as Hugging Face's loaders yield them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
from torch import Tensor

from equisep.errors import DataError, InputError
from equisep.labels import as_tensor

LABELS = ("labels", "label")  # where a mapping holds the class labels


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arguments of a forward pass, in order (`args`) and by name (`kwargs`)."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(x: Any, *, what: str) -> Inputs:
        """A tensor or array; a mapping of them by name; or several of them in order."""
        if isinstance(x, Mapping):
            return Inputs(kwargs={str(name): _entry(value, what=f"{what}, `{name}`,") for name, value in x.items()})
        if isinstance(x, list | tuple) and x and all(isinstance(part, Tensor) and part.ndim > 0 for part in x):
            return Inputs(args=tuple(part.detach() for part in x))
        return Inputs(args=(as_tensor(x, what=what),))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors, those in order under their number."""
        both = {**{str(position): value for position, value in enumerate(self.args)}, **self.kwargs}
        return {name: value for name, value in both.items() if isinstance(value, Tensor)}

    @property
    def main(self) -> Tensor | None:
        """The first tensor: what the model is about."""
        return next(iter(self.tensors.values()), None)

    def changed(self, change: Callable[[Tensor], Tensor]) -> Inputs:
        """The same with every tensor changed: moved, cast, copied."""

        def each(value: Any) -> Any:
            return change(value) if isinstance(value, Tensor) else value

        return Inputs(tuple(each(value) for value in self.args), {name: each(v) for name, v in self.kwargs.items()})

    def head(self, samples: int) -> Inputs:
        """The first samples alone: of every tensor that has as many rows as the first one."""
        main = self.main
        size = len(main) if main is not None and main.ndim else 0
        return self.changed(lambda x: x[:samples] if x.ndim and len(x) == size else x)

    def __str__(self) -> str:
        tensors = self.tensors
        if not self.kwargs and len(tensors) == 1:
            (x,) = tensors.values()
            return f"inputs of shape {tuple(x.shape)}, {x.dtype}, on {x.device}"
        words = [f"`{name}` {tuple(x.shape)} {x.dtype} on {x.device}" for name, x in tensors.items()]
        return f"inputs {', '.join(words)}"


def without_labels(batch: Mapping[str, Any], *, whose: str) -> tuple[dict[str, Any], Any]:
    """A mapping apart from its class labels, and these."""
    key = next((name for name in LABELS if name in batch), None)
    if key is None:
        names = ", ".join(f"`{name}`" for name in list(batch)[:5])
        raise DataError(
            f"{whose} should be a pair (x, y); found {type(batch).__name__}. A mapping needs its class labels under "
            f"`labels` or `label`; this one holds {names or 'nothing'}."
        )
    return {str(name): value for name, value in batch.items() if name != key}, batch[key]


def _entry(value: Any, *, what: str) -> Any:
    """Numbers as a tensor; flags and other settings as they are; words are refused, since no model reads them."""
    if isinstance(value, str) or (isinstance(value, list | tuple) and any(isinstance(part, str) for part in value)):
        raise InputError(f"{what} are words. Turn them into numbers (a tokenizer does), or leave the column out.")
    return as_tensor(value, what=what) if isinstance(value, Tensor | numpy.ndarray | list | tuple) else value
