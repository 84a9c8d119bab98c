"""Objects that make loaders, asked for theirs: Lightning's data modules and trainers, the Trainer of Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equisep.errors import DataError
from equisep.results import Note

MARKS = ("train_dataloader", "get_train_dataloader")  # what has one of these makes loaders
MAKERS = {
    "training": MARKS,
    "test": ("test_dataloader", "test_dataloaders", "get_eval_dataloader", "val_dataloader", "val_dataloaders"),
}
STAGES = {"training": ("fit",), "test": ("test", "fit")}  # of a data module's `setup`


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
