"""Test accuracies compared: two classifiers on the same samples, and means over seeds and samples at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equisep.display import brief
from equisep.errors import InputError
from equisep.law.quantiles import normal_quantile, student_quantile, two_sided
from equisep.results import Interval
from equisep.shapes import Float64

LEVEL = 0.05  # of wrongly telling apart what is alike, over all comparisons of one answer
NORMAL_95 = 1.959963984540054
_HALVINGS = 60  # bisection of [−1, 1] to the last bits
LEAST_SEEDS = 3  # of two seeds Student's t knows one difference
LEAST_SAMPLES = 2


@brief
@dataclass(frozen=True, slots=True)
class PairedHits:
    """Of `n` samples, `wins` are right in the first classifier alone, `losses` in the second alone."""

    n: int
    wins: int
    losses: int

    @property
    def difference(self) -> float:
        """Accuracy of the first less that of the second."""
        return (self.wins - self.losses) / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """95 % for the difference: Wald's with half a sample more in each of the four cells (Agresti & Min 2005)."""
        n, wins, losses = self.n + 2, self.wins + 0.5, self.losses + 0.5
        middle = (wins - losses) / n
        reach = NORMAL_95 * math.sqrt((wins + losses) - (wins - losses) ** 2 / n) / n
        return max(-1.0, middle - reach), min(1.0, middle + reach)

    @property
    def p(self) -> float:
        """How often two alike would differ as much: McNemar's exact test, both sides."""
        return sign_test(self.wins, self.losses)


def sign_test(wins: int, losses: int) -> float:
    """2 P(Binomial(wins + losses, ½) ≤ the smaller of both), at most 1."""
    total, fewer = wins + losses, min(wins, losses)
    whole = math.lgamma(total + 1) - total * math.log(2)
    tail = math.fsum(math.exp(whole - math.lgamma(k + 1) - math.lgamma(total - k + 1)) for k in range(fewer + 1))
    return min(1.0, 2 * tail)


def significant_by_holm(ps: Sequence[float]) -> list[bool]:
    """Which comparisons tell a difference, with probability 0.05 for one false alarm among all of them (Holm 1979)."""
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    apart = [False] * len(ps)
    for rank, index in enumerate(order):
        if ps[index] > LEVEL / (len(ps) - rank):
            break
        apart[index] = True
    return apart


def share_interval(hits: int, n: int) -> tuple[float, float]:
    """95 % for a share of n samples (Wilson 1927)."""
    z, share = NORMAL_95, hits / n
    middle, reach = share + z**2 / (2 * n), z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = (middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)
    return (0.0 if hits == 0 else low), (1.0 if hits == n else high)


@brief
@dataclass(frozen=True, slots=True)
class PairedLoss:
    """What a classifier loses against another on the same `n` samples.

    `lost` samples the other had right and this one has wrong, `gained` the other way round; `loss` is the difference of
    accuracies, (lost − gained) / n. `least` and `most` bound it in the population, each at `level` on its own side.
    """

    n: int
    lost: int
    gained: int
    level: float
    loss: float
    least: float
    most: float

    @staticmethod
    def of(n: int, *, lost: int, gained: int, level: float = 0.95) -> PairedLoss:
        """The loss with its two one-sided bounds."""
        if not (n > 0 and lost >= 0 and gained >= 0 and lost + gained <= n):
            raise InputError(f"Of n samples some are lost and some gained; found n={n}, lost={lost}, gained={gained}.")
        z = normal_quantile(level)
        least, most = -_most_loss(n, gained, lost, z), _most_loss(n, lost, gained, z)
        return PairedLoss(n, lost, gained, level, (lost - gained) / n, least, most)

    def samples_to_show(self, within: float) -> int | None:
        """How many samples would bound the same loss by `within`; None where the loss is not below it.

        n ≥ z² (p₁₀ + p₀₁ − Δ²) / (within − Δ)², Wald's variance of a paired difference.
        """
        room = within - self.loss
        if room <= 0:
            return None
        variance = (self.lost + self.gained) / self.n - self.loss**2
        return max(self.n, math.ceil(normal_quantile(self.level) ** 2 * variance / room**2))


def _most_loss(n: int, lost: int, gained: int, z: float) -> float:
    """The greatest Δ = p₁₀ − p₀₁ that a score test at quantile z does not reject (Tango 1998, Statistics in Medicine 17).

    T(Δ) = (b − c − nΔ) / √(n(2q + Δ(1 − Δ))), with b lost, c gained, and q the likeliest p₀₁ under Δ: the positive root of
    2n q² + (−b − c + (2n − b + c)Δ) q − cΔ(1 − Δ) = 0. T falls in Δ; the bound is where it reaches −z.
    """
    low, high = (lost - gained) / n, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _score(middle, n, lost, gained) > -z:
            low = middle
        else:
            high = middle
    return high


def _score(delta: float, n: int, lost: int, gained: int) -> float:
    linear = -lost - gained + (2 * n - lost + gained) * delta
    constant = -gained * delta * (1 - delta)
    likeliest = (math.sqrt(max(linear**2 - 8 * n * constant, 0.0)) - linear) / (4 * n)
    variance = n * (2 * likeliest + delta * (1 - delta))
    return (lost - gained - n * delta) / math.sqrt(variance) if variance > 0 else -math.inf


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
