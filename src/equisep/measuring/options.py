"""Every choice that can change a number of a measurement, as one frozen record that is saved with the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args

from equisep.errors import InputError, did_you_mean
from equisep.results import READINGS, Reading
from equisep.separation import Center, Convention, Normalization, Weighting
from equisep.separation.centers import PERFECT
from equisep.taps import Calls, check_calls

METRICS = (
    "fuzziness", "class_fuzziness", "null", "collapse", "cdnv", "ncc", "traces", "spectrum", "margins", "confusion", "pairs",
    "cdnv_directional",
)  # fmt: skip
Intervals = Literal["auto", "bootstrap", "jackknife", "none"]

MEMORY = 2**30  # bytes of features kept, so that the data are read once
FOLDS = 10
MOST_CLASSES = 2**31  # a class index has 31 bits


@dataclass(frozen=True, slots=True)
class Options:
    """What `measure` was asked; see its docstring for each field."""

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

    def __post_init__(self) -> None:
        check_calls(self.calls)
        _check_word("reading", self.reading, READINGS)
        _check_word("intervals", self.intervals, get_args(Intervals))
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
            known = isinstance(value, Real) and (0 < float(value) < 1 or float(value) == low)
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
        return not set(names).isdisjoint(self.metrics)


def _check_word(what: str, word: object, known: tuple[str, ...]) -> None:
    if not isinstance(word, str) or word not in known:
        hint = did_you_mean(word, known) if isinstance(word, str) else ""
        raise InputError(f"No {what} `{word}`.{hint} Known: {', '.join(known)}.")
