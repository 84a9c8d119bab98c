"""measure: one call from a model and its data to a profile."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import nn

from equisep.data.feed import Feed, Unpack
from equisep.data.shard import Shard
from equisep.devices import provenance, tf32_allowed, usable_device
from equisep.errors import EquisepError
from equisep.labels import ClassNames, check_range, names_of_classes
from equisep.law.effective_depth import PERFECT
from equisep.measuring.distributed.control import declining, in_group
from equisep.measuring.distributed.ranks import processes
from equisep.measuring.distributed.together import ALONE, Together
from equisep.measuring.forward import exact_arithmetic
from equisep.measuring.notes import Notes, note_batch_statistics, note_no_picture, note_tf32
from equisep.measuring.passes import test_passes, training_passes
from equisep.measuring.plan import Plan
from equisep.measuring.probe import attends_to_patches, check_batch, probe, reduction_for
from equisep.measuring.profile import profile_of
from equisep.measuring.readings import check_repeatable, distinct_readings, with_other_readings
from equisep.measuring.request import Feeds, Intervals, Options, Request
from equisep.progress import Progress, Watched, silent, watched
from equisep.results import Note, Profile, Reading
from equisep.separation import Center, Normalization, Weighting
from equisep.taps import (
    Calls,
    Reduction,
    ReductionLike,
    Sites,
    full_tensor,
    random_state_kept,
    reading_mode,
    site_modules,
    wrapper_notes,
)


@watched
def measure(
    model: nn.Module,
    train: Any,
    test: Any = None,
    *,
    sites: Sites = "auto",
    calls: Calls = "each",
    reduction: ReductionLike = "auto",
    reading: Reading = "eval",
    readings: str | Sequence[str] | None = None,
    metrics: str | Sequence[str] | None = None,
    classes: int | None = None,
    class_names: ClassNames | None = None,
    classifier: str | None = None,
    weighting: Weighting = "sample",
    center: Center | None = None,
    normalization: Normalization = "none",
    tol: float | None = None,
    epsilon: float = PERFECT,
    intervals: Intervals = "auto",
    resamples: int = 200,
    level: float = 0.95,
    whole: bool | None = None,
    memory: int | None = None,
    coordinates: int = 300,
    seed: int = 0,
    precision: str = "float64",
    unpack: Unpack | None = None,
    device: str | torch.device | None = None,
    group: bool = True,
    name: str | None = None,
    progress: Watched = None,
    mode: str | None = None,
) -> Profile:
    """Measure how a model separates its classes, site by site.

    train, test    any iterable of (x, y) batches, a torch Dataset, or a pair (X, Y) of tensors or arrays. x may be a
                   mapping by argument name, and a batch a mapping with its labels under `labels`, as Hugging Face has them.
    sites          `auto` (both grains; `blocks` are reported where a block repeats three times or more, else `layers`),
                   `layers`, `blocks`, or module names, globs, module classes, functions of (name, module), or a list of
                   these; `fc:in` is the input of `fc`. The raw input is site 0, unless it is tokens.
    calls          of a module called more than once, `each` call is a site (`relu`, `relu:2`, …) or only the `last`.
    reduction      how features become vectors: `auto` (`mean` over the real tokens of sequences, else `flatten`), `flatten`,
                   `mean`, `positions`, `first`, `last`, `tokens`, `pca=m`, or a function; see `equisep.taps.Reduction`.
    reading        how BatchNorm normalizes: `eval` by its running statistics, `mixed` by those of class-mixed batches, `drawn` by
                   those of batches in the order in which the samples were drawn (He & Su's program). Pairs, data sets and
                   `Batches` are put into batches for each; loaders are read as they come, and `mixed` refuses batches that
                   are less class-mixed than chance.
    readings       several of them in one call: the profile is of the first, `profile.readings` holds all, `profile.company` D
                   over D in `eval`, site by site. Each costs as much as a call of its own, less the picture.
    metrics        some of `equisep.measuring.METRICS`; all by default.
    classes        K; by default the width of the model's output.
    class_names    of the K classes, in order or by number (`id2label`, `class_to_idx`); by default those that the data tell.
    classifier     the linear layer that reads the last site; found by itself where there is one.
    weighting, center, normalization, tol     the conventions of D: see `equisep.separation.Convention`.
    epsilon        nearest-center accuracy of 1 − ε counts as separated, for the effective depth (Galanti & Galanti: 99 %).
    intervals      `auto` and `jackknife` (over folds), `bootstrap` (over samples, from `resamples`; needs all features in
                   memory), `none`; at `level`.
    whole          whether the training data are all there are, as is thought unless told: D is theirs, exactly. False where they
                   are a sample of more, as test data always are: then D of the population is the question
                   (`SiteReading.corrected`, the law `profile.laws["corrected"]`), which plain D understates where features
                   are many and samples few.
    memory         bytes of features to keep (1 GiB); beyond it the first sites, whose features are not kept, are read twice:
                   their memory stays O(K·d), and the second forward pass ends after the last of them. No number depends on it.
    coordinates    how many samples to keep as two principal components for plots; 0 keeps none.
    precision      `float32` computes products in float32 on a CPU, in about half the time where classes are many, as long as it
                   is proven that D keeps six digits; D of few classes, and all on a GPU, is float64.
    unpack         a function that makes (x, y) of a batch that is something else.
    device         measure there; the model is moved for the while and moved back.
    group          inside an initialized process group all ranks measure as one, each with its part of the data, and each gets the
                   same profile (docs/distributed.md); False measures in this process alone.
    progress       bars where someone watches, unless False; or a callback: see `equisep.progress`.
    mode           the former name of `reading`.

    The model, its buffers, gradients and flags, and all random states are afterwards exactly as they were, apart from what
    its own forward pass writes in `eval` beside buffers (a counter of calls that is a plain number, say).

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> profile = equisep.measure(model, (x, y))  # or any iterable of (x, y) batches
    >>> [site.name for site in profile.sites]
    ['input', 'blocks.0', 'blocks.1', 'blocks.2']
    >>> f"{profile.sites[0].fuzziness:.2f}"  # D of the input
    '1.17'
    >>> profile.law.verdict
    'no law'
    """
    given = dict(locals())  # the arguments, by name
    with declining(group=group):
        request = Request.of(given)
    return answered(request, group=group)


def request_for(model: nn.Module, train: Any, test: Any = None, **options: Any) -> Request:
    """What a call of `measure` with these arguments would ask for."""
    given = inspect.signature(measure).bind(model, train, test, **options)
    given.apply_defaults()
    return Request.of(given.arguments)


def answered(request: Request, *, dealt: bool = False, group: bool = True) -> Profile:
    """The profile that was asked for, in one process or by all processes of a group, unless `group` says otherwise.

    Each process of a group passes its part of the data; or all the same, of which `dealt` gives each its batches.
    """
    with placed(request.model, request.device), random_state_kept(request.train, request.test):
        if not (group and in_group()):
            profile, failure = measured(request)
        else:
            tested = "none" if request.test is None else "given"
            facts = {"readings": list(request.readings), "test data": tested}
            with processes(request.model, dealt=dealt, facts=facts) as ranks:
                profile, failure = measured(request, shard=ranks.shard if dealt else None, together=ranks)
                profile = ranks.one(profile)
    if failure is not None:
        failure.profile = profile
        raise failure
    return profile


@dataclass(frozen=True, slots=True)
class Opening:
    """A request once the first samples were seen: the data and the plan of every reading.

    `taken` has for each reading the one whose numbers it has; `notes` is what needs care so far.
    """

    request: Request
    plan: Plan
    feeds: dict[Reading, Feeds]
    taken: dict[Reading, Reading]
    class_names: tuple[str, ...] | None
    notes: Notes

    def plan_of(self, reading: Reading) -> Plan:
        """The plan of one reading: all but the first go without the picture."""
        if reading == self.request.readings[0]:
            return self.plan
        return replace(self.plan, options=replace(self.plan.options, reading=reading, coordinates=0))

    def notes_of(self, reading: Reading) -> Notes:
        """Where the notes of one reading are gathered."""
        return self.notes if reading == self.request.readings[0] else Notes(self.plan.probe.notes)


def opened(request: Request, *, shard: Shard | None = None, together: Together = ALONE) -> Opening:
    """Look at the first samples; wrong data and a wrong model are refused here."""
    where, dtype = home_of(request.model)
    names, notes = request.readings, Notes()
    # refuses data without an order before any work
    feeds = {each: request.feeds(each, device=where, dtype=dtype, shard=shard) for each in names}
    feed, feed_test = feeds[names[0]]
    taken = distinct_readings(request.model, names, (feed, feed_test))
    check_repeatable(taken, (feed, feed_test))
    plan = plan_for(
        request.model, feed, feed_test, request.sites, request.reduction, request.options, notes, together=together
    )
    together.agree(plan, dtype, taken)
    known = known_class_names(request.class_names, feed, plan.probe.classes)
    return Opening(request, plan, feeds, taken, known, notes)


def measured(
    request: Request, *, shard: Shard | None = None, together: Together = ALONE
) -> tuple[Profile, EquisepError | None]:
    """The profile that was asked for; an error in the test data comes back beside what the training data gave."""
    opening = opened(request, shard=shard, together=together)
    names, progress = request.readings, request.progress

    def run(which: Reading) -> tuple[Profile, EquisepError | None]:
        if which != names[0]:
            for each in opening.feeds[which]:
                if each is not None:
                    with random_state_kept(each.source):
                        together.sample(each)  # which tells the size of its batches
        return run_plan(
            opening.plan_of(which),
            *opening.feeds[which],
            name=request.title,
            class_names=opening.class_names,
            notes=opening.notes_of(which),
            progress=progress
            if which == names[0]
            else lambda what, done, total: progress(f"{which}: {what}", done, total),
        )

    profile, failure = run(names[0])
    if failure is None and len(names) > 1:
        profile, failure = with_other_readings(profile, names, opening.taken, run)
    return profile, failure


def known_class_names(names: ClassNames | None, feed: Feed, classes: int) -> tuple[str, ...] | None:
    """The names of the K classes: as given, or as the data tell where they tell of K classes."""
    if names is None:
        return feed.class_names if feed.class_names is not None and len(feed.class_names) == classes else None
    return names_of_classes(names, classes)


def plan_for(
    model: nn.Module,
    feed: Feed,
    feed_test: Feed | None,
    sites: Sites,
    reduction: Reduction | None,
    options: Options,
    notes: Notes,
    *,
    together: Together = ALONE,
) -> Plan:
    """What is to be measured, from the first samples; a wrong label in the test data is found before any reading."""
    with random_state_kept(feed.source):  # a reading that begins anew then shuffles alike
        inputs, labels = together.sample(feed)
    check_batch(model, len(labels), options, index=0, what="training")
    patches = reduction is None and attends_to_patches(model, inputs)
    if reduction is None:
        reduction = reduction_for(model, inputs, notes)
        options = replace(options, reduction=reduction.name)
    with random_state_kept():
        seen = probe(model, inputs, labels, sites, reduction, options, raw=not patches)
    notes.extend(seen.notes)
    if feed_test is not None:
        with random_state_kept(feed_test.source):
            _, first = together.sample(feed_test)
        check_range(first, seen.classes, owner=seen.owner, where="the first batch of the test data")
    return Plan(model, seen, reduction, options, together=together)


def run_plan(
    plan: Plan,
    feed: Feed,
    feed_test: Feed | None,
    *,
    name: str,
    class_names: tuple[str, ...] | None,
    notes: Notes,
    progress: Progress = silent,
) -> tuple[Profile, EquisepError | None]:
    """The profile of a plan on these data; an error in the test data comes back beside what the training data gave.

    One plan serves as often as the model is read: its weights are those of now.
    """
    plan = with_layer(plan)
    profile, failure = _statistics(plan, feed, feed_test, name, class_names, notes, progress)
    feeds = [each for each in (feed, feed_test) if each is not None]
    told = plan.together.gather([(each.batch_sizes, list(each.notes.values())) for each in feeds])  # of every process
    notes.extend(note for sets in told for _, own in sets for note in own)
    notes.extend(model_notes(plan.model))
    note_no_picture(notes, pictured=plan.pictured, wanted=plan.options.coordinates > 0)
    sizes = [set[int]().union(*(sets[number][0] for sets in told)) for number in range(len(feeds))]
    made_by = {**provenance_of(plan.model), **({"ranks": len(told)} if len(told) > 1 else {})}
    return signed(profile, sizes, made_by, notes), failure


def model_notes(model: nn.Module) -> tuple[Note, ...]:
    """What needs care about the model itself: compiled code, batches that decide, and products that a GPU shortens."""
    notes = Notes(wrapper_notes(model))
    note_batch_statistics(notes, model)
    note_tf32(notes, model, *home_of(model))
    return notes.ranked()


def provenance_of(model: nn.Module) -> dict[str, Any]:
    """Versions, device and number type of a measurement."""
    where, dtype = home_of(model)
    return {**provenance(where, dtype), "tf32": tf32_allowed(where)}


def signed(profile: Profile, batch_sizes: Sequence[Iterable[int]], made_by: Mapping[str, Any], notes: Notes) -> Profile:
    """The profile with the sizes of its batches, training data first, what it was computed with, and its notes."""
    ends = ("", "_test")
    sizes = {f"batch_sizes{end}": sorted(set(each), reverse=True) for each, end in zip(batch_sizes, ends, strict=False)}
    return replace(profile, settings={**profile.settings, **sizes}, provenance=dict(made_by), notes=notes.ranked())


def with_layer(plan: Plan) -> Plan:
    """The plan with its classifier as it is now."""
    return replace(plan, layer=_classifier(plan.model, plan.probe.classifier, plan.options))


def _classifier(model: nn.Module, name: str | None, options: Options) -> nn.Linear | None:
    """The layer as the forward pass has it, copied: a parametrized weight is computed anew whenever it is looked at."""
    if name is None:
        return None
    layer = site_modules(model)[name]
    assert isinstance(layer, nn.Linear)
    plain = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
    with reading_mode(layer, options.reading):
        plain.weight = nn.Parameter(full_tensor(layer.weight.detach()).clone(), requires_grad=False)
        if layer.bias is not None:
            plain.bias = nn.Parameter(full_tensor(layer.bias.detach()).clone(), requires_grad=False)
    return plain


def _statistics(
    plan: Plan,
    feed: Feed,
    feed_test: Feed | None,
    title: str,
    class_names: tuple[str, ...] | None,
    notes: Notes,
    progress: Progress,
) -> tuple[Profile, EquisepError | None]:
    """The profile of both data sets; an error in the test data comes back beside what the training data gave."""
    train = training_passes(plan, feed, notes=notes, progress=progress)
    plan = replace(plan, components=train.components)
    test, failure = None, None
    if feed_test is not None:
        try:
            test = test_passes(plan, feed_test, train=train.sites, notes=notes, progress=progress)
        except EquisepError as error:
            plan.together.tell(error)
            failure = error
    with exact_arithmetic(home_of(plan.model)[0]):
        return profile_of(plan, train, test, name=title, class_names=class_names, notes=notes), failure


@contextmanager
def placed(model: nn.Module, device: str | torch.device | None) -> Iterator[None]:
    """The model on `device` for the while, then back where it was."""
    before = home_of(model)[0]
    there = before if device is None else usable_device(device, asked="measure")
    if there == before:
        yield
        return
    try:
        model.to(there)
        yield
    finally:
        model.to(before)


def home_of(model: nn.Module) -> tuple[torch.device, torch.dtype | None]:
    """Where a model's parameters live, and their floating type."""
    tensors = chain(
        model.parameters(), model.buffers()
    )  # looked at only as far as is needed: large models have thousands
    first = next(tensors, None)
    if first is None:
        return torch.device("cpu"), None
    return first.device, next((each.dtype for each in chain([first], tensors) if each.is_floating_point()), None)
