"""Lines over series, seeds and arrays, as numbers: sweeps, scatters, categories; nothing is drawn here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.figure import Panel, Series
from equisep.figures.outcome import Curve
from equisep.figures.quantities import Query, entry_of, quantity
from equisep.report.figures.drawing.labels import common_end, common_label, own_labels, way_words
from equisep.report.figures.drawing.lines import (
    Line,
    data_of,
    existing,
    first_reading,
    is_unfit,
    joined_label,
    panel_lines,
    panel_quantities,
    printed_of,
    seeds_of,
    series_evidence_of,
    series_name,
    value_at,
)


def over_series(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    """A quantity over the `x` of the series, a line per group."""
    groups: dict[str, list[tuple[float, SeriesEvidence]]] = {}
    for series in evidence.figure.drawn_in(panel):
        if series.x is not None:
            groups.setdefault(_group(series), []).append((float(series.x), series_evidence_of(evidence, series)))
    asked = panel_quantities(panel)
    ways = way_words(asked, first_reading(evidence, panel))
    index = 0
    for name, members in groups.items():
        group = _group_name([found.series.label for _, found in members], name)
        for text, way in zip(asked, ways, strict=True):
            label = joined_label(group if len(groups) > 1 else "", way) or group
            yield _sweep(
                evidence, members, text, label=label, index=index, order=_number_of(name) if panel.ordered else None
            )
            index += 1


def _sweep(
    evidence: Evidence,
    members: Sequence[tuple[float, SeriesEvidence]],
    text: str,
    *,
    label: str,
    index: int,
    order: float | None,
) -> Line:
    """One quantity over the x of the series of a group."""
    samples: dict[float, tuple[float, ...]] = {}
    unfit: dict[float, bool] = {}
    seeds: dict[float, int] = {}
    marks = []
    for x, found in sorted(members, key=lambda member: member[0]):
        samples[x] = (*samples.get(x, ()), *found.values(text).values())
        unfit[x] = unfit.get(x, False) or is_unfit(found)
        seeds[x] = max(seeds.get(x, 0), sum(seeds_of(found)))
        marks += [(x, value) for _, value in printed_of(evidence, found.series, text)]
    return Line(
        label=label,
        index=index,
        x=tuple(samples),
        samples=tuple(samples.values()),
        marks=tuple(marks),
        run=any(found.chosen for _, found in members),
        hollow=tuple(unfit.values()) if any(unfit.values()) else (),
        order=order,
        seeds=tuple(seeds.values()) if any(seeds.values()) else (),
    )


def over_seeds(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    """One quantity against another, a point per seed."""
    shown = panel_lines(evidence, panel)
    pairs = _pairs([asked.found.series for asked in shown])
    for index, asked in enumerate(shown):
        across, up = asked.found.values(panel.x), asked.found.values(asked.text)
        both = [seed for seed in across if seed in up]
        # what a rule that stops a training saves and costs is asked whether or not the network fits at the end
        of_course = entry_of(Query.of(asked.text).name).course
        unfit = () if of_course else tuple(is_unfit(asked.found, [seed]) for seed in both)
        yield Line(
            label=asked.label,
            index=index,
            x=tuple(across[seed] for seed in both),
            samples=tuple((up[seed],) for seed in both),
            run=bool(asked.found.chosen),
            hollow=unfit if any(unfit) else (),
            data=data_of([asked.found], sizes=True),
            seeds=seeds_of(asked.found),
            pair=pairs.get(asked.found.series.name),
        )


def over_categories(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    """A quantity of each series beside the next: one line whose x are the series, with their names."""
    drawn = evidence.figure.drawn_in(panel)
    found = [series_evidence_of(evidence, series) for series in drawn]
    for index, text in enumerate(panel_quantities(panel)):
        unfit = tuple(is_unfit(each) for each in found)
        yield Line(
            label=text,
            index=index,
            x=tuple(map(float, range(len(drawn)))),
            samples=tuple(tuple(each.values(text).values()) for each in found),
            marks=tuple(
                (float(at), value) for at, series in enumerate(drawn) for _, value in printed_of(evidence, series, text)
            ),
            run=any(each.chosen for each in found),
            hollow=unfit if any(unfit) else (),
            names=tuple(own_labels([series_name(series) for series in drawn])),
            data=data_of(found, sizes=True),
            seeds=tuple(sum(seeds_of(each)) for each in found) if any(map(seeds_of, found)) else (),
        )


def over_array(evidence: Evidence, panel: Panel) -> Iterable[Line]:
    """An array of each cell against another; seeds that lie at other x have no common mean: each keeps a line of its own."""
    for index, asked in enumerate(panel_lines(evidence, panel)):
        place = asked.found.series.x if panel.ordered else None
        order = None if place is None else float(place)
        by_x: dict[tuple[float, ...], list[Curve]] = {}
        for entry in asked.found.chosen.values():
            up = entry.outcome.arrays.get(asked.text, ())
            across = entry.outcome.arrays.get(panel.x, ()) if panel.x else tuple(map(float, range(len(up))))
            if across and up:
                xs = tuple(math.nan if x is None else float(x) for x in across)
                by_x.setdefault(xs, []).append(up)
        if not by_x:
            yield Line(label=asked.label, index=index, run=bool(asked.found.chosen), order=order)
        for part, (xs, curves) in enumerate(by_x.items()):
            samples = tuple(existing(value_at(values, at) for values in curves) for at in range(len(xs)))
            upright = () if part else _upright(asked.found, panel)
            label = "" if part else asked.label
            hollow = (True,) * len(xs) if is_unfit(asked.found) else ()
            yield Line(
                label=label,
                index=index,
                x=xs,
                samples=samples,
                run=True,
                upright=upright,
                hollow=hollow,
                order=order,
                data=data_of([asked.found]),
                seeds=seeds_of(asked.found),
            )


def _upright(found: SeriesEvidence, panel: Panel) -> tuple[tuple[float, str], ...]:
    """Where vertical lines stand: at numbers that the first cell has."""
    outcomes = [entry.outcome for entry in found.chosen.values()][:1]
    known = [(quantity(outcome, name), words) for outcome in outcomes for name, words in panel.upright]
    return tuple((value, words) for value, words in known if value is not None and math.isfinite(value))


def _pairs(drawn: Sequence[Series]) -> dict[str, tuple[str, str]]:
    """What tells series apart that lie in several groups at the same `x`, by name: the words of their x, and of their group.

    Nothing where groups have other x, or where words do not tell them apart.
    """
    groups: dict[str, dict[float, str]] = {}
    for series in drawn:
        if series.x is not None:
            groups.setdefault(_group(series), {})[series.x] = series_name(series)
    places = [set(labels) for labels in groups.values()]
    if len(groups) < 2 or len(places[0]) < 2 or any(own != places[0] for own in places):
        return {}
    at = {x: common_label([labels[x] for labels in groups.values()]) or f"{x:g}" for x in places[0]}
    named = {group: _group_name(list(labels.values()), group) for group, labels in groups.items()}
    pairs = {series.name: (at[series.x], named[_group(series)]) for series in drawn if series.x is not None}
    return pairs if len(set(pairs.values())) == len(drawn) else {}


def _group_name(labels: Sequence[str], name: str) -> str:
    """What the labels of a group have in common, else its name."""
    return common_label(labels) or common_end(labels) or name


def _group(series: Series) -> str:
    """What stands before the last `-`; series whose names have none are one group."""
    return series.name.rpartition("-")[0]


def _number_of(name: str) -> float | None:
    """The number that a name ends in, as 12 of `joined12`."""
    tail = re.search(r"\d+$", name)
    return float(tail.group()) if tail else None
