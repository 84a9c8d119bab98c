"""Line: what one line of a panel shows, as numbers: values over seeds, laws, which networks do not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equisep.figures.quantities import law_of
from equisep.results import LawFit


@dataclass(frozen=True, slots=True)
class Stretch:
    """The points `first` to `last` of a curve of D, and the word for their law: of the mean r and ρ over seeds."""

    first: int
    last: int
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a panel: at each x the values that exist, one for each seed; no value at all is a gap.

    index       its number among the lines that the panel declares, so that colors stay when others are not run.
    words       r and ρ, means over seeds; `paper`: the same as the paper prints them. Empty where there is no law.
    laws        the stretches of a curve of D whose law is drawn; `start` is the site of its first value.
    marks       numbers that the paper prints, as (x, y).
    run         whether anything of it was run. A line without a label is a further part of the one before.
    hollow      at each x whether most of the networks there do not fit their training data; empty where all do.
    order       its place on the scale that the panel's lines are in the order of.
    behind      drawn in pale gray, for comparison.
    names       of categories: what stands below each x.
    upright     x at which vertical lines stand, with their words.
    lost        why a curve ends before its network does, in words.
    data        of curves over sites: the data set, since heights on unlike data are not compared.
    """

    label: str
    index: int
    x: tuple[float, ...] = ()
    samples: tuple[tuple[float, ...], ...] = ()
    words: str = ""
    paper: str = ""
    laws: tuple[Stretch, ...] = ()
    start: int = 0
    marks: tuple[tuple[float, float], ...] = ()
    run: bool = False
    hollow: tuple[bool, ...] = ()
    order: float | None = None
    behind: bool = False
    names: tuple[str, ...] = ()
    upright: tuple[tuple[float, str], ...] = ()
    lost: str = ""
    data: str = ""

    @property
    def drawn(self) -> bool:
        """Whether there is a value to draw."""
        return any(self.samples)

    @property
    def named(self) -> bool:
        """Whether a legend names it: lines of an ordered scale and those behind others are named once for all."""
        return bool(self.label) and self.order is None and not self.behind and not self.names

    @property
    def is_hollow(self) -> bool:
        """Whether any of its points stands for networks that do not fit."""
        return any(self.hollow)

    def middle(self, *, log: bool) -> list[float]:
        """The mean over seeds at each x, the geometric one on a logarithmic axis, of the positive values; NaN is a gap."""
        return [_mean(values, log=log) for values in self.samples]

    def band(self, *, log: bool) -> tuple[list[float], list[float]]:
        """The least and the greatest seed at each x; NaN where fewer than two are there."""
        kept = [_shown(values, log=log) for values in self.samples]
        low = [min(values) if len(values) > 1 else math.nan for values in kept]
        return low, [max(values) if len(values) > 1 else math.nan for values in kept]

    def law(self, stretch: Stretch) -> LawFit | None:
        """The law of the geometric mean: least squares are linear in ln D, so its line is the mean of the seeds' lines."""
        values = self.middle(log=True)[stretch.first : stretch.last + 1]
        return law_of(tuple(values)) if values and all(math.isfinite(value) for value in values) else None


def _shown(values: Sequence[float], *, log: bool) -> list[float]:
    return [value for value in values if value > 0 or not log]


def _mean(values: Sequence[float], *, log: bool) -> float:
    kept = _shown(values, log=log)
    if not kept:
        return math.nan
    return float(np.exp(np.mean(np.log(kept)))) if log else float(np.mean(kept))
