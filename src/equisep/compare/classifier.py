"""The classifier of a network, the last linear layer, and what it is given: counts, means and energies by class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.errors import EquisepError, FeatureError, InputError, ModelError, SiteError, did_you_mean
from equisep.labels import check_range
from equisep.progress import Progress, silent
from equisep.results import Note, reading_named
from equisep.shapes import Float64, Int
from equisep.taps import (
    Mode,
    eager,
    first_tensor,
    random_state_kept,
    reading_mode,
    refuse_scripted,
    scores_of,
    site_modules,
    wrapper_notes,
)


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierInputs:
    """What one reading of the data gave, class by class, in float64.

    weight  the rows of the classifier           counts  samples n_k           sums     Σ_i h_ki
    bias    its bias, where it has one           hits    those classified k    squares  Σ_i ‖h_ki‖²
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


def read_classifier(
    model: Any,
    data: Any,
    *,
    what: str = "training",
    classifier: str | None = None,
    mode: Mode = "eval",
    progress: Progress = silent,
) -> ClassifierInputs:
    """Run the data through the model once and sum up, by class, what its classifier is given.

    The classifier is the last linear layer called that has as many outputs as the model, or the module of that name.
    The model, its flags and all random states are afterwards as they were.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"A network is read from a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="compare_network")
    linear = {name: module for name, module in site_modules(model).items() if isinstance(module, nn.Linear)}
    if classifier is not None and classifier not in linear:
        raise SiteError(
            f"The classifier `{classifier}` should be an nn.Linear of `{type(model).__name__}`; there is none of that "
            f"name.{did_you_mean(classifier, linear)}"
        )
    place = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
    dtype = next((tensor.dtype for tensor in model.parameters() if tensor.is_floating_point()), None)
    feed = Feed(data, what=what, device=place, dtype=dtype)
    state = _Sums(model, linear, classifier)
    with (
        random_state_kept(feed.source),
        reading_mode(model, reading_named("eval", mode=mode)),
        eager(),
        _listening(linear, state),
    ):
        for index, (inputs, labels) in enumerate(feed):
            state.take(inputs, labels, where=f"batch {index} of the {what} data")
            progress(f"reading the {what} data", index + 1, feed.batches)
    if state.name is None:
        raise feed.nothing()
    return state.finished(linear[state.name], (*feed.notes.values(), *wrapper_notes(model)))


class _Sums:
    """The batch under way, and the sums so far."""

    def __init__(self, model: nn.Module, linear: dict[str, nn.Linear], asked: str | None) -> None:
        self.model, self.linear, self.asked = model, linear, asked
        self.name: str | None = None
        self.given: dict[str, Tensor | None] = {}  # linear layers in the order of their latest call, and their inputs
        self.returned: dict[str, Tensor | None] = {}
        self.direct = True

    def take(self, inputs: Inputs, labels: Int[Tensor, " b"], *, where: str) -> None:
        """Run one batch and add it."""
        self.given.clear()
        self.returned.clear()
        try:
            fresh = inputs.changed(torch.clone)  # a model that begins in place would overwrite the user's data
            output = self.model(*fresh.args, **fresh.kwargs)
        except EquisepError:
            raise
        except Exception as error:  # whatever a user's model raises
            raise ModelError(f"`{type(self.model).__name__}` could not run {where} ({inputs}): {error}") from error
        logits = scores_of(output)
        if logits is None or len(logits) != len(labels):
            tensor = first_tensor(output)
            found = type(output).__name__ if tensor is None else f"shape {tuple(tensor.shape)}"
            raise ModelError(
                f"`{type(self.model).__name__}` should return one row of class scores a sample, {len(labels)} × K, at "
                f"{where}; found {found}. Pass a classifier."
            )
        if self.name is None:
            self._begin(logits)
        assert self.name is not None
        features = self.given.get(self.name)
        if features is None or features.ndim != 2 or len(features) != len(labels):
            found = "nothing" if features is None else f"shape {tuple(features.shape)}"
            raise SiteError(
                f"The classifier `{self.name}` should be given one row of features a sample; at {where} it was given "
                f"{found} for {len(labels)} samples. Name another with `classifier=`."
            )
        # on the CPU, since not every device has float64
        self._add(features.cpu().to(torch.float64), logits.detach().cpu(), labels.cpu(), where=where)

    def _begin(self, logits: Tensor) -> None:
        classes = logits.shape[1]
        found = next((name for name in reversed(self.given) if self.linear[name].out_features == classes), None)
        if self.asked is not None and self.linear[self.asked].out_features != classes:
            raise InputError(
                f"The classifier `{self.asked}` has {self.linear[self.asked].out_features} outputs, "
                f"`{type(self.model).__name__}` {classes}. Name the layer that gives the class scores."
            )
        self.name = self.asked or found
        if self.name is None:
            raise SiteError(
                f"`{type(self.model).__name__}` calls no nn.Linear with {classes} outputs, the number of its classes. "
                "Name the classifier, or pass its rows and the class means to `compare_geometry`."
            )
        self.counts = torch.zeros(classes, dtype=torch.int64, device="cpu")
        self.hits = torch.zeros_like(self.counts)
        self.margins = torch.zeros(classes, dtype=torch.float64, device="cpu")
        self.squares = torch.zeros(classes, dtype=torch.float64, device="cpu")
        self.sums = torch.zeros(classes, self.linear[self.name].in_features, dtype=torch.float64, device="cpu")

    def _add(self, features: Tensor, logits: Tensor, labels: Int[Tensor, " b"], *, where: str) -> None:
        check_range(labels, len(self.counts), owner=f"`{type(self.model).__name__}` has {len(self.counts)} outputs")
        if not bool(torch.isfinite(features).all()):
            bad = int((~torch.isfinite(features)).sum())
            raise FeatureError(
                f"The classifier `{self.name}` is given {bad} NaN or Inf among {features.numel()} numbers at {where}. "
                "Check the inputs and the weights."
            )
        returned = self.returned.get(self.name or "")
        self.direct = self.direct and returned is not None and torch.equal(returned.cpu(), logits)
        self.counts += torch.bincount(labels, minlength=len(self.counts))
        self.hits += torch.bincount(labels[logits.argmax(dim=1) == labels], minlength=len(self.counts))
        scores = logits.to(torch.float64)
        own = scores.gather(1, labels[:, None])[:, 0]
        others = scores.scatter(1, labels[:, None], -torch.inf).amax(dim=1)
        self.margins.index_add_(0, labels, own - others)
        self.sums.index_add_(0, labels, features)
        self.squares.index_add_(0, labels, features.square().sum(dim=1))

    def finished(self, layer: nn.Linear, notes: tuple[Note, ...]) -> ClassifierInputs:
        """The sums as arrays."""
        assert self.name is not None
        if not self.direct:
            text = (
                f"What `{type(self.model).__name__}` returns is not what its classifier `{self.name}` gives: something "
                "stands behind it, which the Layer-Peeled Model does not know."
            )
            notes = (*notes, Note("classifier-not-last", text))
        bias = None if layer.bias is None else layer.bias.detach().cpu().to(torch.float64).numpy()
        return ClassifierInputs(
            name=self.name,
            weight=layer.weight.detach().cpu().to(torch.float64).numpy(),
            bias=bias,
            counts=self.counts.numpy(),
            hits=self.hits.numpy(),
            sums=self.sums.numpy(),
            squares=self.squares.numpy(),
            margins=self.margins.numpy(),
            notes=notes,
        )


@contextmanager
def _listening(linear: dict[str, nn.Linear], state: _Sums) -> Iterator[None]:
    """Hooks on every linear layer, which come off at the end: before, what it is given; after, what it returns."""

    def before(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
            if state.name in (None, name):
                state.given.pop(name, None)  # the latest call counts, and stands last
                state.given[name] = _copy(args)

        return hook

    def after(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            if state.name in (None, name):
                state.returned[name] = _copy(output)

        return hook

    handles = [module.register_forward_pre_hook(before(name)) for name, module in linear.items()]
    handles += [module.register_forward_hook(after(name)) for name, module in linear.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _copy(value: Any) -> Tensor | None:
    """A tensor that no later layer can overwrite in place."""
    found = first_tensor(value)
    return None if found is None else found.detach().clone()
