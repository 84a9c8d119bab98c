"""Two profiles of the same samples: differences with the same fold of samples left out of both, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from equisep.law import standard_error, student_quantile
from equisep.law.curve import line_through
from equisep.law.quantiles import two_sided
from equisep.results import Interval, LawFit, Note, Profile, SiteReading
from equisep.shapes import Float64

Same = Literal["samples", "labels"]
LEVEL = 0.95
EXACT = (
    "Both profiles read the whole of their data (`whole=True`): differences are those of these very data, and have no "
    "interval from samples. Only several seeds tell how much another training would change them."
)
MOST_BIAS = 1.5  # standard errors: beyond, the folds tell the bias too badly for an interval to cover
ROUNDING = 1e-6  # D without a fold is known to six digits
PAIRED = ("rho", "half_life")  # of a law, by folds
PRINTED = ("rho",)  # the half-life's hold more than 98 % in half of the simulations, and those of r up to 100 %
_Law = tuple[LawFit, Sequence[SiteReading]]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Whether two profiles share their folds: `same` samples, or the same labels in the same order at least; else None.

    Where the samples are not the same after all, nothing is wrong with paired intervals: the differences of independent folds
    vary as much as both together. `folds`: both profiles have them, at one level; without the
    same samples they are taken as independent. `exact`: both say that their samples are all there are: nothing is in doubt.
    """

    same: Same | None
    folds: bool = False
    level: float = LEVEL
    exact: bool = False
    notes: tuple[Note, ...] = ()


def pairing_of(a: Profile, b: Profile) -> Pairing:
    """How far the fingerprints of two profiles agree: those of labels must, with what deals out the folds."""
    one, two = a.samples, b.samples
    exact = a.settings.get("whole") is True and b.settings.get("whole") is True
    notes = (Note("exact", EXACT),) if exact else ()
    level = _level(a)
    if level != _level(b) and not exact:
        text = f"The intervals are at {level:g} and {_level(b):g}, so differences have none. Measure both at one level."
        return Pairing(None, notes=(Note("levels-differ", text),))
    if one is None or two is None:
        return Pairing(None, False, level, exact, notes)
    if (one.n, one.labels, one.folds, one.seed) != (two.n, two.labels, two.folds, two.seed):
        return Pairing(None, True, level, exact, notes)
    if one.inputs is not None and one.inputs == two.inputs:
        return Pairing("samples", True, level, exact, notes)
    text = (
        "Both profiles hold the same labels in the same order; that the samples are the same cannot be told from their inputs "
        "(prepared in two ways, or no tensors). Paired intervals hold either way."
    )
    return Pairing("labels", True, level, exact, (Note("same-labels", text), *notes))


def _level(profile: Profile) -> float:
    level = profile.settings.get("level", LEVEL)
    return float(level) if isinstance(level, int | float) else LEVEL


@dataclass(frozen=True, slots=True)
class PairedInterval:
    """The interval of a difference, or None and the `bias`, in standard errors, of the profile that leaves it out."""

    interval: Interval | None
    bias: float | None = None


@dataclass(frozen=True, slots=True)
class ByFold:
    """A number of one profile, and the same without each fold of the samples."""

    value: float
    folds: Float64[np.ndarray, " m"]

    @property
    def bias(self) -> float:
        """(m − 1)(mean of the folds − value), the bias to first order in 1/n (Quenouille 1956)."""
        return (len(self.folds) - 1) * (float(self.folds.mean()) - self.value)

    @property
    def error(self) -> float:
        """The standard error by jackknife."""
        return standard_error(self.folds, "jackknife")


