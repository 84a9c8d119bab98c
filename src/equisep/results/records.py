"""The small frozen records that numbers travel in: notes, intervals, one site's reading, one curve's law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from equisep.display import brief

# of a difference: combined from two others, or paired, with the same folds left out of both; crossed: over seeds and samples;
# prediction: of the number of one more seed
IntervalKind = Literal["bootstrap", "jackknife", "seeds", "combined", "paired", "crossed", "prediction"]
Verdict = Literal["law", "between", "no law", "undetermined"]

LAW_R = -0.996  # He & Su (2023) call this correlation a law …
NO_LAW_R = -0.971  # … and this one none
FUZZY_R = -0.95  # ours: up to here ln D falls nearly along a line
BREAK_LEVEL = 0.05  # two slopes are called at this rate of false alarms under one slope
LEAST_SITES = 3  # two points always lie on a line
COLLAPSED, NOT_COLLAPSED = 0.01, 0.02  # ours, of NC1: a network within a hundredth of collapse has it


def law_verdict(r: float | None, rho: float | None, *, sites: int) -> Verdict:
    """The one word for a curve of D, for profiles, figures, tables and pages alike.

    `law` for r ≤ −0.996, `no law` for r > −0.971 or ρ ≥ 1, `between` where the paper calls it neither; `undetermined` for
    fewer than three sites, or where r does not exist.
    """
    if sites < LEAST_SITES or r is None or rho is None:
        return "undetermined"
    if rho >= 1 or r > NO_LAW_R:
        return "no law"
    return "law" if r <= LAW_R else "between"


@brief
@dataclass(frozen=True, slots=True)
class Note:
    """A number that stands but needs care: what it is about (`code`, stable) and why (`text`, one sentence)."""

    code: str
    text: str
    site: str | None = None

    def __str__(self) -> str:
        return f"{self.site}: {self.text}" if self.site else self.text


@brief
@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval at `level`, by `kind`, from `n` resamples, folds or seeds."""

    low: float
    high: float
    level: float
    kind: IntervalKind
    n: int

    def __str__(self) -> str:
        return f"[{self.low:.4g}, {self.high:.4g}]"


@brief
@dataclass(frozen=True, slots=True)
class Break:
    """One slope against two: the best two-slope fit of ln D, and whether it is more than chance.

    `at` is the position in the curve where the slope changes; `rhos` the factor per layer before and after it. `p` is how
    often curves of one slope bend as much, whichever of the kinds of `noise` makes them; two slopes are called at `p` ≤ 0.05.
    `strength` is the bend over what 5 % of curves of one slope exceed, as far as the curve alone tells (without folds): above
    1 they are called. Profiles of earlier versions have the BIC of both fits alone.
    """

    at: int
    rhos: tuple[float, float]
    bic_one: float
    bic_two: float
    strength: float | None = None
    p: float | None = None
    noise: tuple[str, ...] = ()

    @property
    def clear(self) -> bool | None:
        """Whether there are two slopes, wrongly said of at most 5 % of curves that have one; None where it was not asked."""
        return None if self.p is None else self.p <= BREAK_LEVEL

    @property
    def gain(self) -> float:
        """How much better two slopes are, in BIC (positive: two)."""
        return self.bic_one - self.bic_two


@brief
@dataclass(frozen=True, slots=True)
class LawFit:
    """The law of equi-separation fitted to one curve: ln D_l = intercept + l ln ρ (He & Su 2023, Eq. 2).

    A field is `None` where the number does not exist; a Note then says why.

    >>> import equisep
    >>> law = equisep.fit_law([40.0, 21.0, 9.5, 5.2, 2.4])
    >>> f"{law.rho:.3f} {law.half_life:.2f} {law.r:.4f}", law.verdict
    ('0.495 0.99 -0.9993', 'law')
    """

    curve: tuple[float, ...]
    rho: float | None = None
    intercept: float | None = None
    half_life: float | None = None
    r: float | None = None
    r2: float | None = None
    residuals: tuple[float, ...] = ()
    max_residual: float | None = None
    loads: tuple[float, ...] = ()
    imbalance: float | None = None
    two_slopes: Break | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """One word for the curve; see `law_verdict`."""
        return law_verdict(self.r, self.rho, sites=len(self.curve))

    @property
    def fuzzy(self) -> bool:
        """Whether ln D falls nearly along a line, r ≤ −0.95 (our word and our threshold; a law is fuzzy too)."""
        return self.verdict != "undetermined" and (self.rho or 0) < 1 and (self.r or 0) <= FUZZY_R


