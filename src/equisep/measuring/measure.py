"""measure: one call from a model and its data to a profile."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from torch import nn

from equisep.data.feed import Feed, Unpack
from equisep.devices import provenance, tf32_allowed, usable_device
from equisep.errors import EquisepError, InputError
from equisep.labels import check_range
from equisep.measuring.forward import exact_arithmetic
from equisep.measuring.notes import Notes, note_tf32
from equisep.measuring.options import MEMORY, METRICS, Intervals, Options
from equisep.measuring.passes import test_passes, training_passes
from equisep.measuring.plan import Plan
from equisep.measuring.probe import check_batch, probe, reduction_for
from equisep.measuring.profile import profile_of
from equisep.measuring.readings import check_repeatable, distinct_readings, with_other_readings
from equisep.progress import Progress, Watched, callback, silent, watched
from equisep.results import Profile, Reading, reading_named
from equisep.results.readings import readings_named
from equisep.separation import Center, Normalization, Weighting
from equisep.separation.centers import PERFECT
from equisep.taps import (
    GRAINS,
    Calls,
    Reduction,
    ReductionLike,
    Sites,
    choose,
    inner,
    random_state_kept,
    reading_mode,
    refuse_scripted,
    refuse_uninitialized,
    site_modules,
    site_record,
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
    class_names: Sequence[str] | None = None,
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
    unpack: Unpack | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: Watched = None,
    mode: str | None = None,
) -> Profile:
    """Measure how a model separates its classes, site by site.

    >>> profile = equisep.measure(model, loader)
    >>> profile.law.rho, profile.effective_depth

    train, test    any iterable of (x, y) batches, a torch Dataset, or a pair (X, Y) of tensors or arrays. x may be a
                   mapping by argument name, and a batch a mapping with its labels under `labels`, as Hugging Face has them.
    sites          `auto` (both grains; `blocks` are reported where a block repeats three times or more, else `layers`),
                   `layers`, `blocks`, or module names, globs, module classes, functions of (name, module), or a list of
                   these; `fc:in` is the input of `fc`. The raw input is site 0, unless it is tokens.
    calls          of a module called more than once, `each` call is a site (`relu`, `relu:2`, …) or only the `last`.
    reduction      how features become vectors: `auto` (`mean` over the real tokens of sequences, else `flatten`), `flatten`,
                   `mean`, `positions`, `first`, `last`, `tokens`, `pca=m`, or a function; see `equisep.taps.Reduction`.
    reading        how BatchNorm normalizes: `eval` by its running statistics, `mixed` by those of class-mixed batches, `drawn` by
                   those of batches in the order in which the samples were drawn (He & Su's figures). Pairs, data sets and
                   `Batches` are put into batches for each; loaders are read as they come, and `mixed` refuses batches that
                   are less class-mixed than chance.
    readings       several of them in one call: the profile is of the first, `profile.readings` holds all, `profile.company` D
                   over D in `eval`, site by site. Each costs as much as a call of its own, less the picture.
    metrics        some of `equisep.measuring.METRICS`; all by default.
    classes        K; by default the width of the model's output.
    class_names    of the K classes; by default those that the data tell.
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
    unpack         a function that makes (x, y) of a batch that is something else.
    device         measure there; the model is moved for the while and moved back.
    progress       bars where someone watches, unless False; or a callback: see `equisep.progress`.
    mode           the former name of `reading`.

    The model, its buffers, gradients and flags, and all random states are afterwards exactly as they were, apart from what
    its own forward pass writes in `eval` (a counter of calls, say).
    """
    progress = callback(progress)
    if not isinstance(model, nn.Module):
        raise InputError(f"`measure` needs a torch.nn.Module; found {type(model).__name__}.")
    if name is not None and not isinstance(name, str):
        raise InputError(f"`name` is what the profile calls the model; found {name!r}.")
    refuse_scripted(model, asked="measure")
    refuse_uninitialized(model, asked="measure")
    names = (reading_named(reading, mode=mode),) if readings is None else readings_named(readings)
    how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
    options = Options(
        sites=site_record(sites),
        calls=calls,
        reduction="auto" if how is None else how.name,
        reading=names[0],
        metrics=metric_names(metrics),
        classes=plain_number(classes),
        classifier=classifier,
        weighting=weighting,
        center=center,
        normalization=normalization,
        tol=tol,
        epsilon=epsilon,
        intervals=intervals,
        resamples=plain_number(resamples),
        level=level,
        whole=True if whole is None else whole,
        coordinates=plain_number(coordinates),
        seed=plain_number(seed),
        memory=MEMORY if memory is None else plain_number(memory),
    )
    if not (isinstance(sites, str) and sites in GRAINS):
        choose(model, sites)  # refuse wrong sites before any work
    with placed(model, device), random_state_kept(train, test):
        where, dtype = home_of(model)

        def fed(name: Reading) -> tuple[Feed, Feed | None]:
            made = [
                Feed(data, what=what, device=where, dtype=dtype, unpack=unpack, reading=name)
                for data, what in ((train, "training"), (test, "test"))
                if data is not None or what == "training"
            ]
            return made[0], made[1] if len(made) > 1 else None

        feed, feed_test = fed(names[0])
        taken = distinct_readings(model, names, feed)
        feeds = {other: fed(other) for other in names}  # refuses data without an order before any work
        check_repeatable(taken, (feed, feed_test))
        notes = Notes()
        plan = plan_for(model, feed, feed_test, sites, how, options, notes)
        known = known_class_names(class_names, feed, plan.probe.classes)
        title = name or type(inner(model)).__name__
        profile, failure = run_plan(
            plan, feed, feed_test, name=title, class_names=known, notes=notes, progress=progress
        )

        def another(which: Reading) -> tuple[Profile, EquisepError | None]:
            further = replace(plan, options=replace(plan.options, reading=which, coordinates=0))
            for each in feeds[which]:
                if each is not None:
                    with random_state_kept(each.source):
                        each.first()  # which tells the size of its batches
            return run_plan(
                further, *feeds[which], name=title, class_names=known, notes=Notes(plan.probe.notes),
                progress=lambda what, done, total: progress(f"{which}: {what}", done, total),
            )  # fmt: skip

        if failure is None and len(names) > 1:
            profile, failure = with_other_readings(profile, names, taken, another)
    if failure is not None:
        failure.profile = profile
        raise failure
    return profile


def metric_names(metrics: str | Sequence[str] | None) -> tuple[str, ...]:
    """The metrics that were asked for, all by default."""
    if metrics is None:
        return METRICS
    if not isinstance(metrics, str | list | tuple):
        raise InputError(f"`metrics` takes names among {', '.join(METRICS)}; found {metrics!r}.")
    return (metrics,) if isinstance(metrics, str) else tuple(metrics)


def plain_number(value: Any) -> Any:
    """Whole numbers of numpy as Python's own."""
    return int(value) if isinstance(value, numbers.Integral) and value is not True and value is not False else value


def known_class_names(names: Sequence[str] | None, feed: Feed, classes: int) -> tuple[str, ...] | None:
    """The names of the K classes: as given, or as the data tell where they tell of K classes."""
    if names is None:
        return feed.class_names if feed.class_names is not None and len(feed.class_names) == classes else None
    known = tuple(map(str, names)) if not isinstance(names, str) else ()
    if len(known) != classes:
        raise InputError(f"`class_names` needs one name for each of the {classes} classes; found {len(known)}.")
    return known


def plan_for(
    model: nn.Module,
    feed: Feed,
    feed_test: Feed | None,
    sites: Sites,
    reduction: Reduction | None,
    options: Options,
    notes: Notes,
) -> Plan:
    """What is to be measured, from the first samples; a wrong label in the test data is found before any reading."""
    with random_state_kept(feed.source):  # a reading that begins anew then shuffles alike
        inputs, labels = feed.first()
    check_batch(model, len(labels), options, index=0, what="training")
    if reduction is None:
        reduction = reduction_for(model, inputs, notes)
        options = replace(options, reduction=reduction.name)
    with random_state_kept():
        seen = probe(model, inputs, labels, sites, reduction, options)
    notes.extend(seen.notes)
    if feed_test is not None:
        with random_state_kept(feed_test.source):
            _, first = feed_test.first()
        check_range(first, seen.classes, owner=seen.owner, where="the first batch of the test data")
    return Plan(model, seen, reduction, options)


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
    where, dtype = home_of(plan.model)
    plan = replace(plan, layer=_classifier(plan.model, plan.probe.classifier, plan.options))
    profile, failure = _statistics(plan, feed, feed_test, name, class_names, notes, progress)
    feeds = [each for each in (feed, feed_test) if each is not None]
    notes.extend(note for each in feeds for note in each.notes.values())
    notes.extend(wrapper_notes(plan.model))
    note_tf32(notes, plan.model, where, dtype)
    sizes = {
        f"batch_sizes{end}": sorted(each.batch_sizes, reverse=True)
        for each, end in zip(feeds, ("", "_test"), strict=False)
    }
    profile = replace(
        profile,
        settings={**profile.settings, **sizes},
        provenance={**provenance(where, dtype), "tf32": tf32_allowed(where)},
        notes=notes.ranked(),
    )
    return profile, failure


def _classifier(model: nn.Module, name: str | None, options: Options) -> nn.Linear | None:
    """The layer as the forward pass has it, copied: a parametrized weight is computed anew whenever it is looked at."""
    if name is None:
        return None
    layer = site_modules(model)[name]
    assert isinstance(layer, nn.Linear)
    plain = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
    with reading_mode(layer, options.reading):
        plain.weight = nn.Parameter(layer.weight.detach().clone(), requires_grad=False)
        if layer.bias is not None:
            plain.bias = nn.Parameter(layer.bias.detach().clone(), requires_grad=False)
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
