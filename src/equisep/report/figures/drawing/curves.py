"""What the panels of a figure show, as numbers: lines of values over seeds, found in the evidence; nothing is drawn here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from equisep.figures.evidence import Entry, Evidence, SeriesEvidence
from equisep.figures.figure import Panel, Series
from equisep.figures.outcome import Curve
from equisep.figures.quantities import Query, curve, law_of, quantity
from equisep.report.figures.drawing.annotations import law_numbers, paper_words, printed_of, site_marks
from equisep.report.figures.drawing.labels import common_label, own_labels, way_words
from equisep.results import LawFit

LAWFUL = ("fuzziness", "fuzziness_test", "class_fuzziness")  # curves that the law speaks of


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a panel: at each x the values that exist, one for each seed; no value at all is a gap.

    index       its number among the lines that the panel declares, so that colors stay when others are not run.
    words       r and ρ, means over seeds; `paper`: the same as the paper prints them. Empty where there is no law.
    lawful      a curve of D, whose law is drawn; `start` is the site of its first value.
    marks       numbers that the paper prints, as (x, y).
    run         whether anything of it was run. A line without a label is a further part of the one before.
    """

    label: str
    index: int
    x: tuple[float, ...] = ()
    samples: tuple[tuple[float, ...], ...] = ()
    words: str = ""
    paper: str = ""
    lawful: bool = False
    start: int = 0
    marks: tuple[tuple[float, float], ...] = ()
    run: bool = False

    @property
    def drawn(self) -> bool:
        """Whether there is a value to draw."""
        return any(self.samples)

    def middle(self, *, log: bool) -> list[float]:
        """The mean over seeds at each x, the geometric one on a logarithmic axis, of the positive values; NaN is a gap."""
        return [_mean(values, log=log) for values in self.samples]

    def band(self, *, log: bool) -> tuple[list[float], list[float]]:
        """The least and the greatest seed at each x; NaN where fewer than two are there."""
        kept = [_shown(values, log=log) for values in self.samples]
        low = [min(values) if len(values) > 1 else math.nan for values in kept]
        return low, [max(values) if len(values) > 1 else math.nan for values in kept]

    @property
    def law(self) -> LawFit | None:
        """The law of the geometric mean: least squares are linear in ln D, so its line is the mean of the seeds' lines."""
        if not self.lawful:
            return None
        values = self.middle(log=True)
        return law_of(tuple(values)) if values and all(math.isfinite(value) for value in values) else None

    @property
    def law_verdict(self) -> str:
        """The word for that law; nothing where there is no line to draw."""
        law = self.law
        return "" if law is None or law.rho is None else law.verdict


def lines_of(evidence: Evidence, panel: Panel) -> tuple[Line, ...]:
    """The lines of a panel, in the order of its series; those that were not run too, empty. `points` have none."""
    return () if panel.kind == "points" else tuple(_MAKERS[panel.kind](evidence, panel))


def asked_of(panel: Panel) -> list[str]:
    """The quantities of a panel: several are separated by `;`."""
    return [part.strip() for part in panel.y.split(";") if part.strip()]


