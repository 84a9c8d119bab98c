"""measure: one call from a model and its data to a profile."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from equisep.data.feed import Feed
from equisep.devices import provenance, tf32_allowed, usable_device
from equisep.errors import EquisepError, InputError
from equisep.files import encode
from equisep.labels import check_range
from equisep.law.intervals import ResampleKind
from equisep.measuring.forward import exact_arithmetic
from equisep.measuring.options import METRICS, Intervals, Options
from equisep.measuring.passes import held_out, train_states
from equisep.measuring.probe import check_batch, classifier_note, probe
from equisep.measuring.profile import class_notes, classifier_reading, grain_laws, site_notes, site_reading
from equisep.measuring.reading import Read, Subject
from equisep.measuring.rounds import rounds_of_train
from equisep.progress import Progress, silent
from equisep.results import Note, Profile, Reading, reading_named
from equisep.separation import Center, Normalization, Weighting
from equisep.separation.centers import effective_depth
from equisep.separation.pca import Components
from equisep.separation.states import SiteStates
from equisep.taps import (
    GRAINS,
    Calls,
    Reduction,
    ReductionLike,
    Sites,
    batch_norms,
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

SETS = ("training", "test")


def measure(
    model: nn.Module,
    train: Any,
    test: Any = None,
    *,
    sites: Sites = "auto",
    calls: Calls = "each",
    reduction: ReductionLike = "flatten",
    reading: Reading = "eval",
    metrics: str | Sequence[str] | None = None,
    classes: int | None = None,
    classifier: str | None = None,
    weighting: Weighting = "sample",
    center: Center | None = None,
    normalization: Normalization = "none",
    tol: float | None = None,
    epsilon: float = 0.0,
    intervals: Intervals = "auto",
    resamples: int = 200,
    level: float = 0.95,
    memory: int | None = None,
    coordinates: int = 300,
    seed: int = 0,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: Progress = silent,
    mode: str | None = None,
) -> Profile:
    """Measure how a model separates its classes, site by site.

    train, test    any iterable of (x, y) batches, a torch Dataset, or a pair (X, Y) of tensors or arrays. x may be a
                   mapping by argument name, and a batch a mapping with its labels under `labels`, as Hugging Face has them.
    sites          `auto` (both grains, and which follows the law better), `layers`, `blocks`, or module names, globs, module
                   classes, functions of (name, module), or a list of these. The raw input is site 0, unless it is tokens.
    calls          of a module called more than once, `each` call is a site (`relu`, `relu:2`, …) or only the `last`.
    reduction      how features become vectors: `flatten`, `mean`, `positions`, `first`, `last`, `tokens`, `pca=m`, or a
                   function; see `equisep.taps.Reduction`.
    reading        `eval` (running BatchNorm statistics) or `mixed` (those of the batch read; the papers' figures).
    metrics        some of `equisep.measuring.METRICS`; all by default.
    classes        K; by default the width of the model's output.
    classifier     the linear layer that reads the last site; found by itself where there is one.
    weighting, center, normalization, tol     the conventions of D: see `equisep.separation.Convention`.
    epsilon        training accuracy by nearest centers of 1 − ε counts as separated, for the effective depth.
    intervals      `auto`, `bootstrap` (over samples), `jackknife` (over folds), `none`; at `level`, from `resamples`.
    memory         bytes of features to keep (1 GiB); beyond it the first sites, whose features are not kept, are read twice:
                   their memory stays O(K·d), and the second forward pass ends after the last of them.
    coordinates    how many samples to keep as two principal components for plots; 0 keeps none.
    device         measure there; the model is moved for the while and moved back.

    The model, its buffers, gradients and flags, and all random states are afterwards exactly as they were, apart from what
    its own forward pass writes in `eval` (a counter of calls, say).
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"`measure` needs a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="measure")
    refuse_uninitialized(model, asked="measure")
    how = Reduction.of(reduction)
    options = Options(
        sites=site_record(sites), calls=calls, reduction=how.name, reading=reading_named(reading, mode=mode),
        metrics=_names(metrics), classes=_plain(classes),
        classifier=classifier, weighting=weighting, center=center, normalization=normalization, tol=tol, epsilon=epsilon,
        intervals=intervals, resamples=resamples, level=level, coordinates=_plain(coordinates), seed=_plain(seed),
        **({} if memory is None else {"memory": memory}),
    )  # fmt: skip
    _ = options.convention  # refuse a wrong convention before any work …
    if not (isinstance(sites, str) and sites in GRAINS):
        choose(model, sites)  # … and wrong sites
    with _placed(model, device), random_state_kept(train, test):
        return _measure(
            model, train, test, sites, how, options, name=name or type(inner(model)).__name__, progress=progress
        )


def _names(metrics: str | Sequence[str] | None) -> tuple[str, ...]:
    if metrics is None:
        return METRICS
    if not isinstance(metrics, str | Sequence):
        raise InputError(f"`metrics` takes names among {', '.join(METRICS)}; found {metrics!r}.")
    return (metrics,) if isinstance(metrics, str) else tuple(metrics)


def _plain(value: Any) -> Any:
    """Whole numbers of numpy as Python's own."""
    return int(value) if isinstance(value, numbers.Integral) else value


def _measure(
    model: nn.Module,
    train: Any,
    test: Any,
    sites: Sites,
    reduction: Reduction,
    options: Options,
    *,
    name: str,
    progress: Progress,
) -> Profile:
    place, dtype = _home(model)
    feed = Feed(train, what="training", device=place, dtype=dtype)
    feed_test = None if test is None else Feed(test, what="test", device=place, dtype=dtype)
    with random_state_kept(feed.source):  # a reading that begins anew then shuffles alike
        inputs, labels = feed.first()
    check_batch(model, len(labels), options, index=0, what="training")
    with random_state_kept():
        seen = probe(model, inputs, labels, sites, reduction, options)
    if feed_test is not None:  # a wrong label there should not cost the reading of the training data
        with random_state_kept(feed_test.source):
            _, first = feed_test.first()
        check_range(first, seen.classes, owner=seen.owner, where="the first batch of the test data")
    subject = Subject(model, seen, reduction, options, _classifier(model, seen.classifier, options))
    states, reads, kind, notes, failure = _states(subject, feed, feed_test, progress)
    with exact_arithmetic(place):
        profile = _profile(subject, states, reads, kind, notes, name=name)
    batches = _batch_sizes(feed, feed_test)
    told = (
        *feed.notes.values(),
        *(feed_test.notes.values() if feed_test else ()),
        *wrapper_notes(model),
        *_tf32_notes(model, place, dtype),
    )
    profile = replace(
        profile,
        settings={**profile.settings, **encode(batches)},
        provenance={**provenance(place, dtype), "tf32": tf32_allowed(place)},
        notes=tuple(dict.fromkeys((*told, *profile.notes))),
    )
    if failure is not None:
        failure.profile = profile
        raise failure
    return profile


def _classifier(model: nn.Module, name: str | None, options: Options) -> nn.Linear | None:
    """The layer as the forward pass has it, copied: a parametrized weight is computed anew whenever it is looked at."""
    if name is None:
        return None
    layer = site_modules(model)[name]
    assert isinstance(layer, nn.Linear)
    plain = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
    with reading_mode(model, options.reading):
        plain.weight = nn.Parameter(layer.weight.detach().clone(), requires_grad=False)
        if layer.bias is not None:
            plain.bias = nn.Parameter(layer.bias.detach().clone(), requires_grad=False)
    return plain


def _profile(
    subject: Subject,
    states: list[SiteStates],
    reads: list[Read],
    kind: ResampleKind | None,
    notes: list[Note],
    *,
    name: str,
) -> Profile:
    """Everything that the statistics say."""
    seen, options = subject.probe, subject.options
    distinct = [site_reading(site, state, options) for site, state in zip(seen.sites, states, strict=True)]
    if any(state.replicates is None for state in states):
        kind = None
    grain, readings, law, laws, choice, choice_notes = grain_laws(distinct, states, seen, kind=kind, options=options)
    depth = effective_depth([None] * seen.begins + [reading.ncc_train for reading in readings], epsilon=options.epsilon)
    last = seen.index_of(readings[-1].name)
    if subject.layer_at(last) is None:
        head, head_notes = None, [classifier_note(seen.classes, readings[-1].name, subject.reduction)]
    else:
        head, head_notes = classifier_reading(seen.classifier, subject.layer, states[last], options)
    mine = [states[seen.index_of(reading.name)] for reading in readings]
    return Profile(
        model=name,
        reading=options.reading,
        classes=seen.classes,
        counts=tuple(reads[0].counts.tolist()),
        counts_test=tuple(reads[1].counts.tolist()) if len(reads) > 1 else None,
        sites=tuple(readings),
        law=law,
        laws=laws,
        effective_depth=depth,
        classifier=head,
        grains=choice,
        accuracy_train=_accuracy(reads[0]),
        accuracy_test=_accuracy(reads[1]) if len(reads) > 1 else None,
        settings=encode({**asdict(options), "grain": grain or None, "intervals_by": kind}),
        notes=(
            *seen.notes, *choice_notes, *notes,
            *(note for read, what in zip(reads, SETS, strict=False) for note in class_notes(read.counts, what=what)),
            *site_notes(readings, mine), *_batch_notes(subject.model, reads, options), *law.notes,
            *_depth_notes(depth, options), *head_notes,
        ),
    )  # fmt: skip


def _states(
    subject: Subject, feed: Feed, feed_test: Feed | None, progress: Progress
) -> tuple[list[SiteStates], list[Read], ResampleKind | None, list[Note], EquisepError | None]:
    """All statistics of both data sets; an error in the test data comes back beside those of the training data."""
    states, components, read, kind, notes = _train(subject, feed, progress)
    if feed_test is None:
        return states, [read], kind, notes, None
    try:
        states, read_test, more = _test(replace(subject, components=components), feed_test, progress, states)
    except EquisepError as error:
        return states, [read], kind, notes, error
    return states, [read, read_test], kind, [*notes, *more], None


def _train(
    subject: Subject, feed: Feed, progress: Progress
) -> tuple[list[SiteStates], dict[int, Components], Read, ResampleKind | None, list[Note]]:
    """The training data; where components are asked for, in as many rounds as these need."""
    if subject.reduction.components is not None:
        return rounds_of_train(subject, feed, progress=progress)
    states, read, kind, notes = train_states(subject, feed, progress=progress)
    return states, {}, read, kind, notes


def _test(
    subject: Subject, feed: Feed, progress: Progress, states: list[SiteStates]
) -> tuple[list[SiteStates], Read, list[Note]]:
    """The test data, added to the states of the training data."""
    spaces = [state.train.subspace for state in states]
    found, read, notes = held_out(subject, feed, train=spaces, progress=progress)
    return [replace(state, test=entry) for state, entry in zip(states, found, strict=True)], read, notes


@contextmanager
def _placed(model: nn.Module, device: str | torch.device | None) -> Iterator[None]:
    """The model on `device` for the while, then back where it was."""
    before = _home(model)[0]
    place = before if device is None else usable_device(device, asked="measure")
    if place == before:
        yield
        return
    try:
        model.to(place)
        yield
    finally:
        model.to(before)


def _home(model: nn.Module) -> tuple[torch.device, torch.dtype | None]:
    """Where a model's parameters live, and their floating type."""
    tensors = [*model.parameters(), *model.buffers()]
    place = tensors[0].device if tensors else torch.device("cpu")
    return place, next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), None)


