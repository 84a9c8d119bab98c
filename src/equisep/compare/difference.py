"""The records of a comparison: one number of two laws, sites or profiles beside each other, and the interval between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from equisep.compare.paired import PairedInterval, Same
from equisep.display import brief
from equisep.results import Interval, Note

MOST = 700  # of a logarithm: beyond, its exponential is more than a number can hold


@brief
@dataclass(frozen=True, slots=True)
class Difference:
    """One number of two laws: `value` = b − a, its interval, and whether that excludes 0 (`None`: no interval).

    `bias`, in standard errors, is why a paired interval was left out.
    """

    a: float | None
    b: float | None
    value: float | None = None
    interval: Interval | None = None
    excludes_zero: bool | None = None
    bias: float | None = None

    @property
    def told_apart(self) -> str:
        """In a word: `same` numbers, a `clear` or `unclear` difference, nothing without an interval."""
        return _told_apart(self.a, self.b, self.excludes_zero)


@brief
@dataclass(frozen=True, slots=True)
class Ratio:
    """One positive number of two curves: `value` = b / a, its interval, and whether that excludes 1; `bias` as above."""

    a: float | None
    b: float | None
    value: float | None = None
    interval: Interval | None = None
    excludes_one: bool | None = None
    bias: float | None = None

    @property
    def told_apart(self) -> str:
        """In a word, as of a difference."""
        return _told_apart(self.a, self.b, self.excludes_one)


def _told_apart(a: float | None, b: float | None, beyond_doubt: bool | None) -> str:
    if a is not None and a == b:
        return "same"
    return "" if beyond_doubt is None else "clear" if beyond_doubt else "unclear"


@brief
@dataclass(frozen=True, slots=True)
class LawDifference:
    """Law b against law a: differences b − a, and the ratio of D at the last site."""

    rho: Difference
    half_life: Difference
    r: Difference
    imbalance: Difference
    last: Ratio
    notes: tuple[Note, ...] = ()


@brief
@dataclass(frozen=True, slots=True)
class SiteDifference:
    """One site of profile b against one of profile a: the ratio of D, and differences b − a of the accuracies."""

    index_a: int
    index_b: int
    name_a: str
    name_b: str
    fuzziness: Ratio
    ncc_train: Difference
    ncc_test: Difference


@brief
@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting that both profiles record, and in which they differ."""

    name: str
    a: Any
    b: Any


@brief
@dataclass(frozen=True, slots=True)
class ProfileDifference:
    """Profile b against profile a; `paired` says whether both read the same samples, or labels, so that folds are paired."""

    model_a: str
    model_b: str
    law: LawDifference
    effective_depth: Difference
    accuracy_train: Difference
    accuracy_test: Difference
    sites: tuple[SiteDifference, ...] = ()
    settings: tuple[SettingDifference, ...] = ()
    notes: tuple[Note, ...] = ()
    paired: Same | None = None

    @property
    def nothing_differs(self) -> bool:
        """Whether every number that is compared is the same on both sides, or on neither."""
        law = self.law
        parts: list[Difference | Ratio] = [law.rho, law.half_life, law.r, law.imbalance, law.last, self.effective_depth]
        parts += [self.accuracy_train, self.accuracy_test]
        parts += [part for site in self.sites for part in (site.fuzziness, site.ncc_train, site.ncc_test)]
        return all(part.a == part.b for part in parts)


def difference(
    a: float | None, b: float | None, left: Interval | None = None, right: Interval | None = None
) -> Difference:
    """The difference b − a, with an interval where both numbers have one."""
    if a is None or b is None:
        return Difference(a=a, b=b)
    limits = _joined(a, b, left, right)
    return Difference(
        a=a,
        b=b,
        value=b - a,
        interval=limits,
        excludes_zero=excludes_zero(limits),
    )


def ratio(a: float | None, b: float | None, left: Interval | None, right: Interval | None) -> Ratio:
    """The ratio b/a with the interval of ln b − ln a transformed back."""
    if a is None or b is None or a <= 0 or b <= 0:
        return Ratio(a=a, b=b)
    shift = math.log(b) - math.log(a)
    limits = _joined(math.log(a), math.log(b), _logged(left), _logged(right))
    if max(abs(part) for part in (shift, *((limits.low, limits.high) if limits else ()))) > MOST:
        return Ratio(a=a, b=b)
    return Ratio(
        a=a,
        b=b,
        value=math.exp(shift),
        interval=None if limits is None else _exponential(limits),
        excludes_one=excludes_zero(limits),
    )


def paired_ratio(unpaired: Ratio, paired: PairedInterval) -> Ratio:
    """The ratio with the interval of its logarithm by folds, transformed back."""
    limits = paired.interval
    if unpaired.value is None or limits is None or max(abs(limits.low), abs(limits.high)) > MOST:
        return replace(unpaired, interval=None, excludes_one=None, bias=paired.bias)
    return replace(unpaired, interval=_exponential(limits), excludes_one=excludes_zero(limits))


def excludes_zero(limits: Interval | None) -> bool | None:
    """Whether 0 is not in an interval; None without one."""
    return None if limits is None else not limits.low <= 0 <= limits.high


def _joined(a: float, b: float, left: Interval | None, right: Interval | None) -> Interval | None:
    """The interval of b − a from those of a and b (Zou & Donner 2008)."""
    if left is None or right is None or left.level != right.level or not (_ordered(left) and _ordered(right)):
        return None
    low = b - a - math.hypot(b - right.low, left.high - a)
    high = b - a + math.hypot(right.high - b, a - left.low)
    return Interval(low=low, high=high, level=left.level, kind="combined", n=min(left.n, right.n))


def _logged(interval: Interval | None) -> Interval | None:
    if interval is None or interval.low <= 0 or not _ordered(interval):
        return None
    return replace(interval, low=math.log(interval.low), high=math.log(interval.high))


def _exponential(interval: Interval) -> Interval:
    return replace(interval, low=math.exp(interval.low), high=math.exp(interval.high))


def _ordered(interval: Interval) -> bool:
    """Whether the limits are numbers in their order; what a program made up need not be."""
    return -math.inf < interval.low <= interval.high < math.inf
