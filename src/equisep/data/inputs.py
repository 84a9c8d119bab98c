"""What loaders give: the loader of an object that makes one, and what one batch gives a model, in order or by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
from torch import Tensor

from equisep.errors import DataError, InputError
from equisep.labels import as_tensor
from equisep.results import Note

LABELS = ("labels", "label")  # where a mapping holds the class labels
MARKS = ("train_dataloader", "get_train_dataloader")  # what has one of these makes loaders
MAKERS = {
    "training": MARKS,
    "test": ("test_dataloader", "test_dataloaders", "get_eval_dataloader", "val_dataloader", "val_dataloaders"),
}
STAGES = {"training": ("fit",), "test": ("test", "fit")}  # of a data module's `setup`


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
            f"`labels` or `label`; this one holds {names or 'nothing'}. Rename them, or pass `unpack=`, a "
            "function that makes a pair of it: `unpack=lambda batch: (batch['image'], batch['target'])`, say."
        )
    return {str(name): value for name, value in batch.items() if name != key}, batch[key]


def _entry(value: Any, *, what: str) -> Any:
    """Numbers as a tensor; flags and other settings as they are; words are refused, since no model reads them."""
    if isinstance(value, str) or (isinstance(value, list | tuple) and any(isinstance(part, str) for part in value)):
        raise InputError(f"{what} are words. Turn them into numbers (a tokenizer does), or leave the column out.")
    return as_tensor(value, what=what) if isinstance(value, Tensor | numpy.ndarray | list | tuple) else value


def loader_of(data: Any, *, what: str) -> tuple[Any, Note | None]:
    """The loader of the training or test data that `data` makes, with a Note that says which; other data as they are."""
    if not any(hasattr(data, mark) for mark in MARKS):
        return data, None
    kind, failures = type(data).__name__, list[str]()
    made = _made(data, what, failures)
    if made is None and callable(getattr(data, "setup", None)) and getattr(data, "trainer", None) is None:
        _set_up(data, what)
        made = _made(data, what, failures := [])
    if made is None:
        tried = "; ".join(failures) or f"it has no {' or '.join(f'`{name}`' for name in MAKERS[what][:2])}"
        raise DataError(f"`{kind}` gave no loader of the {what} data: {tried}. Pass the loader itself.")
    name, loader = made
    return loader, Note("loader", f"The {what} data are those of `{kind}.{name}`.")


def _made(data: Any, what: str, failures: list[str]) -> tuple[str, Any] | None:
    """The first loader that there is, with the name of what gave it; what was raised instead is added to the failures."""
    for name in MAKERS[what]:
        maker = getattr(data, name, None)
        if maker is None:
            continue
        try:
            loader = maker() if callable(maker) else maker
        except Exception as error:  # whatever a user's data module raises
            words = str(error).strip().partition("\n")[0]
            failures.append(f"`{name}` raised {type(error).__name__}: {words}".rstrip(". "))
            continue
        if isinstance(loader, list | tuple) and len(loader) == 1:
            return name, loader[0]
        if isinstance(loader, Mapping | list | tuple):
            if not loader:
                continue
            raise DataError(
                f"`{type(data).__name__}.{name}` gives {len(loader)} loaders of the {what} data. Pass the one to measure."
            )
        if loader is not None:
            return name, loader
    return None


def _set_up(data: Any, what: str) -> None:
    """What Lightning's trainer does before it asks a data module for loaders; done only where they cannot be had without."""
    if callable(getattr(data, "prepare_data", None)):
        data.prepare_data()
    for stage in STAGES[what]:
        data.setup(stage)
