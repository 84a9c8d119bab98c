"""measure: one call from a model and its data to a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import nn

from equisep.data.feed import Feed
from equisep.errors import EquisepError, InputError
from equisep.labels import check_range, check_two_classes
from equisep.law.intervals import ResampleKind
from equisep.measuring.assemble import class_notes, classifier_reading, laws_of, site_notes, site_reading
from equisep.measuring.buffered import held_out_states, keep, plan_replicates, train_states
from equisep.measuring.options import METRICS, Intervals, Options, as_sites
from equisep.measuring.probe import Probe, check_batch, probe
from equisep.measuring.reading import Read
from equisep.measuring.states import SiteStates
from equisep.measuring.streamed import stream_test, stream_train
from equisep.metrics.centers import effective_depth
from equisep.progress import Progress, silent
from equisep.provenance import provenance
from equisep.results import Note, Profile
from equisep.results.codec import encode
from equisep.stats import Center, Normalization, Weighting
from equisep.taps import Mode, batch_norms, random_state_kept


def measure(
    model: nn.Module,
    train: Any,
    test: Any = None,
    *,
    sites: str | Sequence[str] = "auto",
    mode: Mode = "eval",
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
) -> Profile:
    """Measure how a model separates its classes, site by site.

    train, test    any iterable of (x, y) batches, a torch Dataset, or a pair (X, Y) of tensors or arrays.
    sites          `auto`, `layers`, `blocks`, module names, or globs; the raw input is always site 0.
    mode           `eval` (running BatchNorm statistics) or `batch` (those of the batch read; the papers' figures).
    metrics        some of `equisep.measuring.METRICS`; all by default.
    classes        K; by default the width of the model's output.
    classifier     the linear layer that reads the last site; found by itself where there is one.
    weighting, center, normalization, tol     the conventions of D: see `equisep.stats.Convention`.
    epsilon        training accuracy by nearest centers of 1 − ε counts as separated, for the effective depth.
    intervals      `auto`, `bootstrap` (over samples), `jackknife` (over folds), `none`; at `level`, from `resamples`.
    memory         bytes of features to keep (1 GiB); beyond it the data are read twice and memory stays O(K·d) a site.
    coordinates    how many samples to keep as two principal components for plots; 0 keeps none.
    device         measure there; the model is moved for the while and moved back.

    The model, its buffers, gradients and flags, and all random states are afterwards exactly as they were.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"`measure` needs a torch.nn.Module; found {type(model).__name__}.")
    options = Options(
        sites=as_sites(sites), mode=mode, metrics=_names(metrics), classes=classes,
        classifier=classifier, weighting=weighting, center=center, normalization=normalization, tol=tol, epsilon=epsilon,
        intervals=intervals, resamples=resamples, level=level, coordinates=coordinates, seed=seed,
        **({} if memory is None else {"memory": memory}),
    )  # fmt: skip
    _ = options.convention  # refuse a wrong convention before any work
    with _placed(model, device), random_state_kept(train, test):
        return _measure(model, train, test, options, name=name or type(model).__name__, progress=progress)


def _names(metrics: str | Sequence[str] | None) -> tuple[str, ...]:
    if metrics is None:
        return METRICS
    return (metrics,) if isinstance(metrics, str) else tuple(metrics)


def _measure(model: nn.Module, train: Any, test: Any, options: Options, *, name: str, progress: Progress) -> Profile:
    place, dtype = _home(model)
    feed = Feed(train, what="training", device=place, dtype=dtype)
    feed_test = None if test is None else Feed(test, what="test", device=place, dtype=dtype)
    x, labels = feed.first()
    check_batch(model, len(labels), options, index=0, what="training")
    with random_state_kept():
        seen = probe(model, x, options)
    if feed_test is not None:  # a wrong label there should not cost the reading of the training data
        check_range(feed_test.first()[1], seen.classes, owner=seen.owner)
    layer = None if seen.classifier is None else model.get_submodule(seen.classifier)
    assert layer is None or isinstance(layer, nn.Linear)
    states, reads, kind, notes, failure = _states(model, feed, feed_test, seen, options, layer, progress)
    readings = [site_reading(index, state, seen, options) for index, state in enumerate(states)]
    stacked = [state.replicates for state in states if state.replicates is not None]
    replicates = torch.stack(stacked) if len(stacked) == len(states) else None
    kind = kind if replicates is not None else None
    law, laws, spans = laws_of(readings, replicates, kind=kind, options=options)
    readings = [replace(reading, fuzziness_interval=span) for reading, span in zip(readings, spans, strict=True)]
    depth = effective_depth([reading.ncc_train for reading in readings], epsilon=options.epsilon)
    head, head_notes = classifier_reading(seen.classifier, layer, states[-1], options)
    notes = [
        *feed.notes.values(), *(feed_test.notes.values() if feed_test else ()), *seen.notes, *notes,
        *(note for read, what in zip(reads, ("training", "test"), strict=False) for note in class_notes(read.counts, what=what)),
        *site_notes(readings, states), *_batch_notes(model, reads, options), *law.notes,
        *_depth_notes(depth, options), *head_notes,
    ]  # fmt: skip
    profile = Profile(
        model=name,
        classes=seen.classes,
        counts=tuple(reads[0].counts.tolist()),
        counts_test=tuple(reads[1].counts.tolist()) if len(reads) > 1 else None,
        sites=tuple(readings),
        law=law,
        laws=laws,
        effective_depth=depth,
        classifier=head,
        accuracy_train=_accuracy(reads[0]),
        accuracy_test=_accuracy(reads[1]) if len(reads) > 1 else None,
        settings=encode({**asdict(options), **_batch_sizes(feed, feed_test), "intervals_by": kind}),
        provenance=provenance(place, dtype),
        notes=tuple(dict.fromkeys(notes)),
    )
    if failure is not None:
        failure.profile = profile
        raise failure
    return profile