def paired_interval(a: ByFold, b: ByFold, pairing: Pairing) -> PairedInterval:
    """The interval of b − a for the population: ± t_{m−1}·se around the difference, se by jackknife of the differences.

    D of n samples lies below that of the population, by more where D is near its chance level, and the part of that bias which
    two profiles do not share stays in their difference. As far as the folds tell it the interval is widened to its side; and
    where the bias of one profile is above `MOST_BIAS` of its own standard errors, the folds tell it too badly and no interval is
    given. Where the samples are not the same, the errors of both profiles add up instead. Of 95 % intervals that are given 94
    to 99 % cover (simulations/paired.py, docs/intervals.md). Two profiles of the same samples that are alike in every fold have
    an interval of no width, whatever their bias; where the samples are all there are, no others have one.
    """
    value, m, level = b.value - a.value, len(a.folds), pairing.level
    difference = ByFold(value, b.folds - a.folds)
    alike = abs(value) <= ROUNDING and float(np.abs(difference.folds).max()) <= ROUNDING
    if pairing.same and alike:
        reach = student_quantile(two_sided(level), m - 1) * difference.error
        return PairedInterval(Interval(value - reach, value + reach, level, "paired", m))
    if pairing.exact:
        return PairedInterval(None)
    worst = max((abs(part.bias) / part.error if part.error else 0.0) for part in (a, b))
    if worst > MOST_BIAS:
        return PairedInterval(None, worst)
    if not pairing.same:
        reach = student_quantile(two_sided(level), _welch(a.error, b.error, m)) * math.hypot(a.error, b.error)
        return PairedInterval(Interval(value - reach, value + reach, level, "combined", m))
    reach = student_quantile(two_sided(level), m - 1) * difference.error
    low, high = value - reach - max(difference.bias, 0.0), value + reach - min(difference.bias, 0.0)
    return PairedInterval(Interval(low, high, level, "paired", m))


def _welch(one: float, two: float, m: int) -> int:
    """The degrees of freedom of the difference of two independent numbers of m folds each (Welch 1947), rounded down."""
    both = one**4 + two**4
    return max(1, int((m - 1) * (one**2 + two**2) ** 2 / both)) if both else m - 1


def paired_fuzziness(a: SiteReading, b: SiteReading, pairing: Pairing) -> PairedInterval:
    """The interval of ln D_b − ln D_a of one site each; there is none where a D or its folds are missing or 0."""
    one, two = _log_of(a), _log_of(b)
    if one is None or two is None or len(one.folds) != len(two.folds):
        return PairedInterval(None)
    return paired_interval(one, two, pairing)


def _log_of(site: SiteReading) -> ByFold | None:
    logs = _logs([site])
    return ByFold(math.log(site.fuzziness), logs[:, 0]) if logs is not None and site.fuzziness else None


def paired_laws(a: _Law, b: _Law, pairing: Pairing) -> dict[str, PairedInterval]:
    """The intervals of the differences of ρ and half-life, from the laws without each fold."""
    one, two = (_numbers(*law) for law in (a, b))
    return {
        name: paired_interval(one[name], two[name], pairing)
        for name in PAIRED
        if name in one and name in two and len(one[name].folds) == len(two[name].folds)
    }


def _numbers(law: LawFit, sites: Sequence[SiteReading]) -> dict[str, ByFold]:
    """The numbers of a law that folds give an interval, where they exist without every fold."""
    logs = _logs(sites)
    if logs is None or law.rho is None:
        return {}
    slopes = line_through(logs)[1]
    numbers = {"rho": ByFold(law.rho, np.exp(slopes))}
    if law.half_life is not None and (slopes < 0).all():
        numbers["half_life"] = ByFold(law.half_life, math.log(2.0) / -slopes)
    return numbers


def _logs(sites: Sequence[SiteReading]) -> Float64[np.ndarray, "m l"] | None:
    """Ln D without each fold, one a row; the law begins at the first site that has a D."""
    begin = next((position for position, site in enumerate(sites) if site.fuzziness is not None), len(sites))
    folds = [site.fuzziness_folds for site in sites[begin:]]
    if not folds or any(each is None or len(each) != len(folds[0] or ()) or min(each) <= 0 for each in folds):
        return None
    logs: Float64[np.ndarray, "m l"] = np.log(np.array(folds, dtype=np.float64)).T
    return logs
