"""Request: what a call of `measure` asks for, checked before any work is done."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from equisep.data.feed import Feed, Unpack
from equisep.data.shard import Shard
from equisep.errors import InputError
from equisep.measuring.options import MEMORY, METRICS, Options
from equisep.progress import Progress, callback
from equisep.results import Reading, reading_named
from equisep.results.readings import readings_named
from equisep.taps import GRAINS, Reduction, Sites, choose, kind_name, refuse_scripted, refuse_uninitialized, site_record

Feeds = tuple[Feed, Feed | None]


@dataclass(frozen=True, slots=True)
class Request:
    """A model, its data and all choices; `reduction` is None where the model decides."""

    model: nn.Module
    train: Any
    test: Any
    sites: Sites
    reduction: Reduction | None
    readings: tuple[Reading, ...]
    options: Options
    class_names: Sequence[str] | None
    unpack: Unpack | None
    device: str | torch.device | None
    title: str
    progress: Progress

    @staticmethod
    def of(given: Mapping[str, Any]) -> Request:
        """What the arguments of `measure` ask for, or one sentence about what is wrong with them."""
        model, name, sites, reduction = given["model"], given["name"], given["sites"], given["reduction"]
        if not isinstance(model, nn.Module):
            raise InputError(f"`measure` needs a torch.nn.Module; found {type(model).__name__}.")
        if name is not None and not isinstance(name, str):
            raise InputError(f"`name` is what the profile calls the model; found {name!r}.")
        refuse_scripted(model, asked="measure")
        refuse_uninitialized(model, asked="measure")
        several, mode = given["readings"], given["mode"]
        names = (reading_named(given["reading"], mode=mode),) if several is None else readings_named(several)
        how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
        same = ("calls", "classifier", "weighting", "center", "normalization", "tol", "epsilon", "intervals", "level")
        whole, memory = given["whole"], given["memory"]
        options = Options(
            sites=site_record(sites),
            reduction="auto" if how is None else how.name,
            reading=names[0],
            metrics=metric_names(given["metrics"]),
            whole=True if whole is None else whole,
            memory=MEMORY if memory is None else plain_number(memory),
            **{name: plain_number(given[name]) for name in ("classes", "resamples", "coordinates", "seed")},
            **{name: given[name] for name in same},
        )
        if not (isinstance(sites, str) and sites in GRAINS):
            choose(model, sites)  # refuse wrong sites before any work
        return Request(
            model=model,
            train=given["train"],
            test=given["test"],
            sites=sites,
            reduction=how,
            readings=names,
            options=options,
            class_names=given["class_names"],
            unpack=given["unpack"],
            device=given["device"],
            title=name or kind_name(model),
            progress=callback(given["progress"]),
        )

    def feeds(
        self, reading: Reading, *, device: torch.device, dtype: torch.dtype | None, shard: Shard | None = None
    ) -> Feeds:
        """The training and the test data as one reading takes them."""

        def feed(data: Any, what: str) -> Feed:
            return Feed(data, what=what, device=device, dtype=dtype, unpack=self.unpack, reading=reading, shard=shard)

        return feed(self.train, "training"), None if self.test is None else feed(self.test, "test")


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
