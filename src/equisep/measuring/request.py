"""What a call of `measure` asks for, checked before any work: Options, which are saved with the numbers, and the Request."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import nn

from equisep.data.feed import Feed, Unpack
from equisep.data.shard import Shard
from equisep.errors import InputError, did_you_mean
from equisep.labels import ClassNames
from equisep.law.effective_depth import PERFECT
from equisep.progress import Progress, callback
from equisep.results import READINGS, Reading, reading_named
from equisep.results.readings import readings_named
from equisep.separation import Center, Convention, Normalization, Weighting
from equisep.separation.site import PRECISIONS
from equisep.taps import (
    GRAINS,
    Calls,
    Reduction,
    Sites,
    check_calls,
    choose,
    kind_name,
    refuse_flattened,
    refuse_scripted,
    refuse_uninitialized,
    site_record,
)

METRICS = (
    "fuzziness", "class_fuzziness", "null", "collapse", "cdnv", "ncc", "traces", "spectrum", "margins", "confusion", "pairs",
    "cdnv_directional",
)  # fmt: skip
Intervals = Literal["auto", "bootstrap", "jackknife", "none"]

MEMORY = 2**30  # bytes of features kept, so that the data are read once
FOLDS = 10
FOLDED = ("auto", "jackknife")  # intervals that are made of folds
MOST_CLASSES = 2**31  # a class index has 31 bits


@dataclass(frozen=True, slots=True)
class Options:
    """Every choice that can change a number of a measurement, saved with the numbers; the docstring of `measure` has each."""

    sites: tuple[str, ...] | str = "auto"
    calls: Calls = "each"
    reduction: str = "auto"
    reading: Reading = "eval"
    metrics: tuple[str, ...] = METRICS
    classes: int | None = None
    classifier: str | None = None
    weighting: Weighting = "sample"
    center: Center | None = None
    normalization: Normalization = "none"
    tol: float | None = None
    epsilon: float = PERFECT
    intervals: Intervals = "auto"
    resamples: int = 200
    level: float = 0.95
    whole: bool = True
    memory: int = MEMORY
    coordinates: int = 300
    seed: int = 0
    precision: str = "float64"

    def __post_init__(self) -> None:
        check_calls(self.calls)
        _check_word("reading", self.reading, READINGS)
        _check_word("intervals", self.intervals, get_args(Intervals))
        _check_word("precision", self.precision, PRECISIONS)
        for name in self.metrics:
            _check_word("metric", name, METRICS)
        if not isinstance(self.whole, bool):
            raise InputError(
                f"`whole` says whether the training data are all there are, True or False; found {self.whole!r}."
            )
        if self.classifier is not None and not isinstance(self.classifier, str):
            raise InputError(f"`classifier` is the name of a linear layer; found {self.classifier!r}.")
        if self.classes is not None and not (isinstance(self.classes, int) and 2 <= self.classes < MOST_CLASSES):
            raise InputError(
                f"`measure` needs at least 2 classes (and fewer than 2³¹); found classes={self.classes!r}."
            )
        for name, least, below, words in (
            ("seed", 0, 2**32, "a whole number, 0 ≤ seed < 2³²"),
            ("memory", 0, 2**63, "a number of bytes, 0 or more"),
            ("coordinates", 0, 2**31, "a number of samples, 0 or more"),
            ("resamples", 2, 2**31, "a number of resamples, 2 or more"),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value < below:
                raise InputError(f"`{name}` is {words}; found {value!r}.")
        for name, words, low in (("epsilon", "a share of samples, 0 ≤ ε < 1", 0.0), ("level", "0 < level < 1", None)):
            value = getattr(self, name)
            known = isinstance(value, numbers.Real) and (0 < float(value) < 1 or float(value) == low)
            if not known:
                raise InputError(f"`{name}` is {words}; found {value!r}.")
            object.__setattr__(self, name, float(value))
        object.__setattr__(self, "tol", self.convention.tol)  # refuse a wrong convention before any work

    @property
    def convention(self) -> Convention:
        """The convention of D."""
        return Convention(weighting=self.weighting, center=self.center, normalization=self.normalization, tol=self.tol)

    def wants(self, *names: str) -> bool:
        """Whether any of these metrics was asked for."""
        return any(name in self.metrics for name in names)


def _check_word(what: str, word: object, known: tuple[str, ...]) -> None:
    if not isinstance(word, str) or word not in known:
        hint = did_you_mean(word, known) if isinstance(word, str) else ""
        raise InputError(f"No {what} `{word}`.{hint} Known: {', '.join(known)}.")


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
    class_names: ClassNames | None
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
        refuse_flattened(model, asked="measure")
        names = _asked_readings(given["reading"], given["readings"], given["mode"])
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
            precision=given["precision"],
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


def _asked_readings(reading: Any, several: Any, mode: Any) -> tuple[Reading, ...]:
    """All readings, the one of the profile first; one that is asked for beside `readings` must be that."""
    one = reading_named(reading, mode=mode)
    if several is None:
        return (one,)
    names = readings_named(several)
    if one not in ("eval", names[0]):  # `eval` is what stands there where nobody chose
        first = ",".join(dict.fromkeys((one, *names)))
        raise InputError(
            f"`reading` asks for a profile in `{one}`, `readings` for one in `{names[0]}`, their first. Leave `reading` out, or "
            f"write readings='{first}'."
        )
    return names


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