def _states(
    model: nn.Module,
    feed: Feed,
    feed_test: Feed | None,
    seen: Probe,
    options: Options,
    layer: nn.Linear | None,
    progress: Progress,
) -> tuple[list[SiteStates], list[Read], ResampleKind | None, list[Note], EquisepError | None]:
    """All statistics of both data sets; an error in the test data comes back beside those of the training data."""
    states, read, kind, notes = _train(model, feed, seen, options, layer, progress)
    if feed_test is None:
        return states, [read], kind, notes, None
    try:
        states, read_test, more = _test(model, feed_test, seen, options, layer, progress, states)
    except EquisepError as error:
        return states, [read], kind, notes, error
    return states, [read, read_test], kind, [*notes, *more], None


def _train(
    model: nn.Module, feed: Feed, seen: Probe, options: Options, layer: nn.Linear | None, progress: Progress
) -> tuple[list[SiteStates], Read, ResampleKind | None, list[Note]]:
    """The training data: buffered where their features fit the budget, streamed otherwise."""
    with random_state_kept(feed.source):
        kept = keep(model, feed, seen, options, progress=progress)
    if kept is None:
        return stream_train(model, feed, seen, options, progress=progress, layer=layer)
    check_two_classes(kept.read.counts, asked="`measure`")
    replicates, notes = plan_replicates(kept, seen, options)
    states = []
    for index in range(len(seen.sites)):
        here = layer if index == len(seen.sites) - 1 else None
        states.append(train_states(index, kept=kept, probe=seen, options=options, replicates=replicates, layer=here))
        progress("statistics", index + 1, len(seen.sites))
    return states, kept.read, replicates.kind if replicates else None, notes


def _test(
    model: nn.Module,
    feed: Feed,
    seen: Probe,
    options: Options,
    layer: nn.Linear | None,
    progress: Progress,
    states: list[SiteStates],
) -> tuple[list[SiteStates], Read, list[Note]]:
    """The test data, likewise, added to the states of the training data."""
    spaces = [state.train.subspace for state in states]
    with random_state_kept(feed.source):
        kept = keep(model, feed, seen, options, progress=progress)
    if kept is None:
        found, read, notes = stream_test(model, feed, seen, options, train=spaces, progress=progress, layer=layer)
    else:
        read, last, notes = kept.read, len(spaces) - 1, []
        found = [
            held_out_states(i, kept=kept, train=space, probe=seen, options=options, layer=layer if i == last else None)
            for i, space in enumerate(spaces)
        ]
    return [replace(state, test=entry) for state, entry in zip(states, found, strict=True)], read, notes


@contextmanager
def _placed(model: nn.Module, device: str | torch.device | None) -> Iterator[None]:
    """The model on `device` for the while, then back where it was."""
    before = _home(model)[0]
    place = before if device is None else _usable(device)
    if place == before:
        yield
        return
    try:
        model.to(place)
        yield
    finally:
        model.to(before)


def _usable(device: str | torch.device) -> torch.device:
    """The device, once a number could be put there; `meta` takes a model's weights and never gives them back."""
    try:
        place = torch.device(device)
        torch.zeros(1, device=place).cpu()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0].split(". ")[0].rstrip(".")
        raise InputError(
            f"`measure` was asked for device `{device}`, which cannot be used here: {reason}. "
            "Pass a device that this machine has, such as `device='cpu'`."
        ) from error
    return place


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
    for read, what in zip(reads, ("training", "test"), strict=False):
        if options.mode == "batch" and read.pure and batch_norms(model):
            text = (
                f"{read.pure} of {read.batches} batches of the {what} data hold one class only: in `batch` mode BatchNorm "
                "then normalizes classes away from each other. Read class-mixed batches."
            )
            notes.append(Note("pure-batches", text))
    return notes


def _depth_notes(depth: int | None, options: Options) -> list[Note]:
    if depth is None and options.wants("ncc"):
        text = (
            f"No site after the input reaches a nearest-center training accuracy of {100 * (1 - options.epsilon):g} %: "
            "there is no effective depth. A larger `epsilon` accepts less."
        )
        return [Note("no-effective-depth", text)]
    return []
