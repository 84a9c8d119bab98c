"""Tracker: the light profile of a network while any loop trains it, which must not notice."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import nn

from equisep.data.feed import Unpack
from equisep.errors import EquisepError, InputError, ModelError
from equisep.labels import ClassNames
from equisep.law.effective_depth import PERFECT
from equisep.measuring.distributed.together import ALONE, Together
from equisep.measuring.request import MEMORY, Options
from equisep.results import Note, Profile, Reading, reading_named
from equisep.taps import Reduction, ReductionLike, Sites, site_record
from equisep.tracking.history import Entry, History, Unit
from equisep.tracking.light import LightReader, checked_model, identity_of
from equisep.tracking.processes import Readers, all_processes, is_first_process, read_by_all, refuse_other_samples
from equisep.tracking.schedule import Schedule, checked_count, checked_number
from equisep.tracking.stopping import Settled, Stopping
from equisep.tracking.subset import Subset

LIGHT = ("fuzziness", "collapse", "cdnv", "ncc")  # what a light reading has: no chance level, no intervals, no pictures
SAME = 1e-12  # relative: curves of D nearer to each other are of the same weights


class Tracker:
    """Reads how a network separates its classes while a loop of yours trains it.

    model       as in `equisep.measure`; it is read where it is, and may be compiled, wrapped or moved later
    batches     the training data: a loader, a data set, a pair (X, Y), or any iterable of batches that can be read again.
                A subset is drawn once, `per_class` samples of each class, by the `seed`; the loader itself is left alone
    test        test data, of which as many are drawn
    every       a reading at every so many calls of `epoch` (or of `step`, where that is what the loop calls): at its multiples,
                or where your numbers advance by more than one, by the count of calls
    history     a file of JSON lines to write; where it holds the readings of this training already, it goes on
    per_class   samples of each class: by default about 300 in all, from 5 to 30 per class
    stopping    what `settled` means: see `equisep.tracking.Stopping`
    sites       as in `measure`; of `auto` the one grain is read that `measure` would report
    metrics     of the reading: `fuzziness`, `collapse`, `cdnv` and `ncc` by default; others as in `measure`
    ranks       of a training in several processes the `first` reads (the others wait where they meet it again), or `all` do: each
                reads its part of the subset, and the sums are added up. Then all call the same methods, and have the history.
                A model that they hold together (`fully_shard`, tensor parallelism) is read by `all`
    coordinates  how many samples to keep on two principal components of every layer, for `history.report`: 0 keeps none
    reduction, reading, classes, class_names, classifier, epsilon, memory, seed, unpack, name     as in `measure`

    Numbers are those of `equisep.measure` on the same samples. D depends on how many samples there are against how many
    features: a history compares epochs, and `measure` on all the data says how large D is.

    Weights, optimizer, random states, the order of the loader and every flag of the model are what they would be without.
    A reading that fails says so in the history, and warns once: the training goes on.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> tracker = equisep.Tracker(model, (x, y), history="run.jsonl")
    >>> for epoch in (1, 2, 3):
    ...     optimizer.zero_grad()
    ...     torch.nn.functional.cross_entropy(model(x), y).backward()
    ...     optimizer.step()
    ...     profile = tracker.epoch(epoch)
    >>> tracker.history.numbers
    (1, 2, 3)
    >>> profile.law.verdict is not None, bool(tracker.settled)
    (True, False)
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Any,
        test: Any = None,
        *,
        every: int = 1,
        history: str | Path | None = None,
        per_class: int | None = None,
        sites: Sites = "auto",
        reduction: ReductionLike = "auto",
        reading: Reading = "eval",
        metrics: Sequence[str] = LIGHT,
        classes: int | None = None,
        class_names: ClassNames | None = None,
        classifier: str | None = None,
        epsilon: float = PERFECT,
        ranks: Readers = "first",
        coordinates: int = 0,
        memory: int | None = None,
        seed: int = 0,
        unpack: Unpack | None = None,
        stopping: Stopping | None = None,
        name: str | None = None,
    ) -> None:
        every = checked_count("every", every)
        per_class = None if per_class is None else checked_count("per_class", per_class)
        if reading == "drawn":
            raise InputError(
                "`Tracker` reads `eval` or `mixed`: the order in which all samples were drawn is not that of some of them."
            )
        if stopping is not None and not isinstance(stopping, Stopping):
            raise InputError(
                f"`stopping` is a rule, `equisep.tracking.Stopping(window=5)`; found {stopping!r}. Leave it out for the default."
            )
        self.stopping = Stopping() if stopping is None else stopping
        how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
        options = Options(
            sites=site_record(sites),
            reduction="auto" if how is None else how.name,
            reading=reading_named(reading),
            metrics=(metrics,) if isinstance(metrics, str) else tuple(metrics),
            classes=classes,
            classifier=classifier,
            epsilon=epsilon,
            intervals="none",
            memory=MEMORY if memory is None else memory,
            coordinates=coordinates,
            seed=seed,
        )
        by_all = read_by_all(ranks)
        checked_model(model, by_all=by_all)
        with all_processes(model, about="first samples") if by_all else nullcontext(ALONE) as together:
            self._reader = LightReader(
                model,
                batches,
                test,
                options=options,
                sites=sites,
                reduction=how,
                per_class=per_class,
                class_names=class_names,
                unpack=unpack,
                name=name,
                together=together,
            )
            self.history = self._opened(history, together)
        last = self.history.last
        self._schedule = Schedule(every, last)
        self._due: int | None = None  # a call that `every` passed over, for the end of a training
        self._due_changes: tuple[int, ...] = ()  # … and what the parameters were then
        self._warned: set[str] = set()
        self._changes: tuple[int, ...] | None = None  # how often each parameter had been changed at the latest reading
        self._goes_on = last is not None  # after readings of a file, and nobody has said from where
        self._called: set[Unit] = set()

    def _opened(self, path: str | Path | None, together: Together) -> History:
        """The history, where it was left; of several processes one writes, since a second would replace what it has written."""
        header = self._reader.header()
        refuse_other_samples(together.gather(header))
        opened = History.open(path, header) if path is not None and is_first_process() else None
        entries = together.gather(() if opened is None else opened.entries)[0]
        return History(header, entries) if opened is None else opened

    @property
    def by_all(self) -> bool:
        """Whether all processes of the training read, and call the same methods."""
        return self._reader.by_all

    @property
    def model(self) -> nn.Module:
        """The model that is read; assign another one of the same build where a training replaces it."""
        return self._reader.model

    @model.setter
    def model(self, model: nn.Module) -> None:
        other = replace(self.history.header, **identity_of(checked_model(model, by_all=self.by_all)))
        why = self.history.header.why_other(other)
        if why is not None:
            raise ModelError(f"The tracker cannot go on with this model: {why}. Track it with a history of its own.")
        self._reader.model = model

    @property
    def subset(self) -> Subset:
        """The training samples that are read."""
        return self._reader.subset

    @property
    def subset_test(self) -> Subset | None:
        """The test samples that are read, where there are any."""
        return self._reader.subset_test

    @property
    def every(self) -> int:
        """A reading at every so many epochs (or steps)."""
        return self._schedule.every

    @every.setter
    def every(self, every: int) -> None:
        self._schedule.every = checked_count("every", every)

    @property
    def number(self) -> int:
        """The epoch (or step) that was counted last."""
        return self._schedule.number

    @property
    def settled(self) -> Settled:
        """Whether the training has settled, by `stopping`: true or false, with its `reason` in words."""
        return self.history.settled(self.stopping)

    def epoch(self, number: int | None = None) -> Profile | None:
        """An epoch has ended: read the network where it is one of `every`; `number` where the loop counts itself."""
        self._called.add("epoch")
        if self._schedule.unit is None:
            self._schedule.unit = "epoch"
        if self._schedule.unit == "step":
            self._schedule.count_epoch(number)
            self._warn_of_another_unit()  # a loop that counts steps has taken some before its first epoch ends
            return None
        return self._count(number)

    def step(self, number: int | None = None) -> Profile | None:
        """A step has been taken: read the network where it is one of `every`.

        A loop that calls `step` first is numbered by steps, and `epoch` then counts epochs beside them; one that calls
        `epoch` first is numbered by epochs, and `step` does nothing.
        """
        self._called.add("step")
        if self._schedule.unit is None:
            self._schedule.unit = "step"
        return self._count(number) if self._schedule.unit == "step" else None

    def resume(self, number: int, *, epochs: int | None = None) -> Profile | None:
        """The model is as it was after epoch (or step) `number`, from a checkpoint: what was read after it is replaced.

        Where that reading is missing, since the training was killed before it, it is taken now. Where steps are numbered,
        `epochs` says how many were over; without it they are those of the latest reading before. After `resume(0)` the loop
        may count what it likes, epochs or steps.
        """
        return self._resumed(checked_number(number), epochs, passed=None)

    def _resumed(self, number: int, epochs: int | None, *, passed: int | None) -> Profile | None:
        """As `resume`; `passed` are the calls since the latest that was due, where they are known."""
        self._goes_on, self._due = False, None
        self.history.forget_after(number)
        due = self._schedule.resume(number, epochs, self.history.last, passed=passed)
        return self._read(number) if due and number not in self.history else None

    def state_dict(self) -> dict[str, Any]:
        """What to put into a checkpoint, so that `load_state_dict` goes on from there."""
        return self._schedule.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint, with the model as it holds it: see `resume`."""
        unit = state.get("unit")
        if unit not in ("epoch", "step", None) or not isinstance(state.get("number"), int):
            raise InputError(f"That is no state of a Tracker: it holds {', '.join(map(repr, state)) or 'nothing'}.")
        self._schedule.unit = unit
        self._resumed(checked_number(state["number"]), int(state.get("epochs", 0)), passed=state.get("passed"))

    def read(self) -> Profile | None:
        """Read the network now, whatever `every` says; the reading has the number that was counted last."""
        return self._read(self.number)

    def callback(self, framework: str, **options: Any) -> Any:
        """The tracker as a callback of `lightning`, `transformers`, `ignite`, `keras` or `skorch`, with its options."""
        from equisep.tracking.callback import callback_for

        return callback_for(framework, self, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The last epoch is read too where `every` passed it over, unless the training ended by an error."""
        if kind is None:
            self.finish()

    def finish(self) -> Profile | None:
        """The training is over: read its last epoch (or step) where `every` passed it over, and its weights are still there."""
        self._warn_of_another_unit()
        if self._due is None:
            return None
        number, before = self._due, self._due_changes
        if self._reader.changes() != before:
            self._due = None
            self._warn(
                "finish",
                f"{self._schedule.named.capitalize()} {number}, the last that was counted, was not read: the weights were "
                "changed after it, by what loads the best ones or by further steps. `every=1` reads each as it ends.",
            )
            return None
        return self._read(number)

    def __repr__(self) -> str:
        return f"<Tracker of {self._reader.name}: every {self.every}, {self.subset.samples} samples, {self.history!r}>"

    def _repr_html_(self) -> str:
        return self.history._repr_html_()

    def _count(self, number: int | None) -> Profile | None:
        if number is None and self._goes_on:
            unit, path = self._schedule.named, self.history.path
            self._warn(
                "goes on",
                f"The history `{path}` holds readings up to {unit} {self.number}, and this training is counted on from there. "
                "If it is another one, give another file; if it begins anew, say so: `tracker.resume(0)`, or "
                f"`tracker.{unit}(1)`.",
            )
        due = self._schedule.count(number, self.history.last)
        self.history.forget_after(self.number)  # a loop that counts back has begun anew from there
        if not due:
            self._due, self._due_changes = self.number, self._reader.changes()
            return None
        return self._read(self.number)

    def _warn_of_another_unit(self) -> None:
        """Where a file is of steps and the loop counts epochs, or the other way round, nothing is read."""
        last = self.history.last
        if last is not None and self._called and last.unit not in self._called:
            (other,) = self._called
            self._warn(
                "unit",
                f"The history is counted by {last.unit}s up to {last.unit} {last.number}, and this training calls "
                f"`tracker.{other}` alone: nothing is read. Call `tracker.{last.unit}` to go on with it; to begin anew by "
                f"{other}s call `tracker.resume(0)` first, or give another file.",
            )

    def _read(self, number: int) -> Profile | None:
        """One reading, into the history; whatever goes wrong with it is said there."""
        self._due = None
        if not self.by_all and not is_first_process():
            return None
        begun, unit = time.perf_counter(), self._schedule.named
        profile, failure, cosine = None, None, None
        try:
            profile = self._checked_change(self._reader.profile(f"{unit} {number}"))
            cosine = self._reader.minority_cosine(self.history.header.minority or ())
        except EquisepError as error:
            failure = str(error)
        except Exception as error:  # whatever a user's model raises, or a GPU without memory: the training goes on
            failure = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        if failure is not None:
            self._warn("failed", f"The reading of {unit} {number} failed: {failure}")
        entry = Entry(
            number=number,
            unit=unit,
            profile=profile,
            failure=failure,
            minority_cosine=cosine,
            epoch=self._schedule.epochs if unit == "step" else None,
            seconds=time.perf_counter() - begun,
        )
        try:
            self.history.append(entry)
        except EquisepError as error:
            self._warn("unwritten", f"The history is kept in memory only: {error}")
        return profile

    def _checked_change(self, profile: Profile) -> Profile:
        """The profile, with a word where nothing at all has changed since the reading before."""
        last, before, self._changes = self.history.last_read, self._changes, self._reader.changes()
        stepped = before is None or before != self._changes  # after a restart nobody knows what was stepped
        if last is None or last.profile is None or last.number >= self.number:
            return profile
        pairs = list(zip(profile.curve(), last.profile.curve(), strict=False))
        moved = [one for one, two in pairs if one is None or two is None or abs(one - two) > SAME * abs(two)]
        if moved or not pairs or stepped:  # where only the classifier learns, no layer before it changes
            return profile
        text = (
            f"D is at every site what it was at {last.unit} {last.number}: the weights that are read have not changed. If the "
            "training goes on with another model object, assign it: `tracker.model = model`."
        )
        self._warn("unchanged", text)
        return replace(profile, notes=(Note("unchanged", text), *profile.notes))

    def _warn(self, kind: str, text: str) -> None:
        """A warning, once of each kind."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, stacklevel=5)
