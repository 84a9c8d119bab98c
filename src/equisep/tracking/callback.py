"""What the callbacks of all frameworks share: a tracker that begins when a trainer knows its model and data, and what to log."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal, get_args

from equisep.errors import InputError, MissingExtraError, did_you_mean
from equisep.tracking.history import History, Unit
from equisep.tracking.light import checked_model
from equisep.tracking.processes import first_process_decides, read_by_all
from equisep.tracking.tracker import Tracker

if TYPE_CHECKING:
    from torch import nn

    from equisep.results import Profile

Log = Literal["all", "law", "none"]
# framework (its file and its extra) → its callback
FRAMEWORKS = {
    "lightning": "EquisepCallback",
    "transformers": "EquisepCallback",
    "ignite": "EquisepHandler",
    "keras": "EquisepCallback",
    "skorch": "EquisepCallback",
}


class CallbackTracker:
    """A Tracker that a framework calls: made at the start of a training, or given.

    tracker     one of yours; otherwise it is made of the model and the training data that the framework has
    unit        what is counted, and read at every `every`: `epoch` or `step`
    log         what goes to the framework's logger: `all` numbers, those of the `law` and the whole network, or `none`
    stop        whether the training ends where the tracker calls it settled
    options     of `equisep.Tracker`, where it is made here; `batches` are the training data, `test` the test data
    """

    def __init__(
        self, tracker: Tracker | None, *, unit: Unit, log: Log, stop: bool, prefix: str, options: dict[str, Any]
    ) -> None:
        for name, value, known in (("unit", unit, get_args(Unit)), ("log", log, get_args(Log))):
            if value not in known:
                raise InputError(f"No {name} `{value}`. Known: {', '.join(known)}.")
        if tracker is not None and options:
            raise InputError(f"A tracker that is given has its options: {', '.join(options)} cannot be set here.")
        self.tracker, self.given = tracker, tracker is not None
        self._unit, self._log, self._stop, self._prefix = unit, log, stop, prefix
        self._batches = options.get("batches")
        self._options = {name: value for name, value in options.items() if name != "batches"}

    def begin(self, model: nn.Module, batches: Any, *, epochs: int, steps: int, **options: Any) -> int:
        """A training begins, or goes on after so many `epochs` and `steps`: the tracker is made where none is given.

        Another model with no epoch behind it is another training: it gets a tracker of its own. The answer is how many steps
        lie behind: `steps`, or where the framework knows of none, as many as the history has in these epochs.
        """
        tracker = self.tracker
        if tracker is None or not (self.given or epochs or tracker.model is model):
            chosen = batches if self._batches is None else self._batches
            tracker = self.tracker = Tracker(model, chosen, **{**options, **self._options})
        elif tracker.model is not model:
            tracker.model = model
        steps = steps or _steps_within(tracker.history, epochs)
        tracker.resume(steps if self._unit == "step" else epochs, epochs=epochs)
        return steps

    def after_epoch(self, number: int) -> dict[str, float]:
        """An epoch has ended: the numbers to log, where it was read."""
        return {} if self.tracker is None else self._numbers(self.tracker.epoch(number))

    def after_step(self, number: int) -> dict[str, float]:
        """A step has been taken: the numbers to log, where steps are counted and it was read."""
        if self.tracker is None or self._unit != "step":
            return {}
        return self._numbers(self.tracker.step(number))

    def _numbers(self, profile: Profile | None) -> dict[str, float]:
        """The numbers of a reading by flat names; none where there was no reading."""
        if profile is None or self.tracker is None or self._log == "none":
            return {}
        return self.tracker.history.scalars(self._prefix, sites=self._log == "all")

    @property
    def needs_data(self) -> bool:
        """Whether the data to read are those of the framework."""
        return not self.given and self._batches is None

    def reads(self, first: bool) -> bool:
        """Whether this process takes part: the first one does, the others where all read."""
        return first or self.by_all

    @property
    def by_all(self) -> bool:
        """Whether all processes of the training read."""
        return read_by_all(self._options.get("ranks", "first")) if self.tracker is None else self.tracker.by_all

    def check(self, model: nn.Module) -> None:
        """Refuse a model in all processes that the reading ones would refuse: the others would wait for these."""
        checked_model(model, by_all=self.by_all)

    @property
    def stop(self) -> bool:
        """Whether the training is to end here, as the first process has it; all of them ask."""
        return self._stop and first_process_decides(self.tracker is not None and bool(self.tracker.settled))

    def end(self) -> dict[str, float]:
        """The training is over: its last epoch is read where `every` passed it over; the numbers to log of it."""
        return {} if self.tracker is None else self._numbers(self.tracker.finish())

    def draw(self, writer: Any, step: int) -> None:
        """The law of the latest reading as a figure, for a writer of TensorBoard; another logger takes none."""
        read = () if self.tracker is None else self.tracker.history.read
        if self._log == "none" or not read or read[-1].profile is None or not hasattr(writer, "add_figure"):
            return
        writer.add_figure(f"{self._prefix}/law", read[-1].profile.plot().figure, step)


def _steps_within(history: History, epochs: int) -> int:
    """The last step that was read in the first so many epochs; 0 where steps are not what the history numbers."""
    return max((each.number for each in history if each.epoch is not None and each.epoch < epochs), default=0)


def missing(framework: str, *, package: str | None = None) -> MissingExtraError:
    """The sentence for a framework that is not installed."""
    return MissingExtraError(
        needed_for=f"`equisep.tracking.{framework}`", package=package or framework, extra=framework
    )


def callback_for(framework: str, tracker: Tracker, **options: Any) -> Any:
    """The callback of a framework around a tracker."""
    if framework not in FRAMEWORKS:
        near = did_you_mean(framework, FRAMEWORKS)
        raise InputError(f"No callback for `{framework}`.{near} Known: {', '.join(FRAMEWORKS)}.")
    module = importlib.import_module(f"equisep.tracking.{framework}")
    return getattr(module, FRAMEWORKS[framework])(tracker=tracker, **options)
