"""Checkpoint: a training kept on disk between calls, so that one that is cut off goes on from there, bit by bit on a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import nn

from equisep.files import write_whole, writing

EVERY = 60.0  # seconds from one to the next
Lists = dict[str, list[float]]


class Checkpoint:
    """One file, written whole or not at all, that holds a training after an epoch: weights, optimizer, chance, history.

    A single network is kept by `offer` and put back by `resume`; `keep` and `read` are for any state of tensors and numbers.

    name        what is trained, as the key of a cell: a file of another training, or a damaged one, is as good as none.
    every       seconds that pass at least between two writings.
    kept        what a reader has beside the training, as text; `taken` gets it back before the training goes on.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        every: float | None = None,
        kept: Callable[[], str] = str,
        taken: Callable[[str], object] = str,
    ) -> None:
        self.path, self.every = path, EVERY if every is None else every
        self._name = f"{name} torch {torch.__version__}"
        self._kept, self._taken = kept, taken
        self._last = time.monotonic()

    def resume(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, chance: Mapping[str, torch.Generator]
    ) -> tuple[int, Lists] | None:
        """Put the training back to where it was: how many epochs are done, and their history; None where nothing was kept."""
        state = self.read()
        if state is None:
            return None
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        for name, generator in chance.items():
            generator.set_state(state["chance"][name])
        torch.set_rng_state(state["chance"]["torch"])
        if torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["chance"]["cuda"])
        self._taken(state["beside"])
        return int(state["epochs"]), state["history"]

    def offer(
        self,
        epochs: int,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        chance: Mapping[str, torch.Generator],
        history: Lists,
    ) -> None:
        """Keep the training after so many epochs, where the last time was long enough ago."""
        self.keep(lambda: {
            "epochs": epochs,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "chance": {
                **{name: generator.get_state() for name, generator in chance.items()},
                "torch": torch.get_rng_state(),
                "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            },
            "history": history,
            "beside": self._kept(),
        })  # fmt: skip

    def keep(self, make: Callable[[], dict[str, Any]]) -> None:
        """Keep the state that `make` gives, where the last time was long enough ago."""
        if time.monotonic() - self._last < self.every:
            return
        state = {"name": self._name, **make()}

        def save(file: BinaryIO) -> None:
            torch.save(state, file)

        with writing("A checkpoint", self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, save)
        self._last = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """What was kept of this very training; None where nothing was."""
        if not self.path.is_file():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception:  # torch raises what its parts do: a zip, a pickle, a tensor
            return None
        return state if isinstance(state, dict) and state.get("name") == self._name else None
