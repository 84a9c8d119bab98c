"""What the lines of a panel show, as numbers: values over seeds and laws, the series asked, what stands beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from equisep.figures.cell import trainings
from equisep.figures.evidence import Evidence, SeriesEvidence, has_fit
from equisep.figures.figure import Panel, Series
from equisep.figures.quantities import FITTED, Query, law_of, quantity
from equisep.report.figures.drawing.labels import own_labels, seed_count, way_words
from equisep.results import LawFit
from equisep.results.records import FUZZY_R, LAW_R, NO_LAW_R

_SIGNS = {"r": "r", "rho": "ρ"}
_MOST_DIGITS = 6


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
    absent      what is said of it where it has no value to draw.
    hollow      at each x whether most of the networks there do not fit their training data; empty where all do.
    order       its place on the scale that the panel's lines are in the order of.
    behind      drawn in pale gray, for comparison.
    names       of categories: what stands below each x.
    upright     x at which vertical lines stand, with their words.
    lost        why a curve ends before its network does, in words.
    data        the data set, where there is one, since heights on unlike data are not compared.
    seeds       of how many seeds its networks are: one number, or one at each x; empty of what is solved.
    pair        what its color and what its marker stand for, where the dots of several groups are of the same things.
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
    absent: str = "not run"
    hollow: tuple[bool, ...] = ()
    order: float | None = None
    behind: bool = False
    names: tuple[str, ...] = ()
    upright: tuple[tuple[float, str], ...] = ()
    lost: str = ""
    data: str = ""
    seeds: tuple[int, ...] = ()
    pair: tuple[str, str] | None = None

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

    @property
    def has_zeros(self) -> bool:
        """Whether any seed at any x has no logarithm."""
        return any(value <= 0 for values in self.samples for value in values)

    def middle(self, *, log: bool) -> list[float]:
        """The mean over seeds at each x; NaN is a gap.

        On a logarithmic axis the geometric one, but the arithmetic one at every x where a seed is 0 at any: a line that went
        from one kind of mean to the other would bend where no network does.
        """
        geometric = log and not self.has_zeros
        return [_mean(values, geometric=geometric) if _shown(values, log=log) else math.nan for values in self.samples]

    def band(self, *, log: bool) -> tuple[list[float], list[float]]:
        """The least and the greatest seed at each x; NaN where fewer than two are there."""
        kept = [_shown(values, log=log) for values in self.samples]
        low = [min(values) if len(values) > 1 else math.nan for values in kept]
        return low, [max(values) if len(values) > 1 else math.nan for values in kept]

    def law(self, stretch: Stretch) -> LawFit | None:
        """The law of the geometric mean: least squares are linear in ln D, so its line is the mean of the seeds' lines.

        None where a seed is 0, whose line does not exist.
        """
        part = self.samples[stretch.first : stretch.last + 1]
        if not part or any(not own or min(own) <= 0 for own in part):
            return None
        return law_of(tuple(_mean(own, geometric=True) for own in part))


def _shown(values: Sequence[float], *, log: bool) -> list[float]:
    return [value for value in values if value > 0 or not log]


def _mean(values: Sequence[float], *, geometric: bool) -> float:
    return float(np.exp(np.mean(np.log(values)))) if geometric else float(np.mean(values))


@dataclass(frozen=True, slots=True)
class PanelLine:
    """One quantity of one series, and the label of that line."""

    found: SeriesEvidence
    text: str
    label: str


def panel_quantities(panel: Panel) -> list[str]:
    """The quantities of a panel: several are separated by `;`."""
    return [part.strip() for part in panel.y.split(";") if part.strip()]


def panel_lines(evidence: Evidence, panel: Panel) -> list[PanelLine]:
    """Every series of a panel with every quantity, and the label of that line."""
    drawn = evidence.figure.drawn_in(panel)
    asked = panel_quantities(panel)
    ways = way_words(asked, first_reading(evidence, panel))
    names = own_labels([series_name(series) for series in drawn])
    return [
        PanelLine(
            series_evidence_of(evidence, series),
            text,
            joined_label(name if len(drawn) > 1 else "", way) or series_name(series),
        )
        for series, name in zip(drawn, names, strict=True)
        for text, way in zip(asked, ways, strict=True)
    ]


def series_evidence_of(evidence: Evidence, series: Series) -> SeriesEvidence:
    """What was run of a series; nothing where the evidence does not have it."""
    return evidence.series.get(series.name) or SeriesEvidence(series, None)


def data_of(series: Iterable[SeriesEvidence], *, sizes: bool = False) -> str:
    """The data set of all these series, with the `sizes` of its classes; nothing where they have several, or are solved."""
    cells = [cell for found in series for cell in trainings(entry.cell for entry in found.chosen.values())]
    names = {f"{cell.data} {cell.sizes}" if sizes and cell.sizes else cell.data for cell in cells}
    return names.pop() if len(names) == 1 else ""


def seeds_of(found: SeriesEvidence) -> tuple[int, ...]:
    """Of how many seeds the networks of a series are; nothing of what is solved."""
    count = seed_count(found)
    return () if count is None else (count,)


def first_reading(evidence: Evidence, panel: Panel) -> Mapping[str, str]:
    """How the sites were read where a quantity does not say it."""
    for series in evidence.figure.drawn_in(panel):
        for entry in series_evidence_of(evidence, series).chosen.values():
            reading = entry.outcome.reading()
            if reading is not None:
                return {"reading": reading.reading, "grain": reading.grain, "reduction": reading.reduction}
    return {}


def drawn_fit(fit: float | None) -> float:
    """The least training accuracy of a network that is drawn as one that fits: what its figure asks for, else 99 %."""
    return FITTED if fit is None else fit


def is_unfit(found: SeriesEvidence, seeds: Iterable[int] | None = None) -> bool:
    """Whether most of the networks of a series, or of these seeds, do not fit their training data as `drawn_fit` has it.

    A problem that is solved has no training data, and a network whose accuracy is not known is unfit only where a fit is asked.
    """
    entries = [found.chosen[seed] for seed in (found.chosen if seeds is None else seeds)]
    known = [entry for entry in entries if found.fit is not None or quantity(entry.outcome, "accuracy") is not None]
    fit = [has_fit(entry, drawn_fit(found.fit)) for entry in known]
    return bool(fit) and sum(fit) * 2 < len(fit)


def series_name(series: Series) -> str:
    """Its label, or else its name."""
    return series.label or series.name


def joined_label(*parts: str) -> str:
    """Those that say something, with commas."""
    return ", ".join(part for part in parts if part)


def value_at(values: Sequence[float | None], index: int) -> float | None:
    """None beyond the end."""
    return values[index] if index < len(values) else None


def existing(values: Iterable[float | None]) -> tuple[float, ...]:
    """Those that are numbers."""
    return tuple(float(value) for value in values if value is not None and math.isfinite(value))


def law_numbers(found: SeriesEvidence, asked: Query) -> str:
    """`r = −0.997, ρ = 0.818`: means over seeds, to the digits that papers print; empty where there is no law."""
    return law_words({name: list(found.values(law_text(name, asked)).values()) for name in _SIGNS})


def law_words(values: Mapping[str, Sequence[float]]) -> str:
    """`r = −0.997, ρ = 0.818` of the `r` and `rho` of seeds; what has no value is left out."""
    parts = [f"{sign} = {_digits(name, float(np.mean(values[name])))}" for name, sign in _SIGNS.items() if values[name]]
    return ", ".join(parts).replace("-", "−")


def _digits(name: str, value: float) -> str:
    """Three digits as papers print; more, up to six, where r would else be rounded onto the other side of what makes a law."""
    bounds = (LAW_R, NO_LAW_R, FUZZY_R) if name == "r" else ()
    printed = [f"{value:.{digits}f}" for digits in range(3, _MOST_DIGITS + 1)]
    same = (own for own in printed if all((float(own) <= bound) == (value <= bound) for bound in bounds))
    return next(same, printed[-1])


def paper_words(evidence: Evidence, series: Series, asked: Query) -> str:
    """`paper r −0.997, ρ 0.818`; empty where the paper prints neither."""
    parts = [
        f"{sign} {value:g}" if name == "rho" else f"{sign} {value:.3f}"
        for name, sign in _SIGNS.items()
        for _, value in printed_of(evidence, series, law_text(name, asked))
    ]
    return f"paper {', '.join(parts)}".replace("-", "−") if parts else ""


def printed_of(evidence: Evidence, series: Series, text: str, *, free: str = "") -> list[tuple[Query, float]]:
    """What the paper prints of a quantity of a series, as it names it; the way `free` may be any."""
    asked = Query.of(text)
    own = {key: value for key, value in asked.ways.items() if key != free}
    found = []
    for printed in evidence.figure.printed:
        other = Query.of(printed.quantity)
        same = other.name == asked.name and own == {key: value for key, value in other.ways.items() if key != free}
        if same and fnmatchcase(series.name, printed.series):
            found.append((other, printed.value))
    return found


def site_marks(evidence: Evidence, series: Series, asked: Query, end: int) -> tuple[tuple[float, float], ...]:
    """Values of single sites that the paper prints, as `cdnv@site=4`, at their site; negative ones count from `end`."""
    marks = []
    for other, value in printed_of(evidence, series, asked.renamed(asked.name), free="site"):
        site = int(other.ways.get("site", "-1"))
        if end + min(site, 0) > 0:
            marks.append((float(site if site >= 0 else end + site), value))
    return tuple(marks)


def law_text(name: str, asked: Query) -> str:
    """A number of the law of that curve; the law of D on training data goes without saying."""
    return asked.renamed(name, **({"of": asked.name} if asked.name == "fuzziness_test" else {}))
