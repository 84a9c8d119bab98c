"""Tracker: the light profile of a network while any loop trains it, which must not notice."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn

from equisep.data.feed import Feed, Unpack
from equisep.errors import EquisepError, InputError, ModelError
from equisep.files import encode
from equisep.measuring.measure import home_of, known_class_names, plan_for, run_plan
from equisep.measuring.notes import Notes
from equisep.measuring.options import MEMORY, Options
from equisep.measuring.plan import Plan
from equisep.peeled.minority import measured_cosines, small_classes
from equisep.results import Note, Profile, Reading, reading_named
from equisep.separation.centers import PERFECT
from equisep.taps import (
    GRAINS,
    Reduction,
    ReductionLike,
    Sites,
    choose,
    inner,
    random_state_kept,
    refuse_scripted,
    refuse_uninitialized,
    site_modules,
    site_record,
)
from equisep.tracking.history import Entry, Header, History, Unit
from equisep.tracking.sources import source_of
from equisep.tracking.stopping import Settled, Stopping
from equisep.tracking.subset import Subset, batch_size_for, draw_subset, first_samples

LIGHT = ("fuzziness", "collapse", "cdnv", "ncc")  # what a light reading has: no chance level, no intervals, no pictures
SAME = 1e-12  # relative: curves of D nearer to each other are of the same weights


class Tracker:
    """Reads how a network separates its classes while a loop of yours trains it.

    >>> tracker = equisep.Tracker(model, loader, test=test_loader, history="run.jsonl")
    >>> for epoch in range(1, epochs + 1):
    ...     train_one_epoch(model, loader, optimizer)
    ...     tracker.epoch(epoch)
    ...     if tracker.settled:
    ...         break

    model       as in `equisep.measure`; it is read where it is, and may be compiled, wrapped or moved later
    batches     the training data: a loader, a data set, a pair (X, Y), or any iterable of batches that can be read again.
                A subset is drawn once, `per_class` samples of each class, by the `seed`; the loader itself is left alone
    test        test data, of which as many are drawn
    every       a reading at every so many calls of `epoch` (or of `step`, where that is what the loop calls)
    history     a file of JSON lines to write; where it holds the readings of this training already, it goes on
    per_class   samples of each class: by default about 500 in all, from 5 to 50 per class
    stopping    what `settled` means: see `equisep.tracking.Stopping`
    sites       as in `measure`; of `auto` the one grain is read that `measure` would report
    metrics     of the reading: `fuzziness`, `collapse`, `cdnv` and `ncc` by default; others as in `measure`
    reduction, reading, classes, class_names, classifier, epsilon, memory, seed, unpack, name     as in `measure`

    Numbers are those of `equisep.measure` on the same samples. D depends on how many samples there are against how many
    features: a history compares epochs, and `measure` on all the data says how large D is.

    Weights, optimizer, random states, the order of the loader and every flag of the model are what they would be without.
    A reading that fails says so in the history, and warns once: the training goes on.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Any,
        *,
        test: Any = None,
        every: int = 1,
        history: str | Path | None = None,
        per_class: int | None = None,
        sites: Sites = "auto",
        reduction: ReductionLike = "auto",
        reading: Reading = "eval",
        metrics: Sequence[str] = LIGHT,
        classes: int | None = None,
        class_names: Sequence[str] | None = None,
        classifier: str | None = None,
        epsilon: float = PERFECT,
        memory: int | None = None,
        seed: int = 0,
        unpack: Unpack | None = None,
        stopping: Stopping | None = None,
        name: str | None = None,
    ) -> None:
        _check_counts(every=every, per_class=per_class)
        if reading == "drawn":
            raise InputError(
                "`Tracker` reads `eval` or `mixed`: the order in which all samples were drawn is not that of some of them."
            )
        self._model = _checked_model(model)
        self.every = every
        self.stopping = Stopping() if stopping is None else stopping
        self._how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
        self._sites: Sites = sites
        options = Options(
            sites=site_record(sites),
            reduction="auto" if self._how is None else self._how.name,
            reading=reading_named(reading),
            metrics=tuple(metrics),
            classes=classes,
            classifier=classifier,
            epsilon=epsilon,
            intervals="none",
            memory=MEMORY if memory is None else memory,
            coordinates=0,
            seed=seed,
        )
        if not (isinstance(sites, str) and sites in GRAINS):
            choose(model, sites)
        where, dtype = home_of(model)

        def check(raw: Any, what: str = "training") -> Feed:
            return Feed(raw, what=what, device=where, dtype=dtype, unpack=unpack)

        feed = Feed(batches, what="training", device=where, dtype=dtype, unpack=unpack)
        source = source_of(feed)
        self._plan_notes = Notes()
        self._options = options
        tried = first_samples(source, seed=seed)
        self._plan = self._planned(check(tried))
        if sites == "auto":  # one grain is enough for a light reading: the one that `measure` reports
            self._sites = self._plan.probe.grain or sites
            self._options = replace(options, sites=site_record(self._sites))
            self._plan_notes = Notes()
            self._plan = self._planned(check(tried))
        self._shape = _shape_of(model)
        seen = self._plan.probe
        first, labels = check(tried).first()
        drawn: dict[str, Any] = {
            "classes": seen.classes,
            "owner": seen.owner,
            "per_class": per_class,
            "batch_size": batch_size_for(first, len(labels), reading=options.reading),
            "seed": seed,
            "memory": options.memory,
            "mixed": options.reading == "mixed",
        }
        self.subset = draw_subset(source, check, **drawn)
        self.subset_test: Subset | None = None
        if test is not None:
            feed_test = Feed(test, what="test", device=where, dtype=dtype, unpack=unpack)
            self.subset_test = draw_subset(source_of(feed_test), lambda raw: check(raw, "test"), **drawn)
        self._name = name or type(inner(model)).__name__
        self._class_names = known_class_names(class_names, feed, seen.classes)
        header = self._header(per_class)
        # of several processes one writes: a second one would replace what the first has written
        alone = history is None or not _is_first_process()
        self.history = History(header) if history is None or alone else History.open(history, header)
        last = self.history.last
        self._unit: Unit | None = None if last is None else last.unit
        self._number = 0 if last is None else last.number
        self._epochs = (last.epoch or 0) if last is not None else 0
        self._due: int | None = None  # a call that `every` passed over, for the end of a `with`
        self._warned: set[str] = set()

    @property
    def model(self) -> nn.Module:
        """The model that is read; assign another one of the same build where a training replaces it."""
        return self._model

    @model.setter
    def model(self, model: nn.Module) -> None:
        before, self._model = self._model, _checked_model(model)
        other = replace(self.history.header, **_identity(model))
        why = self.history.header.why_other(other)
        if why is not None:
            self._model = before
            raise ModelError(f"The tracker cannot go on with this model: {why}. Track it with a history of its own.")

    @property
    def number(self) -> int:
        """The epoch (or step) that was counted last."""
        return self._number

    @property
    def settled(self) -> Settled:
        """Whether the training has settled, by `stopping`: true or false, with its `reason` in words."""
        return self.history.settled(self.stopping)

    def epoch(self, number: int | None = None) -> Profile | None:
        """An epoch has ended: read the network where it is one of `every`; `number` where the loop counts itself."""
        if self._unit is None:
            self._unit = "epoch"
        if self._unit == "step":
            self._epochs = self._epochs + 1 if number is None else _checked_number(number)
            return None
        return self._count(number)

    def step(self, number: int | None = None) -> Profile | None:
        """A step has been taken: read the network where it is one of `every`.

        A loop that calls `step` first is numbered by steps, and `epoch` then counts epochs beside them; one that calls
        `epoch` first is numbered by epochs, and `step` does nothing.
        """
        if self._unit is None:
            self._unit = "step"
        return self._count(number) if self._unit == "step" else None

    def resume(self, number: int) -> Profile | None:
        """The model is as it was after epoch (or step) `number`, from a checkpoint: what was read after it is replaced.

        Where that reading is missing, since the training was killed before it, it is taken now.
        """
        self._number = _checked_number(number)
        self.history.forget_after(number)
        due = self._number > 0 and self._number % self.every == 0 and self._number not in self.history
        return self._read(self._number) if due else None

    def state_dict(self) -> dict[str, Any]:
        """What to put into a checkpoint, so that `load_state_dict` goes on from there."""
        return {"number": self._number, "unit": self._unit, "epochs": self._epochs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint, with the model as it holds it: see `resume`."""
        unit = state.get("unit")
        if unit not in ("epoch", "step", None) or not isinstance(state.get("number"), int):
            raise InputError(f"That is no state of a Tracker: it holds {', '.join(map(repr, state)) or 'nothing'}.")
        self._unit, self._epochs = unit, int(state.get("epochs", 0))
        self.resume(state["number"])

    def read(self) -> Profile | None:
        """Read the network now, whatever `every` says; the reading has the number that was counted last."""
        return self._read(self._number)

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
        if kind is None and self._due is not None:
            self._read(self._due)

    def __repr__(self) -> str:
        return f"<Tracker of {self._name}: every {self.every}, {self.subset.samples} samples, {self.history!r}>"

    def _count(self, number: int | None) -> Profile | None:
        self._number = self._number + 1 if number is None else _checked_number(number)
        self.history.forget_after(self._number)  # a loop that counts back has begun anew from there
        if self._number % self.every:
            self._due = self._number
            return None
        return self._read(self._number)

    def _read(self, number: int) -> Profile | None:
        """One reading, into the history; whatever goes wrong with it is said there."""
        self._due = None
        if not _is_first_process():
            return None
        begun = time.perf_counter()
        profile, failure, cosine = None, None, None
        try:
            _check_alone(self._model, self._options.reading)
            with random_state_kept(), _without_strictness():
                profile = self._profile()
                cosine = self._minority_cosine()
        except EquisepError as error:
            failure = str(error)
        except Exception as error:  # whatever a user's model raises, or a GPU without memory: the training goes on
            failure = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        if failure is not None:
            self._warn("failed", f"The reading of {self._unit or 'epoch'} {number} failed: {failure}")
        entry = Entry(
            number=number,
            unit=self._unit or "epoch",
            profile=profile,
            failure=failure,
            minority_cosine=cosine,
            epoch=self._epochs if self._unit == "step" else None,
            seconds=time.perf_counter() - begun,
        )
        try:
            self.history.append(entry)
        except EquisepError as error:
            self._warn("unwritten", f"The history is kept in memory only: {error}")
        return profile

    def _profile(self) -> Profile:
        """The light profile of the model as it is."""
        notes = Notes(self._plan_notes.ranked())
        where, dtype = home_of(self._model)
        feed = Feed(self.subset.on(where), what="training", device=where, dtype=dtype)
        feed_test = None
        if self.subset_test is not None:
            feed_test = Feed(self.subset_test.on(where), what="test", device=where, dtype=dtype)
        shape = _shape_of(self._model)
        if shape != self._shape:
            self._replan(feed)
            self._shape = shape
        for subset in (self.subset, self.subset_test):
            notes.extend(() if subset is None else subset.notes)
        profile, failure = run_plan(
            replace(self._plan, model=self._model),
            feed,
            feed_test,
            name=self._name,
            class_names=self._class_names,
            notes=notes,
        )
        if failure is not None:
            raise failure
        return self._checked_change(_lightened(profile))

    def _planned(self, feed: Feed) -> Plan:
        """What is measured, from a few samples."""
        with random_state_kept():
            return plan_for(self._model, feed, None, self._sites, self._how, self._options, self._plan_notes)

    def _replan(self, feed: Feed) -> None:
        """The plan of a model that was changed: its sites and classes must be what they were."""
        before = self._plan.probe
        self._plan_notes = Notes()
        plan = self._planned(feed)
        feed.restart()
        same = (before.sites, before.dims, before.classes) == (plan.probe.sites, plan.probe.dims, plan.probe.classes)
        if not same:
            raise ModelError(
                f"The model was changed while it trains: it has {len(plan.probe.sites)} sites and {plan.probe.classes} classes, "
                f"and had {len(before.sites)} and {before.classes}, or others of other widths. Track it with a new Tracker."
            )
        self._plan = plan

    def _checked_change(self, profile: Profile) -> Profile:
        """The profile, with a word where nothing at all has changed since the reading before."""
        last = self.history.last_read
        if last is None or last.profile is None or last.number >= self._number:
            return profile
        pairs = list(zip(profile.curve(), last.profile.curve(), strict=False))
        moved = [one for one, two in pairs if one is None or two is None or abs(one - two) > SAME * abs(two)]
        if moved or not pairs:
            return profile
        text = (
            f"D is at every site what it was at {last.unit} {last.number}: the weights that are read have not changed. If the "
            "training goes on with another model object, assign it: `tracker.model = model`."
        )
        self._warn("unchanged", text)
        return replace(profile, notes=(Note("unchanged", text), *profile.notes))

    def _minority_cosine(self) -> float | None:
        """Mean cosine between the classifier rows of the minority, where there is one."""
        minority, layer = self.history.header.minority, self._classifier()
        if not minority or layer is None:
            return None
        rows = layer.weight.detach().to("cpu", torch.float64).numpy()
        small = torch.zeros(len(rows), dtype=torch.bool)
        small[list(minority)] = True
        return measured_cosines(rows, small.numpy()).minority

    def _classifier(self) -> nn.Linear | None:
        """The layer that reads the last site, or else the last linear layer with as many outputs as there are classes."""
        seen, modules = self._plan.probe, site_modules(self._model)
        if seen.classifier is not None:
            layer = modules[seen.classifier]
            assert isinstance(layer, nn.Linear)
            return layer
        linear = [module for module in modules.values() if isinstance(module, nn.Linear)]
        return next((layer for layer in reversed(linear) if layer.out_features == seen.classes), None)

    def _header(self, per_class: int | None) -> Header:
        """What the history is of."""
        tested = self.subset_test
        sizes = self.subset.class_sizes
        minority = None if sizes is None else tuple(int(k) for k in small_classes(sizes).nonzero()[0])
        return Header(
            model=self._name,
            **_identity(self._model),
            sites=self._plan.probe.sites,
            classes=self._plan.probe.classes,
            subset=self.subset.fingerprint + ("" if tested is None else f"+{tested.fingerprint}"),
            samples=self.subset.samples,
            samples_test=0 if tested is None else tested.samples,
            class_sizes=sizes,
            minority=minority,
            class_names=self._class_names,
            options={**encode(asdict(self._plan.options)), "memory": None, "per_class": per_class},
        )

    def _warn(self, kind: str, text: str) -> None:
        """A warning, once of each kind."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, stacklevel=5)


def _checked_model(model: nn.Module) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise InputError(f"`Tracker` needs a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="Tracker")
    refuse_uninitialized(model, asked="Tracker")
    _check_alone(model, "eval")
    return model


@contextmanager
def _without_strictness() -> Iterator[None]:
    """Where a training insists on deterministic algorithms, a reading takes them too where they exist, and others where not.

    Some sums of a GPU have none, and would raise; what they round away touches no weight.
    """
    strict = torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
    if not strict:
        yield
        return
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deterministic")
            yield
    finally:
        torch.use_deterministic_algorithms(True)


def _check_alone(model: nn.Module, reading: str) -> None:
    """Raise where one process cannot run the model: the others would be waited for, and they train."""
    if any(type(value).__name__ == "DTensor" for value in model.parameters()) or any(
        type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()
    ):
        raise ModelError(
            "The model is sharded over processes (FSDP): none of them holds its weights. Measure a checkpoint of it instead."
        )
    if reading != "eval" and _is_spread() and any(isinstance(each, nn.SyncBatchNorm) for each in model.modules()):
        raise ModelError(
            "SyncBatchNorm asks all processes for the statistics of a batch, and one of them reads. Track with `reading='eval'`."
        )


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        known = value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)
        if not known or (name == "every" and value is None):
            words = "counts epochs or steps" if name == "every" else "is a number of samples"
            raise InputError(f"`{name}` {words}, 1 or more; found {value!r}.")


def _checked_number(number: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise InputError(f"Epochs and steps are whole numbers from 0 on; found {number!r}.")
    return number


def _identity(model: nn.Module) -> dict[str, Any]:
    """The class of a model, and its parameters by name and shape, whatever it is wrapped in."""
    core = inner(model)
    shapes = [(name.replace("_orig_mod.", ""), tuple(value.shape)) for name, value in core.named_parameters()]
    mark = zlib.crc32(repr(shapes).encode())
    return {
        "module": type(core).__name__,
        "parameters": sum(value.numel() for value in core.parameters()),
        "weights": f"{mark:08x}",
    }


def _shape_of(model: nn.Module) -> tuple[tuple[str, type, int], ...]:
    """Every module by name, with its class and how many numbers it holds: a model whose modules differ was changed."""
    return tuple(
        (name, type(module), sum(value.numel() for value in module._parameters.values() if value is not None))
        for name, module in site_modules(model).items()
    )


def _lightened(profile: Profile) -> Profile:
    """The profile with numbers per class at the last layer only."""
    sites = tuple(replace(site, ncc_class_train=None, ncc_class_test=None) for site in profile.sites[:-1])
    return replace(profile, sites=(*sites, *profile.sites[-1:]))


def _is_spread() -> bool:
    """Whether this is one of several processes of a training."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _is_first_process() -> bool:
    """Of a training in several processes one reads and writes."""
    return not _is_spread() or torch.distributed.get_rank() == 0
