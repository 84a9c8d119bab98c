"""Two classifiers on the same samples: what one loses against the other, and the most it may lose beyond the samples at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equisep.errors import InputError
from equisep.law.quantiles import normal_quantile

_HALVINGS = 60  # bisection of [−1, 1] to the last bits


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