def work_shares(law: LawFit) -> tuple[float, ...] | None:
    """Which share of the whole fall of ln D each layer takes: (ln D_{l−1} − ln D_l) / (ln D_0 − ln D_L), which sum to 1.

    None where there are no loads, or where D rises again by more than a third of its falls: a fall of nothing has no shares.
    """
    total = sum(law.loads)
    falls = law.loads and total >= 0.5 * sum(map(abs, law.loads)) > 0
    return tuple(load / total for load in law.loads) if falls else None


@brief
@dataclass(frozen=True, slots=True)
class LawSummary:
    """Several laws of one kind (one per seed) as means with intervals over seeds."""

    n: int
    rho: float | None
    half_life: float | None
    r: float | None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@brief
@dataclass(frozen=True, slots=True)
class Coordinates:
    """Samples of one site on its first two principal components, for plots."""

    points: tuple[tuple[float, float], ...]
    labels: tuple[int, ...]
    explained: tuple[float, float]


@brief
@dataclass(frozen=True, slots=True)
class ClassPair:
    """Two classes and a number between them: samples of `first` taken for `second`, a distance, a cosine."""

    first: int
    second: int
    value: float


@brief
@dataclass(frozen=True, slots=True)
class ClassCosines:
    """Cosines between the class means, centered on their mean: all of them, or of more than 100 classes the extremes.

    `rows[i]` holds the cosines of class i + 1 with the classes before it (up to 100 classes): a class without samples, or whose
    mean is the common one, has `None`. `least` and `greatest` are the 20 extremes on either side of more classes. `mean` is
    over all pairs. The simplex ETF of neural collapse has −1/(K−1) everywhere.
    """

    mean: float
    least: tuple[ClassPair, ...] = ()
    greatest: tuple[ClassPair, ...] = ()
    rows: tuple[tuple[float | None, ...], ...] | None = None

    def between(self, one: int, other: int) -> float | None:
        """The cosine between two classes, where all are kept and both have a mean of their own."""
        if self.rows is None or one == other:
            return None
        return self.rows[max(one, other) - 1][min(one, other)]


@brief
@dataclass(frozen=True, slots=True)
class PopulationEstimate:
    """D of the population from all samples and without each fold, as matrices give it, before it is known how far to trust it.

    `value` is None where the estimate does not exist; it and the replicates may be negative, where noise is all there is. The
    `signal` is the squared length of the class means without noise (a harmonic mean over directions), over what noise adds.
    `excess` is by what share a jackknife exceeds the variance, `null_error` by how much plain D varies as a share under random
    labels by noise of the means, `least_error` the part of the standard error, as a share of D, that no estimator can take away.
    `elongation` is the squared length of the class means along their longest direction over that along their shortest, `unlike`
    the spread that classes put into one direction of the means over that in another, as far as samples tell classes apart.
    """

    value: float | None
    left_out: tuple[float, ...] = ()
    signal: float = 0.0
    signals_left_out: tuple[float, ...] = ()
    excess: float = 0.0
    null_error: float = 0.0
    least_error: float = 0.0
    elongation: float = 1.0
    unlike: float = 1.0


