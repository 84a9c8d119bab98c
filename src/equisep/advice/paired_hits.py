"""Two classifiers on the same test samples: by how much one is better, and whether that can be told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.05  # of wrongly telling apart what is alike, over all comparisons of one answer
NORMAL_95 = 1.959963984540054


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


def told_apart(ps: Sequence[float], *, level: float = LEVEL) -> list[bool]:
    """Which comparisons tell a difference, with `level` for one false alarm among all of them (Holm 1979)."""
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    apart = [False] * len(ps)
    for rank, index in enumerate(order):
        if ps[index] > level / (len(ps) - rank):
            break
        apart[index] = True
    return apart


def share_interval(hits: int, n: int) -> tuple[float, float]:
    """95 % for a share of n samples (Wilson 1927)."""
    z, share = NORMAL_95, hits / n
    middle, reach = share + z**2 / (2 * n), z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = (middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)
    return (0.0 if hits == 0 else low), (1.0 if hits == n else high)
