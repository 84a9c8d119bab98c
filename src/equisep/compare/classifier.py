"""The classifier of a network, the last linear layer, and what it is given: counts, means and energies per class.

A model is read as `measure` reads it: the same feed of batches, the same way of calling it, the same tap, here on what the
classifier is given (`fc:in`) and what it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.display import brief
from equisep.errors import InputError, ModelError, SiteError, did_you_mean
from equisep.labels import check_range
from equisep.measuring.forward import Calling, run_model
from equisep.measuring.probe import check_finite
from equisep.measuring.reading import checked_mixing, in_company
from equisep.measuring.scores import ScoreSums
from equisep.progress import Progress, silent
from equisep.results import Note, Reading, reading_named
from equisep.separation.group_sums import class_sums
from equisep.shapes import Float64, Int
from equisep.taps import (
    Activation,
    Call,
    Reduction,
    eager,
    first_tensor,
    inner,
    listening,
    random_state_kept,
    reading_mode,
    recorded_calls,
    refuse_scripted,
    scores_of,
    site_modules,
    wrapper_notes,
)

TOGETHER = 500  # rows that are summed at once


@brief
@dataclass(frozen=True, slots=True, eq=False)
class ClassifierInputs:
    """What one reading of the data gave, class by class, in float64.

    weight  the rows of the classifier           counts   samples n_k           sums     Σ_i h_ki
    bias    its bias, where it has one           hits     those classified k    squares  Σ_i ‖h_ki‖²
                                                 margins  Σ_i (own score − largest other)
    """

    name: str
    weight: Float64[np.ndarray, "k p"]
    bias: Float64[np.ndarray, " k"] | None
    counts: Int[np.ndarray, " k"]
    hits: Int[np.ndarray, " k"]
    sums: Float64[np.ndarray, "k p"]
    squares: Float64[np.ndarray, " k"]
    margins: Float64[np.ndarray, " k"]
    notes: tuple[Note, ...]

    @property
    def means(self) -> Float64[np.ndarray, "k p"]:
        """The mean features of each class; NaN for one without samples."""
        return np.where(self.counts[:, None] > 0, self.sums / np.maximum(self.counts, 1)[:, None], np.nan)

    @property
    def accuracy(self) -> tuple[float | None, ...]:
        """Per class; None for one without samples."""
        pairs = zip(self.hits.tolist(), self.counts.tolist(), strict=True)
        return tuple(hit / n if n else None for hit, n in pairs)


def read_classifier(
    model: Any,
    data: Any,
    *,
    what: str = "training",
    classifier: str | None = None,
    reading: Reading = "eval",
    progress: Progress = silent,
) -> ClassifierInputs:
    """Run the data through the model once and sum up, by class, what its classifier is given.

    The classifier is the last linear layer called that has as many outputs as the model, or the module of that name.
    The model, its flags and all random states are afterwards as they were.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"A network is read from a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="compare_network")
    reading = reading_named(reading)
    linear = {name: module for name, module in site_modules(model).items() if isinstance(module, nn.Linear)}
    if classifier is not None and classifier not in linear:
        raise SiteError(
            f"The classifier `{classifier}` should be an nn.Linear of `{_kind(model)}`; there is none of that "
            f"name.{did_you_mean(classifier, linear)}"
        )
    device = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
    dtype = next((tensor.dtype for tensor in model.parameters() if tensor.is_floating_point()), None)
    feed = Feed(data, what=what, device=device, dtype=dtype, reading=reading)
    with random_state_kept(feed.source):
        inputs, labels = feed.first()
        calling, notes = Calling.of(inner(model), inputs)
        calls, scores = _first_pass(model, inputs, labels, calling, reading, where=f"batch 0 of the {what} data")
        name = _named(model, linear, calls, classes=scores.shape[1], asked=classifier)
        _check_given(name, calls, samples=len(labels), what=what)
        state = _Sums(name, linear[name], classes=scores.shape[1], model=model)
        feed.restart()
        where, seen = "", list[Tensor]()
        with listening(
            model, state.sites, give=state.hear, reading=reading, calls="last", reduction=Reduction.of("flatten")
        ):
            for index, (batch, own) in enumerate(feed):
                where = f"batch {index} of the {what} data"
                output = run_model(inner(model), batch, calling, what=where)
                state.add(_checked_scores(model, output, own, where=where), own.cpu(), where=where)
                seen.append(own.cpu())
                progress(f"reading the {what} data", index + 1, feed.batches)
    if in_company(model, reading, feed):
        checked_mixing(reading, feed, seen)
    state.flush(where=where)
    return state.finished((*feed.notes.values(), *notes, *wrapper_notes(model)))


def _kind(model: nn.Module) -> str:
    return type(inner(model)).__name__


def _first_pass(
    model: nn.Module, inputs: Inputs, labels: Tensor, calling: Calling, reading: Reading, *, where: str
) -> tuple[list[Call], Tensor]:
    """The calls of one forward pass, and its class scores."""
    with reading_mode(model, reading), eager(), recorded_calls(model) as calls:
        output = run_model(inner(model), inputs, calling, what=where)
    return calls, _checked_scores(model, output, labels, where=where)


