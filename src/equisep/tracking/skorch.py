"""EquisepCallback for skorch: `NeuralNetClassifier(..., callbacks=[EquisepCallback(every=5)])`."""

from __future__ import annotations

from typing import Any

from equisep.tracking.callback import CallbackTracker, Log, missing
from equisep.tracking.history import Unit
from equisep.tracking.tracker import Tracker

try:
    from skorch.callbacks import Callback
except ImportError as error:
    raise missing("skorch") from error


class EquisepCallback(Callback):  # type: ignore[misc]
    """Reads the module after every `every` epochs (or steps) of a net and records the numbers in its history.

    Loggers of skorch take them from there. It prints what its history holds, so that by default only the numbers of the
    whole network are recorded (`log="law"`). The other arguments are those of `equisep.Tracker` and of
    `equisep.tracking.callback.CallbackTracker`; the training data are the net's, without its validation split, unless `batches`
    are given.
    """

    def __init__(
        self,
        tracker: Tracker | None = None,
        *,
        unit: Unit = "epoch",
        log: Log = "law",
        stop: bool = False,
        prefix: str = "equisep",
        **options: Any,
    ) -> None:
        self._asked = {"tracker": tracker, "unit": unit, "log": log, "stop": stop, "prefix": prefix, **options}
        self._tracked = CallbackTracker(tracker, unit=unit, log=log, stop=stop, prefix=prefix, options=options)
        self._begun, self._steps = False, 0

    @property
    def tracker(self) -> Tracker | None:
        """The tracker, once the training has begun; of the latest module where the callback served several."""
        return self._tracked.tracker

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments as they were given: a clone of the net, as a grid search makes them, has them too."""
        return dict(self._asked)

    def set_params(self, **params: Any) -> None:
        """Change arguments: the next training is read by them, and begins a tracker of its own unless one is given."""
        if params:
            self.__dict__.update(vars(type(self)(**{**self._asked, **params})))

    def on_train_begin(self, net: Any, **known: Any) -> None:
        """A call of `fit` or `partial_fit`."""
        self._begun = False

    def on_epoch_begin(self, net: Any, dataset_train: Any = None, **known: Any) -> None:
        """The first epoch brings the training data; the net's history says what lies behind."""
        if not self._begun:
            self._begun = True
            loader = net.get_iterator(dataset_train, training=False)
            rows = net.history.to_list()[:-1]  # this epoch has a row already
            steps = sum("train_loss" in batch for row in rows for batch in row.get("batches", ()))
            self._steps = self._tracked.begin(net.module_, loader, epochs=len(rows), steps=steps)

    def on_batch_end(self, net: Any, training: bool = False, **known: Any) -> None:
        """A step of the optimizer."""
        if training:
            self._steps += 1
            self._record(net, self._tracked.after_step(self._steps))

    def on_epoch_end(self, net: Any, **known: Any) -> None:
        """The epoch is over."""
        self._record(net, self._tracked.after_epoch(len(net.history)))
        if self._tracked.stop:
            raise KeyboardInterrupt  # as skorch's own early stopping ends a training

    def on_train_end(self, net: Any, **known: Any) -> None:
        """The last epoch, where `every` passed it over."""
        self._record(net, self._tracked.end())

    def _record(self, net: Any, numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            net.history.record(name, value)
