"""Several laws of one kind, one a seed, as means with intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from equisep.errors import InputError
from equisep.law.quantiles import student_quantile, two_sided
from equisep.results import Interval, LawFit, LawSummary, Note

_RANGES = {"rho": (0.0, math.inf), "half_life": (0.0, math.inf), "r": (-1.0, 1.0)}
Scale = Literal["plain", "log", "atanh"]
_MOST_R = 1.0 - 2.0**-52  # atanh is infinite at 1
SCALES: Mapping[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "plain": (float, float),
    "log": (math.log, math.exp),
    "atanh": (lambda r: math.atanh(min(max(r, -_MOST_R), _MOST_R)), math.tanh),
}
_WORDS = {"rho": "ρ", "half_life": "half-life", "r": "r"}


def summarize_laws(laws: Sequence[LawFit], level: float = 0.95) -> LawSummary:
    """Means over seeds of ρ, half-life and r, with Student-t intervals mean ± t_{n−1}·s/√n.

    The half-life is the mean of the half-lives, not the half-life of the mean ρ. An interval is cut where the quantity
    cannot lie (ρ and half-life below 0, r beyond ±1). A law without a number is left out of that number's mean, and
    a Note says so; one seed gives no interval.

    >>> import equisep
    >>> laws = [equisep.fit_law(curve) for curve in ([8.0, 4.1, 2.0], [8.0, 3.9, 1.9], [8.0, 4.0, 2.1])]
    >>> summary = equisep.summarize_laws(laws)
    >>> f"{summary.rho:.3f}", str(summary.intervals["rho"])
    ('0.500', '[0.4688, 0.531]')
    """
    two_sided(level)
    if not laws:
        raise InputError("`summarize_laws` needs at least one law; found none. Pass the laws of several seeds.")
    means: dict[str, float | None] = {}
    intervals: dict[str, Interval] = {}
    notes: list[Note] = []
    for name, within in _RANGES.items():
        values = [value for law in laws if (value := getattr(law, name)) is not None]
        means[name] = float(np.mean(values)) if values else None
        if len(values) < len(laws):
            text = f"{len(laws) - len(values)} of {len(laws)} laws have no {_WORDS[name]} and are left out of its mean."
            notes.append(Note(f"left-out-{name.replace('_', '-')}", text))
        if len(values) > 1:
            intervals[name] = seed_interval(values, level, within=within)
    if len(laws) == 1:
        notes.append(Note("one-seed", "One seed gives no interval over seeds."))
    return LawSummary(n=len(laws), **means, intervals=intervals, notes=tuple(notes))


def seed_interval(
    values: Sequence[float],
    level: float,
    *,
    within: tuple[float, float] = (-math.inf, math.inf),
    scale: Scale = "plain",
    one_more: bool = False,
) -> Interval:
    """The Student-t interval of the mean of two or more values, cut to the range `within`.

    scale       where it is made, and transformed back from: `log` of ratios, `atanh` of correlations (Fisher 1921).
    one_more    the prediction interval instead, in which the value of one more seed lies: mean ± t_{n−1}·s·√(1 + 1/n).
    """
    n = len(values)
    there, back = SCALES[scale]
    moved = [there(value) for value in values]
    middle = float(np.mean(moved))
    share = math.sqrt(1 + 1 / n) if one_more else 1 / math.sqrt(n)
    reach = student_quantile(two_sided(level), n - 1) * float(np.std(moved, ddof=1)) * share
    low, high = max(back(middle - reach), within[0]), min(back(middle + reach), within[1])
    return Interval(low=low, high=high, level=level, kind="prediction" if one_more else "seeds", n=n)


def seed_mean(values: Sequence[float], scale: Scale = "plain") -> float:
    """The mean on a scale, as `seed_interval` has it: the geometric mean of ratios."""
    there, back = SCALES[scale]
    return back(float(np.mean([there(value) for value in values])))
