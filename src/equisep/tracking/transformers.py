"""EquisepCallback for the Trainer of Hugging Face: `trainer.add_callback(EquisepCallback(trainer))`."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from equisep.tracking.callback import CallbackTracker, Log, missing
from equisep.tracking.history import Unit
from equisep.tracking.tracker import Tracker

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise missing("transformers") from error

SLACK = 1e-6  # of an epoch: the trainer counts them by fractions, and may end or go on in the middle of one


class EquisepCallback(TrainerCallback):  # type: ignore[misc]
    """Reads the network after every `every` epochs (or steps) of the Trainer and logs the numbers through it.

    With the trainer at hand the numbers go to everything that it reports to; without it they stand in `state.log_history`
    alone. Of several processes the first one reads. The other arguments are those of `equisep.Tracker` and of
    `equisep.tracking.callback.CallbackTracker`; the training data are the trainer's unless `batches` are given.
    """

    def __init__(
        self,
        trainer: Any = None,
        *,
        tracker: Tracker | None = None,
        unit: Unit = "epoch",
        log: Log = "all",
        stop: bool = False,
        prefix: str = "equisep",
        **options: Any,
    ) -> None:
        self._trainer = trainer
        self._tracked = CallbackTracker(tracker, unit=unit, log=log, stop=stop, prefix=prefix, options=options)

    @property
    def tracker(self) -> Tracker | None:
        """The tracker, once the training has begun; on the first process only, unless all read."""
        return self._tracked.tracker

    def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """The trainer has its model and its loader."""
        self._tracked.check(known["model"])
        if self._tracked.reads(state.is_world_process_zero):
            epochs = floor((state.epoch or 0) + SLACK)
            self._tracked.begin(known["model"], known["train_dataloader"], epochs=epochs, steps=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """A step of the optimizer."""
        if self._tracked.reads(state.is_world_process_zero):
            self._send(state, self._tracked.after_step(state.global_step))

    def on_epoch_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """The epoch is over."""
        if self._tracked.reads(state.is_world_process_zero):
            self._send(state, self._tracked.after_epoch(ceil(state.epoch - SLACK)))
        if self._tracked.stop:
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """The last epoch, where `every` passed it over."""
        if self._tracked.reads(state.is_world_process_zero):
            self._send(state, self._tracked.end())

    def _send(self, state: Any, numbers: dict[str, float]) -> None:
        if not numbers or not state.is_world_process_zero:
            return
        if self._trainer is not None:
            self._trainer.log(dict(numbers))
        else:
            state.log_history.append({**numbers, "epoch": state.epoch, "step": state.global_step})
