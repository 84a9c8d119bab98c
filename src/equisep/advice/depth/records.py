"""What a search for a depth is asked, what became of every network shape, and what follows: frozen records, no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from equisep.advice.paired_hits import LEAST_SEEDS
from equisep.advice.standings import Enough, Standing
from equisep.display import brief
from equisep.errors import InputError, did_you_mean
from equisep.law.quantiles import two_sided
from equisep.law.seeds import seed_interval
from equisep.results import Interval
from equisep.results.readings import reading_named

# what the families change of a network of linear layers, each with BatchNorm and ReLU
FAMILIES: Mapping[str, Mapping[str, bool]] = MappingProxyType(
    {
        "fnn": MappingProxyType({}),
        "fnn-linear": MappingProxyType({"activation": False}),
        "fnn-no-batchnorm": MappingProxyType({"norm": False}),
    }
)
DEPTHS = (2, 3, 4, 6, 8, 12, 16)
MOST_DEPTH = 1000
SAMPLES = 1000  # that each seed draws of a larger training set, in the proportions of its classes
SHARE, ABOVE_ZERO = (0.0, 1.0), (0.0, math.inf)
# where an interval is cut, by the field of a trial; D is summed up by its logarithm
RANGES: Mapping[str, tuple[float, float]] = {
    "accuracy": SHARE,
    "accuracy_test": SHARE,
    "rho": ABOVE_ZERO,
    "r": (-1.0, 1.0),
    "effective_depth": ABOVE_ZERO,
    "ncc": SHARE,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """A mean, its interval, and how many seeds have the number; both None where no seed has, the latter also where one has."""

    mean: float | None
    interval: Interval | None
    n: int


def summary_of(
    values: Sequence[float | None], level: float, *, within: tuple[float, float] = (-math.inf, math.inf)
) -> Summary:
    """The mean and Student-t interval of the seeds that have a number."""
    known = [float(value) for value in values if value is not None]
    interval = seed_interval(known, level, within=within) if len(known) > 1 else None
    return Summary(math.fsum(known) / len(known) if known else None, interval, len(known))


def geometric_summary(values: Sequence[float | None], level: float) -> Summary:
    """The geometric mean of numbers above 0, and the interval of the mean logarithm, transformed back."""
    logs = summary_of([math.log(value) if value else None for value in values], level)
    if logs.mean is None:
        return logs
    band = logs.interval
    if band is not None:
        band = Interval(math.exp(band.low), math.exp(band.high), band.level, band.kind, band.n)
    return Summary(math.exp(logs.mean), band, logs.n)


@dataclass(frozen=True, slots=True)
class DepthSettings:
    """Which networks are trained, how, on how many samples, and how they are compared.

    depths         linear layers, the classifier included; two or more.
    widths, rates  every depth is trained at every width and Adam's rate.
    seeds, seed    how many, from `seed` on: each makes weights and batch order, and draws a training sample of its own.
    per_class, samples   how many training samples a seed draws: of each class, or in all, in the proportions of the classes.
    held_out       the share of the data held out of training where there are no test data.
    reading        how D, ρ, r and nearest centers are read; accuracies are those of the network as it is used (`eval`).
    margin         how far below the best depth one may lie that is recommended; by default one point of test accuracy, or a
                   fifth of the best depth's errors where that is less.
    level          of the intervals, and of the recommendation: it is wrong in at most 1 − level of all searches.
    fit            the least training accuracy, as a mean over seeds, of a depth that counts.
    epsilon        the share of training samples that nearest centers may miss, for effective and minimal NCC depth.
    """

    depths: tuple[int, ...] = DEPTHS
    widths: tuple[int, ...] = (100,)
    rates: tuple[float, ...] = (3e-3,)
    family: str = "fnn"
    seeds: int = 8
    seed: int = 0
    epochs: int = 200
    batch_size: int = 128
    per_class: int | None = None
    samples: int | None = SAMPLES
    held_out: float = 0.2
    reading: str = "eval"
    margin: float | None = None
    level: float = 0.95
    fit: float = 0.99
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        for name in ("depths", "widths", "rates"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        object.__setattr__(self, "depths", tuple(sorted(self.depths)))
        reading_named(self.reading)
        two_sided(self.level)
        self._check_shapes()
        self._check_numbers()

    @property
    def trials(self) -> int:
        """How many are trained: depths × widths × rates; a network of one layer has no width."""
        shapes = sum(1 if depth == 1 else len(self.widths) for depth in self.depths)
        return shapes * len(self.rates)

    def _check_shapes(self) -> None:
        if self.family not in FAMILIES:
            raise InputError(
                f"`family` was `{self.family}`.{did_you_mean(self.family, FAMILIES)} Families that train side by side: "
                f"{', '.join(FAMILIES)}."
            )
        if len(self.depths) < 2:
            raise InputError(
                f"A depth is chosen among several; found {_listed(self.depths) or 'none'}. Pass `depths` such as 2,4,8."
            )
        strange = [depth for depth in self.depths if not 1 <= depth <= MOST_DEPTH]
        if strange:
            raise InputError(
                f"A depth is 1 to {MOST_DEPTH} linear layers, the classifier included; found {strange[0]}."
            )
        if not self.widths or min(self.widths) < 1:
            raise InputError(f"`widths` are whole numbers from 1 on; found {_listed(self.widths) or 'none'}.")
        if not self.rates or not all(math.isfinite(rate) and rate > 0 for rate in self.rates):
            raise InputError(f"`rates` are numbers above 0; found {_listed(self.rates) or 'none'}.")

    def _check_numbers(self) -> None:
        if self.seeds < LEAST_SEEDS:
            raise InputError(
                f"How far seeds spread is seen from {LEAST_SEEDS} on; `seeds` was {self.seeds}. Pass 5 or more."
            )
        for name, least in (("seed", 0), ("epochs", 1), ("batch_size", 2), ("per_class", 2), ("samples", 2)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"`{name}` was {value}; at least {least} is needed.")
        for name in ("held_out", "fit"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"`{name}` is a share between 0 and 1; found {getattr(self, name)}.")
        if self.margin is not None and not 0 <= self.margin < 1:
            raise InputError(
                f"`margin` is a share of the test samples, such as 0.01 for one point; found {self.margin}."
            )


@brief
@dataclass(frozen=True, slots=True)
class Trial:
    """One network shape at one rate, trained with several seeds; a number per seed, None where it does not exist.

    last              D at the last layer before the classifier, on the training samples
    rho, r            the law of equi-separation over all layers
    effective_depth   the first layer from which on nearest centers err on a share of at most ε
    ncc               accuracy of nearest centers at the last layer, on the training samples
    summaries         of each of these the mean over seeds with its interval; that of test accuracy is over test samples too
    """

    depth: int
    width: int
    rate: float
    parameters: int
    accuracy: tuple[float | None, ...]
    accuracy_test: tuple[float | None, ...]
    last: tuple[float | None, ...]
    rho: tuple[float | None, ...]
    r: tuple[float | None, ...]
    effective_depth: tuple[int | None, ...]
    ncc: tuple[float | None, ...]
    diverged: tuple[int | None, ...]
    summaries: Mapping[str, Summary] = field(default_factory=dict)

    @property
    def mean_accuracy(self) -> float | None:
        """Training accuracy, mean over seeds; None where a seed has none."""
        return mean_of(self.accuracy)

    @property
    def mean_accuracy_test(self) -> float | None:
        """Test accuracy, mean over seeds; None where a seed has none."""
        return mean_of(self.accuracy_test)

    @property
    def mean_last(self) -> float | None:
        """Final D, geometric mean over seeds; None where a seed has none above 0."""
        if any(value is None or value <= 0 for value in self.last):
            return None
        mean = mean_of([math.log(value) for value in self.last if value is not None])
        return None if mean is None else math.exp(mean)


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of numbers that all exist."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


@brief
@dataclass(frozen=True, slots=True)
class MinimalNccDepth:
    """An upper estimate of Galanti & Galanti's minimal NCC depth, from trained networks (2022, Definition 3).

    depth        the least depth tried, in linear layers with the classifier, of which *some* network separates; None: not reached
    every        the least depth of which every seed's network does
    separated    by depth: how many of its networks do, and
    networks     how many there are
    best         by depth: the least share of training samples that nearest centers miss at the last layer
    """

    epsilon: float
    depth: int | None
    every: int | None
    separated: Mapping[int, int]
    networks: Mapping[int, int]
    best: Mapping[int, float | None]

    @property
    def hidden(self) -> int | None:
        """The same in hidden layers, as Galanti & Galanti count."""
        return None if self.depth is None else self.depth - 1


@brief
@dataclass(frozen=True, slots=True)
class DepthAdvice:
    """A recommended depth, or none, with its evidence; trials are named by their position in `trials`.

    recommended    the shallowest trial shown to lie within `margin` of the best of all; None: the evidence does not tell
    best           the trial with the highest mean test accuracy, of those that count
    least          the trial with the least final D, He & Su's guideline, and `near_least`, those not told from it
    left_out       trials that do not count: some networks diverged, or did not fit the training data
    """

    trials: tuple[Trial, ...]
    margin: float
    recommended: int | None = None
    best: int | None = None
    standings: tuple[Standing, ...] = ()
    least: int | None = None
    near_least: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    enough: Enough = field(default_factory=Enough)
    minimal_ncc: MinimalNccDepth | None = None
    settings: DepthSettings = field(default_factory=DepthSettings)
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def depth(self) -> int | None:
        """The recommended number of linear layers, the classifier included; None where the evidence does not tell."""
        return None if self.recommended is None else self.trials[self.recommended].depth

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words, the recommendation first."""
        from equisep.advice.depth.words import sentences_of

        return sentences_of(self)

    def __str__(self) -> str:
        return self.sentences[0]


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