@brief
@dataclass(frozen=True, slots=True)
class Corrected:
    """D of the population that samples were drawn from: a value with its interval at `level`, or the reason why there is none.

    `low` is 0 where noise alone may have made the value as large. `chance` is plain D under random labels, `needed_per_class`
    about how many samples per class would do where these do not. `folds` is the value without each fold, for the law.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    chance: float | None = None
    needed_per_class: int | None = None
    reason: str | None = None
    folds: tuple[float, ...] = ()

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"
        asked = f"; about {self.needed_per_class:,} samples per class are needed" if self.needed_per_class else ""
        return f"not measurable from these samples: {self.reason}{asked}"


@brief
@dataclass(frozen=True, slots=True)
class SiteReading:
    """Everything measured at one site. Fields not asked for, or that do not exist there, are `None`.

    Without a suffix a number is of the training data; `_test` marks the test data. `null` is the chance level: D under
    permuted labels. `confused` are the pairs (class, class it was taken for) that nearest centers confuse most often, with the
    number of samples; `nearest` those whose means are closest, with their distance. `fuzziness_folds` is D without each fold
    of the samples, where intervals are by jackknife. `corrected` is D of the population behind the samples.
    """

    index: int
    name: str
    dim: int
    fuzziness: float | None = None
    fuzziness_test: float | None = None
    fuzziness_interval: Interval | None = None
    null: float | None = None
    class_fuzziness: tuple[float | None, ...] | None = None
    rank: int | None = None
    cut: float | None = None
    singular_values: tuple[float, ...] | None = None
    nc1: float | None = None
    norm_spread: float | None = None
    angle_spread: float | None = None
    angle_gap: float | None = None
    etf_distance: float | None = None
    trace_within: float | None = None
    trace_between: float | None = None
    cdnv: float | None = None
    cdnv_test: float | None = None
    ncc_train: float | None = None
    ncc_test: float | None = None
    coordinates: Coordinates | None = None
    corrected: Corrected | None = None
    corrected_test: Corrected | None = None
    cdnv_directional: float | None = None
    ncc_class_train: tuple[float | None, ...] | None = None
    ncc_class_test: tuple[float | None, ...] | None = None
    confused: tuple[ClassPair, ...] | None = None
    confused_test: tuple[ClassPair, ...] | None = None
    nearest: tuple[ClassPair, ...] | None = None
    cosines: ClassCosines | None = None
    fuzziness_folds: tuple[float, ...] | None = None


@brief
@dataclass(frozen=True, slots=True)
class SampleOrder:
    """Which samples were read under which numbers, as far as fingerprints tell: two profiles with one order share their folds.

    `labels` and `inputs` are CRC-32 in the order of the samples, whatever the batches; of `inputs` 64 numbers per sample at
    most, `None` where the model takes no tensor. A sample's fold follows from its number, `folds` and `seed`.
    """

    n: int
    labels: str
    inputs: str | None
    folds: int
    seed: int


@brief
@dataclass(frozen=True, slots=True)
class GrainChoice:
    """Which grain the profile reports, and what the other one has, where both were measured.

    The choice follows the structure of the model, never how well a grain follows the law: `reason` says by what. `sites` are
    the names of each grain; `others` the readings of sites that the chosen grain does not have. `gain` and `bic` stand in
    profiles of earlier versions only, which chose by the fit.
    """

    chosen: str
    sites: Mapping[str, tuple[str, ...]]
    others: tuple[SiteReading, ...] = ()
    reason: str = ""
    gain: float | None = None
    bic: Mapping[str, float] = field(default_factory=dict)


@brief
@dataclass(frozen=True, slots=True)
class ClassifierReading:
    """The last linear layer: the geometry of its rows, and its duality with the class means it reads (NC3, NC4).

    `margins` are of the scores that the network returns: per class the mean of the own score less the largest other.
    """

    name: str
    norm_spread: float
    angle_spread: float
    angle_gap: float
    etf_distance: float
    nc3: float | None = None
    nc4: float | None = None
    nc4_test: float | None = None
    margins: tuple[float | None, ...] | None = None
    margins_test: tuple[float | None, ...] | None = None