def _batch_sizes(feed: Feed, feed_test: Feed | None) -> dict[str, list[int]]:
    sizes = {"batch_sizes": sorted(feed.batch_sizes, reverse=True)}
    if feed_test is not None:
        sizes["batch_sizes_test"] = sorted(feed_test.batch_sizes, reverse=True)
    return sizes


def _accuracy(read: Read) -> float | None:
    return None if read.hits is None else read.hits / read.n


def _batch_notes(model: nn.Module, reads: Sequence[Read], options: Options) -> list[Note]:
    notes = []
    for read, what in zip(reads, SETS, strict=False):
        if options.reading == "mixed" and read.pure and batch_norms(model):
            text = (
                f"{read.pure} of {read.batches} batches of the {what} data hold one class only: in the reading `mixed` BatchNorm "
                "then normalizes classes away from each other. Read class-mixed batches."
            )
            notes.append(Note("pure-batches", text))
    return notes


def _tf32_notes(model: nn.Module, place: torch.device, dtype: torch.dtype | None) -> tuple[Note, ...]:
    """A Note where a GPU may have shortened what the features come from."""
    kinds = {"convolutions": _ConvNd, "products": nn.Linear}
    switches = {"convolutions": "torch.backends.cudnn.allow_tf32", "products": "torch.backends.cuda.matmul.allow_tf32"}
    found = [kind for kind in tf32_allowed(place) if any(isinstance(module, kinds[kind]) for module in model.modules())]
    if dtype != torch.float32 or not found:
        return ()
    text = (
        f"The GPU may shorten {' and '.join(found)} to TF32, which keeps 10 bits: features carry its rounding. "
        f"Set `{switches[found[0]]} = False` for whole float32."
    )
    return (Note("tf32", text),)


def _depth_notes(depth: int | None, options: Options) -> list[Note]:
    if depth is None and options.wants("ncc"):
        text = (
            f"No site after the input reaches a nearest-center training accuracy of {100 * (1 - options.epsilon):g} %: "
            "there is no effective depth. A larger `epsilon` accepts less."
        )
        return [Note("no-effective-depth", text)]
    return []