def _over_sites(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    for index, (found, text, label) in enumerate(_pairs(evidence, panel)):
        asked = Query.of(text)
        curves = [curve(entry.outcome, text) for entry in found.chosen.values()]
        start = int(asked.ways.get("from", "0"))
        length = max((len(values) for values in curves), default=0)
        lawful = asked.name in LAWFUL
        yield Line(
            label=label,
            index=index,
            x=tuple(float(start + site) for site in range(length)),
            samples=tuple(_existing(_at(values, site) for values in curves) for site in range(length)),
            words=law_numbers(found, asked) if lawful else "",
            paper=paper_words(evidence, found.series, asked) if lawful else "",
            lawful=lawful,
            start=start,
            marks=site_marks(evidence, found.series, asked, start + length),
            run=bool(found.chosen),
        )


def _over_epochs(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    if any(Query.of(text).name == "ratios" for text in asked_of(panel)):
        yield from _layer_ratios(evidence, panel)
        return
    for index, (found, text, label) in enumerate(_pairs(evidence, panel)):
        epochs = _epochs(found)
        # a number of the whole cell under the same name would be the same at all epochs
        outcomes = [replace(entry.outcome, numbers={}) for entry in found.chosen.values()]
        marks = tuple(
            (_epoch(asked.ways.get("epoch", ""), epochs[-1]), value)
            for asked, value in printed_of(evidence, found.series, text, free="epoch")
            if epochs
        )
        yield Line(
            label=label,
            index=index,
            x=tuple(map(float, epochs)),
            samples=tuple(
                _existing(quantity(outcome, _with(text, f"epoch={epoch}")) for outcome in outcomes) for epoch in epochs
            ),
            marks=marks,
            run=bool(found.chosen),
        )


def _layer_ratios(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    """D_l/D_{l−1} at each epoch, one line a layer l (He & Su 2023, Fig. S7), of the first series."""
    first = next(iter(_pairs(evidence, panel)), None)
    if first is None:
        return
    found, text, label = first
    epochs = _epochs(found)
    of_d = "fuzziness" + text.removeprefix("ratios")
    by_epoch = [[_ratios(entry, _with(of_d, f"epoch={epoch}")) for entry in found.chosen.values()] for epoch in epochs]
    layers = max((len(ratios) for seeds in by_epoch for ratios in seeds), default=0)
    if not layers:
        yield Line(label=label, index=0, run=bool(found.chosen))
    for layer in range(layers):
        samples = tuple(_existing(_at(ratios, layer) for ratios in seeds) for seeds in by_epoch)
        yield Line(label=f"layer {layer + 1}", index=layer, x=tuple(map(float, epochs)), samples=samples, run=True)


def _over_series(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    groups: dict[str, list[tuple[float, SeriesEvidence]]] = {}
    for series in evidence.figure.drawn_in(panel):
        if series.x is not None:
            groups.setdefault(_group(series), []).append((float(series.x), _found(evidence, series)))
    asked = asked_of(panel)
    ways = way_words(asked, _first_reading(evidence, panel))
    index = 0
    for name, members in groups.items():
        group = common_label([found.series.label for _, found in members]) or name
        for text, way in zip(asked, ways, strict=True):
            label = _label(group if len(groups) > 1 else "", way) or group
            yield _sweep(evidence, members, text, label=label, index=index)
            index += 1


def _sweep(
    evidence: Evidence, members: Sequence[tuple[float, SeriesEvidence]], text: str, *, label: str, index: int
) -> Line:
    """One quantity over the x of the series of a group."""
    samples: dict[float, tuple[float, ...]] = {}
    marks = []
    for x, found in sorted(members, key=lambda member: member[0]):
        samples[x] = (*samples.get(x, ()), *found.values(text).values())
        marks += [(x, value) for _, value in printed_of(evidence, found.series, text)]
    return Line(
        label=label,
        index=index,
        x=tuple(samples),
        samples=tuple(samples.values()),
        marks=tuple(marks),
        run=any(found.chosen for _, found in members),
    )


def _over_seeds(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    for index, (found, text, label) in enumerate(_pairs(evidence, panel)):
        across, up = found.values(panel.x), found.values(text)
        both = [seed for seed in across if seed in up]
        yield Line(
            label=label,
            index=index,
            x=tuple(across[seed] for seed in both),
            samples=tuple((up[seed],) for seed in both),
            run=bool(found.chosen),
        )


def _over_array(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    for index, (found, text, label) in enumerate(_pairs(evidence, panel)):
        by_x: dict[tuple[float, ...], list[Curve]] = {}
        for entry in found.chosen.values():
            up = entry.outcome.arrays.get(text, ())
            across = entry.outcome.arrays.get(panel.x, ()) if panel.x else tuple(map(float, range(len(up))))
            if across and up:
                xs = tuple(math.nan if x is None else float(x) for x in across)
                by_x.setdefault(xs, []).append(up)
        if not by_x:
            yield Line(label=label, index=index, run=bool(found.chosen))
        # seeds that lie at other x have no common mean: each keeps a line of its own
        for part, (xs, curves) in enumerate(by_x.items()):
            samples = tuple(_existing(_at(values, at) for values in curves) for at in range(len(xs)))
            yield Line(label="" if part else label, index=index, x=xs, samples=samples, run=True)


_MAKERS: Mapping[str, Callable[[Evidence, Panel], Iterable[Line]]] = {
    "sites": _over_sites,
    "epochs": _over_epochs,
    "sweep": _over_series,
    "scatter": _over_seeds,
    "array": _over_array,
}


def _pairs(evidence: Evidence, panel: Panel) -> list[tuple[SeriesEvidence, str, str]]:
    """Every series of a panel with every quantity, and the label of that line."""
    drawn = evidence.figure.drawn_in(panel)
    asked = asked_of(panel)
    ways = way_words(asked, _first_reading(evidence, panel))
    names = own_labels([_name(series) for series in drawn])
    return [
        (_found(evidence, series), text, _label(name if len(drawn) > 1 else "", way) or _name(series))
        for series, name in zip(drawn, names, strict=True)
        for text, way in zip(asked, ways, strict=True)
    ]


def _found(evidence: Evidence, series: Series) -> SeriesEvidence:
    return evidence.series.get(series.name) or SeriesEvidence(series, None)


def _first_reading(evidence: Evidence, panel: Panel) -> Mapping[str, str]:
    """How the sites were read where a quantity does not say it."""
    for series in evidence.figure.drawn_in(panel):
        for entry in _found(evidence, series).chosen.values():
            reading = entry.outcome.reading()
            if reading is not None:
                return {"reading": reading.reading, "grain": reading.grain, "reduction": reading.reduction}
    return {}


def _name(series: Series) -> str:
    return series.label or series.name


def _label(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _group(series: Series) -> str:
    head, _, _ = series.name.rpartition("-")
    return head or series.name


def _epochs(found: SeriesEvidence) -> list[int]:
    return sorted({reading.epoch for entry in found.chosen.values() for reading in entry.outcome.readings})


def _epoch(text: str, last: int) -> float:
    """An epoch by its number, or as a share `a/b` of the last one, which it is by default."""
    part, slash, whole = text.partition("/")
    return float(last) if not part else int(part) / int(whole) * last if slash else float(part)


def _ratios(entry: Entry, text: str) -> Curve:
    return tuple(
        None if low is None or not low or high is None else high / low
        for low, high in pairwise(curve(entry.outcome, text))
    )


def _with(text: str, way: str) -> str:
    return f"{text}{',' if '@' in text else '@'}{way}"


def _at(values: Sequence[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None


def _existing(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(float(value) for value in values if value is not None and math.isfinite(value))


def _shown(values: Sequence[float], *, log: bool) -> list[float]:
    return [value for value in values if value > 0 or not log]


def _mean(values: Sequence[float], *, log: bool) -> float:
    kept = _shown(values, log=log)
    if not kept:
        return math.nan
    return float(np.exp(np.mean(np.log(kept)))) if log else float(np.mean(kept))
