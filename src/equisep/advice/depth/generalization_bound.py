"""The comparative bound of Galanti & Galanti 2022 (Prop. 1), estimated from repeated draws of two samples S1 and S2.

An algorithm is (ε, δ)-balanced if, with probability 1 − δ or more over balanced S1 and S2, the shares of the classes among the
answers of the network trained on S1 to S2 are within ε of 1/C, in the 1-norm (Def. 3). Then for every p

    E[err] ≤ P[ d_S1 ≥ min over Ỹ2 of d_min(S1 ∪ S̃2) ] + p + δ,

d_S1 the effective depth of the network trained on S1, d_min the least depth of a network that separates S1 together with S2
under the labels Ỹ2, which run over all ε-balanced ones that differ from the true ones on a share p or more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equisep.display import brief
from equisep.errors import InputError

LEVEL = 0.95  # of the limits of P and δ together: each is exact at half of what is left


@brief
@dataclass(frozen=True, slots=True)
class Balancedness:
    """How often answers are out of balance: (ε, δ) of Galanti & Galanti 2022, Def. 3, from n draws.

    delta       the share of the draws whose distance is above ε. `upper`: its limit at 97.5 % (Clopper & Pearson 1934)
    """

    epsilon: float
    n: int
    delta: float
    upper: float


@brief
@dataclass(frozen=True, slots=True)
class ComparativeEstimate:
    """What the right-hand side of Prop. 1 comes to at one p, from n draws of S1 and S2.

    probability     the share of the draws with d_S1 ≥ the least depth seen to separate both samples
    value           probability + p + δ; without δ where `delta` is None
    upper           the same from the upper limits of both shares, 95 % together: what the number of draws leaves open
    least_depth     the mean over the draws for which a depth that was tried separates both; None if there is none
    """

    p: float
    n: int
    probability: float
    delta: float | None
    value: float
    upper: float
    least_depth: float | None

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: an error is 1 at most."""
        return self.value >= 1


def class_share_distance(labels: Any, classes: int) -> float:
    """‖(shares of the classes among some labels) − (1/C, …, 1/C)‖₁: from 0, balanced, to 2(1 − 1/C), one class alone.

    >>> from equisep.advice.depth import class_share_distance
    >>> class_share_distance([0, 0, 0, 1], 2)
    0.5
    """
    known = np.asarray(labels, dtype=np.int64).reshape(-1)
    if classes < 2 or known.size == 0 or known.min() < 0 or known.max() >= classes:
        raise InputError(
            f"The class shares of {known.size} labels were asked for {classes} classes. Pass labels from 0 to the number of "
            "classes less 1, one or more of them, and 2 classes or more."
        )
    shares = np.bincount(known, minlength=classes) / known.size
    return float(np.abs(shares - 1 / classes).sum())


def balancedness(distances: Sequence[float], *, epsilon: float) -> Balancedness:
    """δ at one ε, from the `class_share_distance` of the answers to S2 in each of several draws of S1 and S2.

    >>> from equisep.advice.depth import balancedness
    >>> found = balancedness([0.07, 0.10, 0.22, 0.08], epsilon=0.2)
    >>> found.delta, f"{found.upper:.3f}"
    (0.25, '0.806')
    """
    if not len(distances):
        raise InputError("(ε, δ)-balancedness needs one draw of two samples or more; found none.")
    beyond = sum(float(distance) > epsilon for distance in distances)
    n = len(distances)
    return Balancedness(epsilon=float(epsilon), n=n, delta=beyond / n, upper=upper_share(beyond, n))


def comparative_bound(
    effective: Sequence[float | None],
    minimal: Sequence[float | None],
    *,
    p: float,
    balanced: Balancedness | None = None,
) -> ComparativeEstimate:
    """The right-hand side of Prop. 1 at one p, from draws of S1 and S2.

    `effective` has for each draw the effective depth of the network trained on S1 (None: no layer separates, which counts
    against the estimate), `minimal` the least depth that was *seen* to separate S1 together with S2 under some admissible
    labels (None: none that was tried). Any labels that are ε-balanced and differ enough may be tried, since Prop. 1 takes the
    least over all: those drawn at random alone are not the easiest to separate, and give too small a probability. So does
    training, which need not find the shallowest network. What comes out is an estimate, never a bound; every further labeling
    that is tried can only raise it.

    >>> from equisep.advice.depth import balancedness, comparative_bound
    >>> balanced = balancedness([0.07, 0.10, 0.09, 0.08], epsilon=0.2)
    >>> found = comparative_bound([2, 2, 2, 2], [3, 3, 2, None], p=0.3, balanced=balanced)
    >>> found.probability, round(found.value, 12), found.vacuous
    (0.25, 0.55, False)
    """
    n = len(effective)
    if not n or len(minimal) != n:
        raise InputError(
            f"The comparative bound needs both depths of each draw; found {n} effective and {len(minimal)} minimal ones."
        )
    if not 0 <= p <= 1:
        raise InputError(f"`p` is a share of labels; found {p}. Pass a number from 0 to 1.")
    least = [math.inf if depth is None else float(depth) for depth in minimal]
    reached = sum(
        (math.inf if depth is None else float(depth)) >= other for depth, other in zip(effective, least, strict=True)
    )
    known = [depth for depth in least if math.isfinite(depth)]
    probability = reached / n
    delta = None if balanced is None else balanced.delta
    return ComparativeEstimate(
        p=float(p),
        n=n,
        probability=probability,
        delta=delta,
        value=probability + p + (delta or 0.0),
        upper=upper_share(reached, n) + p + (0.0 if balanced is None else balanced.upper),
        least_depth=float(np.mean(known)) if known else None,
    )


def upper_share(successes: int, n: int) -> float:
    """The share s at which `successes` or fewer of n come about once in 40 times: the exact one-sided limit at 97.5 %."""
    if successes >= n:
        return 1.0
    tail = (1 - LEVEL) / 2
    low, high = successes / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        under = sum(math.comb(n, k) * middle**k * (1 - middle) ** (n - k) for k in range(successes + 1))
        low, high = (middle, high) if under > tail else (low, middle)
    return high
