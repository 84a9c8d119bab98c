"""EquisepCallback for Keras 3 on torch: `model.fit(x, y, callbacks=[EquisepCallback((x, y), every=5)])`."""

from __future__ import annotations

from typing import Any

from equisep.errors import InputError
from equisep.models.keras import KerasNetwork
from equisep.tracking.callback import CallbackTracker, Log, missing
from equisep.tracking.history import Unit
from equisep.tracking.tracker import Tracker

try:
    from keras.callbacks import Callback
except ImportError as error:
    raise missing("keras") from error


class EquisepCallback(Callback):  # type: ignore[misc]
    """Reads the model after every `every` epochs (or steps) of `fit` and adds the numbers to its logs.

    Keras does not tell callbacks its data: `batches` are the training data. Its history, and callbacks after this one, have
    the numbers; the progress bar prints them, so that by default these are only those of the whole network (`log="law"`).
    The other arguments are those of `equisep.Tracker` and of `equisep.tracking.callback.CallbackTracker`.
    """

    def __init__(
        self,
        batches: Any = None,
        *,
        tracker: Tracker | None = None,
        unit: Unit = "epoch",
        log: Log = "law",
        stop: bool = False,
        prefix: str = "equisep",
        **options: Any,
    ) -> None:
        super().__init__()
        if (batches is None) == (tracker is None):
            raise InputError("Keras does not tell callbacks its data: `EquisepCallback((x, y))`, or a tracker of them.")
        if options.get("reading", "eval") != "eval":
            raise InputError("Keras decides how its BatchNorm runs: only the reading `eval` can be had of it.")
        self._batches = batches
        self._tracked = CallbackTracker(tracker, unit=unit, log=log, stop=stop, prefix=prefix, options=options)
        self._steps, self._numbers = 0, dict[str, float]()

    @property
    def tracker(self) -> Tracker | None:
        """The tracker, once the training has begun."""
        return self._tracked.tracker

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """The first epoch says how many lie behind, and has a model with weights."""
        if self._begun_for is not self.model:
            self._begun_for = self.model
            known = self._tracked.tracker
            network = KerasNetwork(self.model) if known is None else known.model
            self._tracked.begin(network, self._batches, epochs=epoch, steps=self._steps, name=self.model.name)

    _begun_for: Any = None

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """A step of the optimizer."""
        self._steps += 1
        self._numbers.update(self._tracked.after_step(self._steps))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """The epoch is over."""
        self._numbers.update(self._tracked.after_epoch(epoch + 1))
        if logs is not None:
            logs.update(self._numbers)
        self._numbers.clear()
        if self._tracked.stop:
            self.model.stop_training = True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """The last epoch, where `every` passed it over."""
        self._tracked.end()
