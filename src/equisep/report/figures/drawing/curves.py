"""What the panels of a figure show, as numbers: curves over sites and epochs, found in the evidence; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from equisep.figures.evidence import Entry, Evidence, SeriesEvidence
from equisep.figures.figure import Panel
from equisep.figures.outcome import Curve
from equisep.figures.quantities import Query, curve, law_of, quantity
from equisep.figures.rules import quantities_of, series_of
from equisep.report.figures.drawing.lines import (
    Line,
    Stretch,
    data_of,
    existing,
    is_unfit,
    law_numbers,
    law_text,
    law_words,
    panel_lines,
    panel_quantities,
    paper_words,
    printed_of,
    seeds_of,
    site_marks,
    value_at,
)
from equisep.report.figures.drawing.sweeps import over_array, over_categories, over_seeds, over_series
from equisep.report.formatting import percent
from equisep.results import law_verdict
from equisep.results.records import FUZZY_R, LEAST_SITES

FUZZY = "fuzzy law"  # the rule, and the word for what meets it and is no law
NOT_FUZZY = "not even fuzzy"  # the word for what does not meet it, where that is claimed
LAWFUL = ("fuzziness", "fuzziness_test", "class_fuzziness")  # curves that the law speaks of


def lines_of(evidence: Evidence, panel: Panel) -> tuple[Line, ...]:
    """The lines of a panel, in the order of its series; those that were not run too, empty. `points` have none."""
    made = () if panel.kind == "points" else _MAKERS[panel.kind](evidence, panel)
    return tuple(replace(line, absent=panel.absent) if line.run else line for line in made)


def _over_sites(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    if panel.behind:
        first = panel_lines(evidence, panel)[0]
        yield replace(_site_line(evidence, panel, first.found, panel.behind), index=0, behind=True, laws=(), words="")
    for index, asked in enumerate(panel_lines(evidence, panel)):
        line = _site_line(evidence, panel, asked.found, asked.text)
        order = asked.found.series.x if panel.ordered else None
        if order is not None:  # among many lines in order, each is joined and has no line of its own
            line = replace(line, laws=(), words="", paper="", order=float(order))
        yield replace(line, label=asked.label, index=index)


def _site_line(evidence: Evidence, panel: Panel, found: SeriesEvidence, text: str) -> Line:
    asked = Query.of(text)
    curves = [curve(entry.outcome, text) for entry in found.chosen.values()]
    start = int(asked.ways.get("from", "0"))
    length = max((len(values) for values in curves), default=0)
    lawful = asked.name in LAWFUL
    cut = None if panel.cut is None or not 0 < panel.cut - start < length - 1 else panel.cut
    return Line(
        label="",
        index=0,
        x=tuple(float(start + site) for site in range(length)),
        samples=tuple(existing(value_at(values, site) for values in curves) for site in range(length)),
        words=_law_words(found, asked, curves, cut) if lawful else "",
        paper=paper_words(evidence, found.series, asked) if lawful else "",
        laws=_stretches(curves, cut, start, fuzzy=_may_be_fuzzy(evidence, found, asked)) if lawful else (),
        start=start,
        marks=site_marks(evidence, found.series, asked, start + length),
        run=bool(found.chosen),
        hollow=(True,) * length if is_unfit(found) else (),
        lost=_lost_words(found, curves, start) if lawful else "",
        seeds=seeds_of(found),
        data=data_of([found]),
    )


def _may_be_fuzzy(evidence: Evidence, found: SeriesEvidence, asked: Query) -> bool:
    """Whether a claim of the figure is that this very curve has a fuzzy law."""
    figure, own = evidence.figure, Query.of(law_text("r", asked))
    return any(
        found.series.name in series_of(figure, claim) and own in map(Query.of, quantities_of(claim))
        for claim in figure.claims
        if claim.rule == FUZZY
    )


def _stretches(curves: Sequence[Curve], cut: int | None, start: int, *, fuzzy: bool) -> tuple[Stretch, ...]:
    """The whole curve, or its two parts, each with the word for its mean r and ρ over seeds; none where D has gaps."""
    length = min((len(values) for values in curves), default=0)
    if not length:
        return ()
    ends = [(0, length - 1)] if cut is None else [(0, cut - start), (cut - start, length - 1)]
    return tuple(Stretch(first, last, _verdict(curves, first, last, fuzzy=fuzzy)) for first, last in ends)


def _verdict(curves: Sequence[Curve], first: int, last: int, *, fuzzy: bool) -> str:
    """The word for the mean r and ρ of a stretch; where a fuzzy law is claimed and it is no law, whether it is at least that."""
    laws = [law_of(values[first : last + 1]) for values in curves]
    r = [law.r for law in laws if law is not None and law.r is not None]
    rho = [law.rho for law in laws if law is not None and law.rho is not None]
    if not r or not rho:
        return law_verdict(None, None, sites=last - first + 1)
    mean_r, mean_rho = float(np.mean(r)), float(np.mean(rho))
    word = law_verdict(mean_r, mean_rho, sites=last - first + 1)
    if not fuzzy or word not in ("between", "no law"):
        return word
    return FUZZY if mean_r <= FUZZY_R and mean_rho < 1 else NOT_FUZZY


def _law_words(found: SeriesEvidence, asked: Query, curves: Sequence[Curve], cut: int | None) -> str:
    """`r = −0.997, ρ = 0.53`; of a curve that is cut, those of either part, by whose r its line is drawn."""
    if cut is None:
        return law_numbers(found, asked)
    before, after = (_part_words(curves, part) for part in (slice(cut + 1), slice(cut, None)))
    return f"up to {cut}: {before}; from {cut} on: {after}" if before and after else ""


def _part_words(curves: Sequence[Curve], part: slice) -> str:
    """The law of a part of a curve; of two points, which always lie on a line, ρ alone."""
    laws = [law for values in curves if (law := law_of(values[part])) is not None]
    rho = [law.rho for law in laws if law.rho is not None]
    r = [law.r for law in laws if law.r is not None and len(law.curve) >= LEAST_SITES]
    return law_words({"r": r, "rho": rho}) if rho else ""


def _lost_words(found: SeriesEvidence, curves: Sequence[Curve], start: int) -> str:
    """Why D exists in no seed from some site on: class means that are the same."""
    gone = [next((site for site, value in enumerate(values) if value is None), None) for values in curves]
    if not gone or any(site is None for site in gone):
        return ""
    first = start + max(site for site in gone if site is not None)
    fit = found.values("accuracy")
    trained = f"\ntraining accuracy {percent(float(np.mean(list(fit.values()))))} %" if fit else ""
    return f"from layer {first} on all class\nmeans are equal: no D{trained}"


def _over_epochs(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    if any(Query.of(text).name == "ratios" for text in panel_quantities(panel)):
        yield from _layer_ratios(evidence, panel)
        return
    for index, asked in enumerate(panel_lines(evidence, panel)):
        found, text = asked.found, asked.text
        epochs = _epochs(found, panel)
        # a number of the whole cell under the same name would be the same at all epochs
        outcomes = [replace(entry.outcome, numbers={}) for entry in found.chosen.values()]
        marks = tuple(
            (_epoch(way.ways.get("epoch", ""), epochs[-1]), value)
            for way, value in printed_of(evidence, found.series, text, free="epoch")
            if epochs
        )
        site = Query.of(text).ways.get("site")
        yield Line(
            label=asked.label,
            index=index,
            x=tuple(map(float, epochs)),
            samples=tuple(
                existing(quantity(outcome, _with(text, f"epoch={epoch}")) for outcome in outcomes) for epoch in epochs
            ),
            marks=marks,
            run=bool(found.chosen),
            hollow=(True,) * len(epochs) if is_unfit(found) else (),
            order=float(site) if panel.ordered and site is not None else None,
            seeds=seeds_of(found),
        )


def _layer_ratios(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    """D_{l+1}/D_l at each epoch (He & Su 2023, Fig. S7), of the first series: of every layer, or of `site` l + 1 alone."""
    first = next(iter(panel_lines(evidence, panel)), None)
    if first is None:
        return
    found, asked = first.found, Query.of(first.text)
    epochs = _epochs(found, panel)
    of_d = Query("fuzziness", {key: value for key, value in asked.ways.items() if key != "site"}).renamed("fuzziness")
    by_epoch = [[_ratios(entry, _with(of_d, f"epoch={epoch}")) for entry in found.chosen.values()] for epoch in epochs]
    layers = range(max((len(ratios) for seeds in by_epoch for ratios in seeds), default=0))
    if "site" in asked.ways:
        layers = layers[asked.number("site", 1) - 1 :][:1]
    if not layers:
        yield Line(label=first.label, index=0, run=bool(found.chosen))
    for index, layer in enumerate(layers):
        samples = tuple(existing(value_at(ratios, layer) for ratios in seeds) for seeds in by_epoch)
        order = float(layer + 1) if panel.ordered else None
        x = tuple(map(float, epochs))
        name, of = f"layer {layer + 1}", seeds_of(found)
        yield Line(label=name, index=index, x=x, samples=samples, run=True, order=order, seeds=of)


_MAKERS: Mapping[str, Callable[[Evidence, Panel], Iterable[Line]]] = {
    "sites": _over_sites,
    "epochs": _over_epochs,
    "sweep": over_series,
    "scatter": over_seeds,
    "array": over_array,
    "categories": over_categories,
}


def _epochs(found: SeriesEvidence, panel: Panel) -> list[int]:
    read = sorted({reading.epoch for entry in found.chosen.values() for reading in entry.outcome.readings})
    late = [epoch for epoch in read if panel.start is None or epoch >= panel.start]
    return late or read  # a trial of few epochs never gets there


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
