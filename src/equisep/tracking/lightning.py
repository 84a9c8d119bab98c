"""EquisepCallback for Lightning: `Trainer(callbacks=[EquisepCallback(every=5)])`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from equisep.errors import InputError
from equisep.tracking.callback import CallbackTracker, Log, missing
from equisep.tracking.history import Unit
from equisep.tracking.tracker import Tracker

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError as error:
        raise missing("lightning") from error


class EquisepCallback(Callback):  # type: ignore[misc]
    """Reads the network after every `every` epochs (or steps) and logs the numbers as the module's own.

    They are in `trainer.callback_metrics`, for checkpoints and early stopping to monitor, and go to every logger; at the end
    TensorBoard has the law as a figure. Of several processes the first one reads, the others wait; with `ranks="all"` each
    reads its part and has the numbers, which checkpoints and early stopping of several processes need. `network` says which
    part of the LightningModule is the network, as a function of it, where that is not the module itself. The other arguments
    are those of `equisep.Tracker` and of `equisep.tracking.callback.CallbackTracker`; the training data are the trainer's
    unless `batches` are given.
    """

    def __init__(
        self,
        tracker: Tracker | None = None,
        *,
        network: Callable[[Any], nn.Module] | None = None,
        unit: Unit = "epoch",
        log: Log = "all",
        stop: bool = False,
        prefix: str = "equisep",
        **options: Any,
    ) -> None:
        super().__init__()
        self._tracked = CallbackTracker(tracker, unit=unit, log=log, stop=stop, prefix=prefix, options=options)
        self._network = network

    @property
    def tracker(self) -> Tracker | None:
        """The tracker, once the training has begun; on the first process only, unless all read."""
        return self._tracked.tracker

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The trainer has its loaders."""
        self._steps_seen = trainer.global_step
        network = self._network_of(pl_module)
        self._tracked.check(network)
        if self._tracked.reads(trainer.is_global_zero):
            batches = _one_loader(trainer.train_dataloader) if self._tracked.needs_data else None
            self._tracked.begin(network, batches, epochs=trainer.current_epoch, steps=trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """A step of the optimizer, where this batch ended one."""
        if self._tracked.reads(trainer.is_global_zero) and trainer.global_step != self._steps_seen:
            self._steps_seen = trainer.global_step
            self._send(trainer, pl_module, self._tracked.after_step(trainer.global_step))

    _steps_seen = 0  # gradients may be summed over several batches

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """The epoch is over, its weights are final."""
        if self._tracked.reads(trainer.is_global_zero):
            self._send(trainer, pl_module, self._tracked.after_epoch(trainer.current_epoch + 1))
        if self._tracked.stop:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """The last epoch, where `every` passed it over, and the law as a figure."""
        numbers = self._tracked.end() if self._tracked.reads(trainer.is_global_zero) else {}
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                if numbers:  # a module logs no more
                    logger.log_metrics(numbers, step=trainer.global_step)
                self._tracked.draw(logger.experiment, trainer.global_step)

    def _send(self, trainer: Any, module: Any, numbers: dict[str, float]) -> None:
        if numbers:  # the same in every process that has them: none waits for another, and Lightning need not warn
            module.log_dict(numbers, rank_zero_only=True, sync_dist=True)

    def _network_of(self, module: Any) -> nn.Module:
        if self._network is not None:
            return self._network(module)
        own = next(kind for kind in type(module).__mro__ if "forward" in vars(kind))
        if own.__name__ != "LightningModule":  # of lightning.pytorch or of pytorch_lightning: theirs refuses
            return module  # type: ignore[no-any-return]
        parts = [child for child in module.children() if any(True for _ in child.parameters())]
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        raise InputError(
            f"`{type(module).__name__}` has no `forward`, and {len(parts)} parts with weights. Say which is the network: "
            "`EquisepCallback(network=lambda module: module.net)`."
        )


def _one_loader(loaders: Any) -> Any:
    """The trainer's loader; raise where it has several, of which nothing tells the one to read."""
    several = getattr(loaders, "iterables", loaders)  # of a CombinedLoader
    names = [f"`{name}`" for name in several] if isinstance(several, dict) else []
    if names or (isinstance(several, list | tuple) and any(hasattr(each, "batch_size") for each in several)):
        shown = f" ({', '.join(names)})" if names else ""
        raise InputError(
            f"The trainer has {len(several)} training loaders{shown}. Say which data are read: `EquisepCallback(batches=loader)`."
        )
    return loaders
