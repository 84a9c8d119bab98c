"""EquisepHandler for Ignite: `EquisepHandler(model, every=5).attach(trainer)`."""

from __future__ import annotations

from typing import Any, Self

from torch import nn

from equisep.errors import InputError
from equisep.tracking.callback import CallbackTracker, Log, missing
from equisep.tracking.history import Unit
from equisep.tracking.tracker import Tracker

try:
    from ignite.engine import Engine, Events
except ImportError as error:
    raise missing("ignite", package="pytorch-ignite") from error


class EquisepHandler:
    """Reads the network after every `every` epochs (or steps) of an engine; the numbers stand in `engine.state.metrics`.

    Loggers of Ignite that are attached after it, with `metric_names="all"`, log them. The other arguments are those of
    `equisep.Tracker` and of `equisep.tracking.callback.CallbackTracker`; the training data are the engine's unless `batches` are
    given.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        *,
        tracker: Tracker | None = None,
        unit: Unit = "epoch",
        log: Log = "all",
        stop: bool = False,
        prefix: str = "equisep",
        **options: Any,
    ) -> None:
        if (model is None) == (tracker is None):
            raise InputError("`EquisepHandler` needs the model, which an engine does not know, or a tracker of it.")
        self._model = model
        self._tracked = CallbackTracker(tracker, unit=unit, log=log, stop=stop, prefix=prefix, options=options)

    @property
    def tracker(self) -> Tracker | None:
        """The tracker, once the engine has started."""
        return self._tracked.tracker

    def attach(self, engine: Engine) -> Self:
        """Follow the engine that trains."""
        engine.add_event_handler(Events.STARTED, self._begin)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._step)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._epoch)
        engine.add_event_handler(Events.COMPLETED, self._end)
        return self

    def _begin(self, engine: Engine) -> None:
        known = self._tracked.tracker
        model = self._model if known is None else known.model
        assert model is not None
        self._tracked.begin(model, engine.state.dataloader, epochs=engine.state.epoch, steps=engine.state.iteration)

    def _step(self, engine: Engine) -> None:
        engine.state.metrics.update(self._tracked.after_step(engine.state.iteration))

    def _epoch(self, engine: Engine) -> None:
        engine.state.metrics.update(self._tracked.after_epoch(engine.state.epoch))
        if self._tracked.stop:
            engine.terminate()

    def _end(self, engine: Engine) -> None:
        engine.state.metrics.update(self._tracked.end())
