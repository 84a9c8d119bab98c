"""Every choice that can change a number of a measurement, as one frozen record that is saved with the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from equisep.errors import InputError, did_you_mean
from equisep.results import READINGS, Reading
from equisep.separation import Center, Convention, Normalization, Weighting
from equisep.taps import Calls, check_calls

METRICS = ("fuzziness", "class_fuzziness", "null", "collapse", "cdnv", "ncc", "traces", "spectrum")
Intervals = Literal["auto", "bootstrap", "jackknife", "none"]

MEMORY = 2**30  # bytes of features kept, so that the data are read once
FOLDS = 10
PERMUTATIONS = 5  # of the labels, for the null, where features are kept …
FEW_NUMBERS = 2**22  # … and the site is no larger than this; one beyond, and one where sites are read twice
BOOTSTRAP_WORK = 5e10  # operations up to which `auto` takes the bootstrap: seconds on two cores


@dataclass(frozen=True, slots=True)
class Options:
    """What `measure` was asked; see its docstring for each field."""

    sites: tuple[str, ...] | str = "auto"
    calls: Calls = "each"
    reduction: str = "flatten"
    reading: Reading = "eval"
    metrics: tuple[str, ...] = METRICS
    classes: int | None = None
    classifier: str | None = None
    weighting: Weighting = "sample"
    center: Center | None = None
    normalization: Normalization = "none"
    tol: float | None = None
    epsilon: float = 0.0
    intervals: Intervals = "auto"
    resamples: int = 200
    level: float = 0.95
    memory: int = MEMORY
    coordinates: int = 300
    seed: int = 0

    def __post_init__(self) -> None:
        check_calls(self.calls)
        if self.reading not in READINGS:
            hint = did_you_mean(str(self.reading), READINGS)
            raise InputError(f"No reading `{self.reading}`.{hint} Known: {', '.join(READINGS)}.")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**32:
            raise InputError(f"`seed` is a whole number, 0 ≤ seed < 2³²; found {self.seed!r}.")
        if not isinstance(self.memory, int):
            raise InputError(f"`memory` is a number of bytes; found {self.memory!r}.")
        for name in self.metrics:
            if name not in METRICS:
                raise InputError(f"No metric `{name}`.{did_you_mean(name, METRICS)} Known: {', '.join(METRICS)}.")
        if self.intervals not in get_args(Intervals):
            hint = did_you_mean(str(self.intervals), get_args(Intervals))
            raise InputError(f"No intervals `{self.intervals}`.{hint} Known: {', '.join(get_args(Intervals))}.")
        if self.classes is not None and (not isinstance(self.classes, int) or self.classes < 2):
            raise InputError(f"`measure` needs at least 2 classes; found classes={self.classes!r}.")
        if not isinstance(self.epsilon, int | float) or not 0 <= self.epsilon < 1:
            raise InputError(f"`epsilon` is a share of samples, 0 ≤ ε < 1; found {self.epsilon!r}.")
        for name in ("resamples", "level", "coordinates"):
            if not isinstance(getattr(self, name), int | float):
                raise InputError(f"`{name}` is a number; found {getattr(self, name)!r}.")
        if self.resamples < 2 or not 0 < self.level < 1 or self.memory < 0 or self.coordinates < 0:
            raise InputError(
                "`measure` needs resamples ≥ 2, 0 < level < 1, memory ≥ 0 and coordinates ≥ 0; found "
                f"resamples={self.resamples}, level={self.level}, memory={self.memory}, coordinates={self.coordinates}."
            )

    @property
    def convention(self) -> Convention:
        """The convention of D."""
        return Convention(weighting=self.weighting, center=self.center, normalization=self.normalization, tol=self.tol)

    def wants(self, *names: str) -> bool:
        """Whether any of these metrics was asked for."""
        return any(name in self.metrics for name in names)
