"""The series of a panel with the quantities asked of them, their labels, and whether their networks fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.figure import Panel, Series
from equisep.report.figures.drawing.labels import own_labels, way_words


@dataclass(frozen=True, slots=True)
class Asked:
    """One quantity of one series, and the label of that line."""

    found: SeriesEvidence
    text: str
    label: str


def asked_of(panel: Panel) -> list[str]:
    """The quantities of a panel: several are separated by `;`."""
    return [part.strip() for part in panel.y.split(";") if part.strip()]


def asked_lines(evidence: Evidence, panel: Panel) -> list[Asked]:
    """Every series of a panel with every quantity, and the label of that line."""
    drawn = evidence.figure.drawn_in(panel)
    asked = asked_of(panel)
    ways = way_words(asked, first_reading(evidence, panel))
    names = own_labels([series_name(series) for series in drawn])
    return [
        Asked(
            found_of(evidence, series), text, joined_label(name if len(drawn) > 1 else "", way) or series_name(series)
        )
        for series, name in zip(drawn, names, strict=True)
        for text, way in zip(asked, ways, strict=True)
    ]


def found_of(evidence: Evidence, series: Series) -> SeriesEvidence:
    """What was run of a series; nothing where the evidence does not have it."""
    return evidence.series.get(series.name) or SeriesEvidence(series, None)


def first_reading(evidence: Evidence, panel: Panel) -> Mapping[str, str]:
    """How the sites were read where a quantity does not say it."""
    for series in evidence.figure.drawn_in(panel):
        for entry in found_of(evidence, series).chosen.values():
            reading = entry.outcome.reading()
            if reading is not None:
                return {"reading": reading.reading, "grain": reading.grain, "reduction": reading.reduction}
    return {}


def is_unfit(found: SeriesEvidence, seeds: Iterable[int] | None = None) -> bool:
    """Whether most of the networks of a series, or of these seeds, do not fit their training data as its figure asks for."""
    fit = [found.fits(seed) for seed in (found.chosen if seeds is None else seeds)]
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