def _checked_scores(model: nn.Module, output: Any, labels: Tensor, *, where: str) -> Tensor:
    scores = scores_of(output)
    if scores is None or len(scores) != len(labels):
        tensor = first_tensor(output)
        returned = type(output).__name__ if tensor is None else f"shape {tuple(tensor.shape)}"
        raise ModelError(
            f"`{_kind(model)}` should return one row of class scores per sample, {len(labels)} × K, at {where}; found "
            f"{returned}. Pass a classifier."
        )
    return scores


def _named(
    model: nn.Module, linear: Mapping[str, nn.Linear], calls: list[Call], *, classes: int, asked: str | None
) -> str:
    """The last linear layer called that has as many outputs as there are classes, or the one that was asked for."""
    if asked is not None and linear[asked].out_features != classes:
        raise InputError(
            f"The classifier `{asked}` has {linear[asked].out_features} outputs, `{_kind(model)}` {classes}. "
            "Name the layer that gives the class scores."
        )
    called = [call.module for call in calls if call.module in linear]
    last = next((name for name in reversed(called) if linear[name].out_features == classes), None)
    name = asked or last
    if name is None:
        raise SiteError(
            f"`{_kind(model)}` calls no nn.Linear with {classes} outputs, the number of its classes. "
            "Name the classifier, or pass its rows and the class means to `compare_geometry`."
        )
    return name


def _check_given(name: str, calls: list[Call], *, samples: int, what: str) -> None:
    """Raise unless the classifier is given one row of features per sample."""
    given = next((call.given for call in reversed(calls) if call.module == name), None)
    if given is None or len(given) != 2 or given[0] != samples:
        raise SiteError(
            f"The classifier `{name}` should be given one row of features per sample; in the first batch of the {what} data "
            f"it was given {'nothing' if given is None else f'shape {given}'} for {samples} samples. Name another with "
            "`classifier=`."
        )


class _Sums:
    """What the classifier was given and returned in the batch under way, and the sums so far, on the CPU in float64."""

    def __init__(self, name: str, layer: nn.Linear, *, classes: int, model: nn.Module) -> None:
        self.name, self.layer, self.model = name, layer, model
        self.sites = (f"{name}:in", name)
        self.heard: dict[str, Tensor] = {}
        self.waiting: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self.rows = 0
        self.direct = True
        self.scores = ScoreSums(classes, margins=True)
        # on the CPU, since not every device has float64
        self.squares = torch.zeros(classes, dtype=torch.float64, device="cpu")
        self.sums = torch.zeros(classes, layer.in_features, dtype=torch.float64, device="cpu")

    def hear(self, activation: Activation) -> None:
        """The consumer of the tap."""
        self.heard[activation.site] = activation.rows.features

    def add(self, scores: Tensor, labels: Int[Tensor, " b"], *, where: str) -> None:
        """Add the batch that has just run."""
        heard, self.heard = self.heard, {}
        features, returned = (heard.get(site) for site in self.sites)
        if features is None or returned is None or features.shape != (len(labels), self.layer.in_features):
            given = "nothing" if features is None else f"shape {tuple(features.shape)}"
            raise SiteError(
                f"The classifier `{self.name}` should be given one row of features per sample; at {where} it was given "
                f"{given} for {len(labels)} samples. Name another with `classifier=`."
            )
        classes = self.scores.classes
        check_range(labels, classes, owner=f"`{_kind(self.model)}` has {classes} outputs")
        self.waiting.append((features.cpu(), returned.cpu(), scores.detach().cpu(), labels))
        self.rows += len(labels)
        if self.rows >= TOGETHER:
            self.flush(where=where)

    def flush(self, *, where: str) -> None:
        """Sum up what waits: many rows at once, since tiny batches would spend their time on the way there."""
        if not self.waiting:
            return
        features, returned, scores, labels = (torch.cat(parts) for parts in zip(*self.waiting, strict=True))
        self.waiting, self.rows = [], 0
        check_finite(features, site=self.sites[0], where=where)
        self.direct = self.direct and torch.equal(returned, scores)
        rows, classes = features.to(torch.float64), self.scores.classes
        self.scores.add(scores, labels)
        self.sums += class_sums(rows, labels, classes=classes)
        self.squares.index_add_(0, labels, rows.square().sum(dim=1))

    def finished(self, notes: tuple[Note, ...]) -> ClassifierInputs:
        """The sums as arrays."""
        if not self.direct:
            text = (
                f"What `{_kind(self.model)}` returns is not what its classifier `{self.name}` gives: something stands behind "
                "it, which the Layer-Peeled Model does not know."
            )
            notes = (*notes, Note("classifier-not-last", text))
        assert self.scores.margins is not None
        bias = None if self.layer.bias is None else self.layer.bias.detach().cpu().to(torch.float64).numpy()
        return ClassifierInputs(
            name=self.name,
            weight=self.layer.weight.detach().cpu().to(torch.float64).numpy(),
            bias=bias,
            counts=self.scores.counts.numpy(),
            hits=self.scores.hits.numpy(),
            sums=self.sums.numpy(),
            squares=self.squares.numpy(),
            margins=self.scores.margins.numpy(),
            notes=notes,
        )
