"""EquisepCallback for Keras 3 on torch: `model.fit(x, y, callbacks=[EquisepCallback((x, y), every=5)])`."""

from __future__ import annotations

from typing import Any

from torch import nn

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
        self._batches, self._begun = batches, False
        self._tracked = CallbackTracker(tracker, unit=unit, log=log, stop=stop, prefix=prefix, options=options)
        self._steps_before, self._steps, self._numbers = 0, 0, dict[str, float]()

    @property
    def tracker(self) -> Tracker | None:
        """The tracker, once the training has begun; of the latest model where the callback served several."""
        return self._tracked.tracker

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """A call of `fit`, of this model or of another."""
        self._begun = False

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """The first epoch says how many lie behind, and has a model with weights."""
        if not self._begun:
            self._begun = True
            self._steps = self._tracked.begin(
                self._network(), self._batches, epochs=epoch, steps=_batches_of(self.model), name=self.model.name
            )
        self._steps_before = self._steps

    def _network(self) -> nn.Module:
        """What is read: the tracker's model where it has weights of the fitted one, otherwise the fitted one."""
        tracker = self._tracked.tracker
        if tracker is not None and _share_weights(tracker.model, self.model):
            return tracker.model
        if tracker is not None and self._tracked.given:
            raise InputError(
                f"The tracker reads another model than `{self.model.name}`, which is being fitted. Make a tracker of this one; "
                "or where it goes on with that training, assign it: `tracker.model = KerasNetwork(model)`."
            )
        return KerasNetwork(self.model)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Batches of the epoch are over, up to the number `batch`."""
        self._steps = self._steps_before + batch + 1
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


def _batches_of(model: Any) -> int:
    """How many batches a model has been trained on, as its optimizer knows; 0 where nothing does."""
    optimizer = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # mixed precision wraps it
    steps = getattr(optimizer, "iterations", None)
    return 0 if steps is None else int(steps) * (getattr(optimizer, "gradient_accumulation_steps", None) or 1)


def _share_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether a parameter of the one is a parameter of the other."""
    return not {id(each) for each in one.parameters()}.isdisjoint(id(each) for each in other.parameters())
