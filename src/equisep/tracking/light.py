"""The light reading of a network: one plan, made once, and samples drawn once, run as often as the training asks."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import nn

from equisep.data.feed import Feed, Unpack
from equisep.data.inputs import Inputs
from equisep.data.shard import Shard
from equisep.errors import InputError, ModelError
from equisep.files import encode
from equisep.labels import ClassNames
from equisep.measuring.distributed.control import in_group
from equisep.measuring.distributed.together import ALONE, Together
from equisep.measuring.fingerprint import Fingerprint
from equisep.measuring.measure import home_of, known_class_names, plan_for, run_plan
from equisep.measuring.notes import Notes
from equisep.measuring.plan import Plan
from equisep.measuring.request import Options
from equisep.peeled.classes import measured_cosines, small_classes
from equisep.results import Profile
from equisep.taps import (
    GRAINS,
    Reduction,
    Sites,
    choose,
    full_tensor,
    inner,
    is_divided,
    kind_name,
    parameters_of,
    random_state_kept,
    reading_mode,
    refuse_flattened,
    refuse_scripted,
    refuse_uninitialized,
    site_modules,
    site_record,
)
from equisep.tracking.history import Header
from equisep.tracking.metric import distributed
from equisep.tracking.processes import all_processes, refuse_other_samples
from equisep.tracking.sources import source_of
from equisep.tracking.subset import Subset, batch_size_for, draw_subset, first_samples, samples_per_class

# what stands in the name of a parameter for a while: a compiled module, and the path that Keras gives when it makes one
OTHER_NAMES = re.compile(r"_orig_mod\.|(?<=_torch_params\.)[^.]*/")


@dataclass(frozen=True, slots=True)
class _Check:
    """Makes inputs and labels of raw batches, for a model of one device and type."""

    what: str
    device: torch.device
    dtype: torch.dtype | None
    unpack: Unpack | None

    def __call__(self, raw: Any) -> Feed:
        return Feed(raw, what=self.what, device=self.device, dtype=self.dtype, unpack=self.unpack)


class LightReader:
    """A model, the plan by which it is read, and the samples that it is read on."""

    def __init__(
        self,
        model: nn.Module,
        batches: Any,
        test: Any,
        *,
        options: Options,
        sites: Sites,
        reduction: Reduction | None,
        per_class: int | None,
        class_names: ClassNames | None,
        unpack: Unpack | None,
        name: str | None,
        together: Together = ALONE,
    ) -> None:
        self.model, self.by_all = model, together is not ALONE
        self._options, self._sites, self._how, self._per_class = options, sites, reduction, per_class
        if not (isinstance(sites, str) and sites in GRAINS):
            choose(model, sites)
        where, dtype = home_of(model)
        check = _Check("training", where, dtype, unpack)
        feed = check(batches)
        source = source_of(feed)
        tried = first_samples(source, seed=options.seed)
        first, labels = check(tried).first()
        refuse_other_samples(together.gather(Fingerprint().after(first, labels.cpu())))  # before any runs them
        self._planned(check(tried), together)
        if sites == "auto":  # one grain is enough for a light reading: the one that `measure` reports
            self._sites = self._plan.probe.grain or sites
            self._options = replace(options, sites=site_record(self._sites))
            self._planned(check(tried), together)
        if together.lockstep:
            together.agree(self._plan, dtype)
        seen = self._plan.probe
        drawn: dict[str, Any] = {
            "classes": seen.classes,
            "owner": seen.owner,
            "per_class": per_class,
            "batch_size": self._batch_size(first, len(labels)),
            "seed": options.seed,
            "memory": options.memory,
            "mixed": options.reading == "mixed",
        }
        self.subset = draw_subset(source, check, **drawn)
        self.subset_test: Subset | None = None
        if test is not None:
            check_test = replace(check, what="test")
            self.subset_test = draw_subset(source_of(check_test(test)), check_test, **drawn)
        self.name = name or kind_name(model)
        self._class_names = known_class_names(class_names, feed, seen.classes)

    def _batch_size(self, first: Inputs, samples: int) -> int:
        """Samples read at once; where all processes read, every one has a batch."""
        size = batch_size_for(first, samples, reading=self._options.reading)
        if not self.by_all or self._options.reading != "eval":
            return size
        classes = self._plan.probe.classes
        drawn = classes * (samples_per_class(classes) if self._per_class is None else self._per_class)
        return min(size, -(-drawn // torch.distributed.get_world_size()))

    def profile(self, about: str) -> Profile:
        """The light profile of the model as it is: numbers per class at the last layer only; `about` says of when."""
        check_processes(self.model, self._options.reading, by_all=self.by_all)
        with random_state_kept(), _without_strictness():
            if self.by_all:
                with all_processes(self.model, about=about) as ranks:
                    profile = ranks.one(self._profile(ranks, ranks.shard))
            else:
                profile = self._profile()
        sites = tuple(replace(site, ncc_class_train=None, ncc_class_test=None) for site in profile.sites[:-1])
        every = (
            self.subset.class_sizes == self.subset.counts
        )  # else D of these samples is not that of the training data
        return replace(profile, sites=(*sites, *profile.sites[-1:]), whole=profile.whole if every else None)

    def _profile(self, together: Together = ALONE, shard: Shard | None = None) -> Profile:
        where, dtype = home_of(self.model)
        feed = Feed(self.subset.on(where), what="training", device=where, dtype=dtype, shard=shard)
        feed_test = None
        if self.subset_test is not None:
            feed_test = Feed(self.subset_test.on(where), what="test", device=where, dtype=dtype, shard=shard)
        if _shape_of(self.model) != self._shape:
            self._planned_anew(feed, together)
        elif together.lockstep:
            together.sample(feed)  # for processes that have fewer batches than others, and run with them all the same
        notes = Notes(self._plan_notes.ranked())
        for subset in (self.subset, self.subset_test):
            notes.extend(() if subset is None else subset.notes)
        profile, failure = run_plan(
            replace(self._plan, model=self.model, together=together),
            feed,
            feed_test,
            name=self.name,
            class_names=self._class_names,
            notes=notes,
        )
        if failure is not None:
            raise failure
        drawn = {note for subset in (self.subset, self.subset_test) if subset is not None for note in subset.notes}
        told = {note.code for note in drawn if note.code.startswith("absent-")}  # classes that were only not met
        return replace(profile, notes=tuple(note for note in profile.notes if note in drawn or note.code not in told))

    def _planned(self, feed: Feed, together: Together) -> None:
        """Plan what is measured, from a few samples."""
        notes = Notes()
        with random_state_kept():
            plan = plan_for(self.model, feed, None, self._sites, self._how, self._options, notes, together=together)
        self._plan: Plan = replace(plan, together=ALONE)
        self._plan_notes, self._shape = notes, _shape_of(self.model)

    def _planned_anew(self, feed: Feed, together: Together) -> None:
        """Plan for a model that was changed: its sites and classes must be what they were."""
        before, kept = self._plan.probe, (self._plan, self._plan_notes, self._shape)
        self._planned(feed, together)
        feed.restart()
        now = self._plan.probe
        if (before.sites, before.dims, before.classes) != (now.sites, now.dims, now.classes):
            self._plan, self._plan_notes, self._shape = kept
            raise ModelError(
                f"The model was changed while it trains: it has {len(now.sites)} sites and {now.classes} classes, and had "
                f"{len(before.sites)} and {before.classes}, or others of other widths. Track it with a new Tracker."
            )

    def changes(self) -> tuple[int, ...]:
        """How often each parameter of the model has been changed, as torch counts it."""
        return tuple(0 if each.is_inference() else each._version for each in parameters_of(self.model))

    def minority_cosine(self, minority: Sequence[int]) -> float | None:
        """Mean cosine between the classifier rows of these classes, where there are any."""
        layer = self._classifier() if minority else None
        if layer is None:
            return None
        with reading_mode(layer, "eval"):  # to look at a parametrized weight computes it, and in training changes it
            rows = full_tensor(layer.weight.detach()).to("cpu", torch.float64).numpy()
        small = torch.zeros(len(rows), dtype=torch.bool, device="cpu")
        small[list(minority)] = True
        return measured_cosines(rows, small.numpy()).minority

    def _classifier(self) -> nn.Linear | None:
        """The layer that reads the last site, or else the last linear layer with as many outputs as there are classes."""
        seen, modules = self._plan.probe, site_modules(self.model)
        if seen.classifier is not None:
            layer = modules[seen.classifier]
            assert isinstance(layer, nn.Linear)
            return layer
        linear = [module for module in modules.values() if isinstance(module, nn.Linear)]
        return next((layer for layer in reversed(linear) if layer.out_features == seen.classes), None)

    def header(self) -> Header:
        """What the history is of."""
        tested = self.subset_test
        sizes = self.subset.class_sizes
        minority = None if sizes is None else tuple(int(k) for k in small_classes(sizes).nonzero()[0])
        return Header(
            model=self.name,
            **identity_of(self.model),
            sites=self._plan.probe.sites,
            classes=self._plan.probe.classes,
            subset=self.subset.fingerprint + ("" if tested is None else f"+{tested.fingerprint}"),
            samples=self.subset.samples,
            samples_test=0 if tested is None else tested.samples,
            class_sizes=sizes,
            minority=minority,
            class_names=self._class_names,
            options={**encode(asdict(self._plan.options)), "memory": None, "per_class": self._per_class},
        )


def checked_model(model: nn.Module, *, by_all: bool) -> nn.Module:
    """The model, if it can be read by hooks, and by the processes that are to read it."""
    if not isinstance(model, nn.Module):
        raise InputError(f"`Tracker` needs a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="Tracker")
    refuse_uninitialized(model, asked="Tracker")
    refuse_flattened(model, asked="Tracker")
    empty = next((name for name, value in model.named_parameters() if value.is_meta), None)
    if empty is not None:
        raise ModelError(
            f"`Tracker` needs a model with weights, and `{empty}` lies on `meta`, which holds no numbers. Give the model a "
            "device (`model.to_empty(device=…)`) and its weights first."
        )
    check_processes(model, "eval", by_all=by_all)
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


def check_processes(model: nn.Module, reading: str, *, by_all: bool) -> None:
    """Raise where the processes that are to read a model cannot run it: others would be waited for, and they train."""
    if not by_all and is_divided(model) and in_group():
        raise ModelError(
            "The processes of this training hold the model together (`fully_shard` or tensor parallelism), and none of them can "
            "run it alone. Make the tracker in all of them with `ranks='all'`, and call the same methods of it in all."
        )
    if reading != "eval" and distributed() and any(isinstance(each, nn.SyncBatchNorm) for each in model.modules()):
        raise ModelError(
            "SyncBatchNorm asks all processes for the statistics of a batch, and one of them reads. Track with `reading='eval'`."
        )


def identity_of(model: nn.Module) -> dict[str, Any]:
    """The class of a model, and its parameters by name and shape, whatever it is wrapped in."""
    core = inner(model)
    shapes = [(OTHER_NAMES.sub("", name), tuple(value.shape)) for name, value in core.named_parameters()]
    mark = zlib.crc32(repr(shapes).encode())
    return {
        "module": kind_name(core),
        "parameters": sum(value.numel() for value in core.parameters()),
        "weights": f"{mark:08x}",
    }


def _shape_of(model: nn.Module) -> tuple[tuple[str, type, int], ...]:
    """Every module by name, with its class and how many numbers it holds: a model whose modules differ was changed."""
    return tuple(
        (name, type(module), sum([value.numel() for value in module._parameters.values() if value is not None]))
        for name, module in site_modules(model).items()
    )
