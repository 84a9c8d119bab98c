"""Means of numbers that have a seed and a test sample each: how sure they are over other seeds and other samples at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equisep.display import brief
from equisep.errors import InputError
from equisep.law.quantiles import student_quantile, two_sided
from equisep.results import Interval
from equisep.shapes import Float64

LEAST_SEEDS = 3  # of two seeds Student's t knows one difference
LEAST_SAMPLES = 2


@brief
@dataclass(frozen=True, slots=True)
class CrossedMean:
    """The mean of x_si over seeds s and test samples i, and the three parts of its variance.

    x_si = μ + A_s + B_i + E_si with independent parts (two-way random effects). The mean over S seeds and n samples has the
    variance σ_A²/S + σ_B²/n + σ_E²/(S·n). Seeds alone would leave out the second: on other test samples another depth may win.
    With `seeds` or `samples` replaced, `error` and `reach` are those of as many.
    """

    value: float
    seeds: int
    samples: int
    of_seeds: float  # σ_A², σ_B², σ_E², each estimated without bias and cut at 0
    of_samples: float
    of_both: float

    @property
    def by_seed(self) -> float:
        """The variance of the mean over other seeds, the samples being these."""
        return self.of_seeds / self.seeds + self.of_both / (self.seeds * self.samples)

    @property
    def by_sample(self) -> float:
        """What other samples add to it."""
        return self.of_samples / self.samples

    @property
    def error(self) -> float:
        """The standard error over other seeds and other samples."""
        return math.sqrt(self.by_seed + self.by_sample)

    def reach(self, probability: float) -> float:
        """How far beyond the mean a one-sided limit of this probability lies.

        Each part of the variance has Student's quantile of its own, S − 1 and n − 1 degrees of freedom: exact where one part
        is all, and on the safe side between. Satterthwaite's single quantile is not: where seeds happen to lie close together
        it takes the variance *and* the quantile for small, and in the far tails that many comparisons need it was too short.
        """
        of_seeds, of_samples = (student_quantile(probability, count - 1) for count in (self.seeds, self.samples))
        return math.sqrt(of_seeds**2 * self.by_seed + of_samples**2 * self.by_sample)

    def interval(self, level: float, *, within: tuple[float, float] = (-math.inf, math.inf)) -> Interval:
        """The two-sided interval over seeds and test samples, cut to the range `within`."""
        reach = self.reach(two_sided(level))
        low, high = max(self.value - reach, within[0]), min(self.value + reach, within[1])
        return Interval(low=low, high=high, level=level, kind="crossed", n=self.seeds)


def crossed_mean(values: Float64[np.ndarray, "s n"]) -> CrossedMean:
    """The mean of a table of seeds × test samples, with the parts of its variance by the mean squares of the two ways.

    With mean squares MS_A of the seeds, MS_B of the samples and MS_E of the rest, σ_E² = MS_E, σ_A² = (MS_A − MS_E)/n and
    σ_B² = (MS_B − MS_E)/S (Searle, Casella & McCulloch 1992, Section 4.3).
    """
    seeds, samples = values.shape
    if seeds < LEAST_SEEDS or samples < LEAST_SAMPLES:
        raise InputError(
            f"A mean over seeds and test samples needs {LEAST_SEEDS} seeds and {LEAST_SAMPLES} samples; "
            f"found {seeds} and {samples}. Give more."
        )
    mean = float(values.mean())
    by_seed, by_sample = values.mean(axis=1), values.mean(axis=0)  # s, n
    rest = values - by_seed[:, None] - by_sample[None, :] + mean
    of_both = float((rest**2).sum()) / ((seeds - 1) * (samples - 1))
    of_seeds = max(0.0, float(by_seed.var(ddof=1)) - of_both / samples)
    of_samples = max(0.0, float(by_sample.var(ddof=1)) - of_both / seeds)
    return CrossedMean(mean, seeds, samples, of_seeds, of_samples, of_both)
