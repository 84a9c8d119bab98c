"""The numbers that stand beside the lines of a figure: r and ρ of our own, and what the paper prints."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.figure import Series
from equisep.figures.quantities import Query
from equisep.results.records import LAW_R, NO_LAW_R

_SIGNS = {"r": "r", "rho": "ρ"}


def law_numbers(found: SeriesEvidence, asked: Query) -> str:
    """`r = −0.997, ρ = 0.818`: means over seeds, to the digits that papers print; empty where there is no law."""
    parts = []
    for name, sign in _SIGNS.items():
        values = list(found.values(_law_text(name, asked)).values())
        if values:
            parts.append(f"{sign} = {_digits(name, float(np.mean(values)))}")
    return ", ".join(parts).replace("-", "−")


def _digits(name: str, value: float) -> str:
    """Three digits as papers print; a fourth where r would else be rounded onto the other side of what makes a law."""
    short = f"{value:.3f}"
    bounds = (LAW_R, NO_LAW_R) if name == "r" else ()
    return short if all((float(short) <= bound) == (value <= bound) for bound in bounds) else f"{value:.4f}"


def paper_words(evidence: Evidence, series: Series, asked: Query) -> str:
    """`paper r −0.997, ρ 0.818`; empty where the paper prints neither."""
    parts = [
        f"{sign} {value:g}" if name == "rho" else f"{sign} {value:.3f}"
        for name, sign in _SIGNS.items()
        for _, value in printed_of(evidence, series, _law_text(name, asked))
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


def _law_text(name: str, asked: Query) -> str:
    """A number of the law of that curve; the law of D on training data goes without saying."""
    return asked.renamed(name, **({"of": asked.name} if asked.name == "fuzziness_test" else {}))
